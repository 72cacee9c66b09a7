package v1compat

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Every answer of success names the request of v2 that answers the same, in a
// Link (RFC 8288) with the relation successor-version (RFC 5829): decisions 11.3.
// The request is written from the very input that the route called v2 with, or,
// where the route's operation is v1's own, from the public one that a function
// beside its translators makes of it.

const (
	// maxLink is the longest value of the header in bytes.
	maxLink = 1000
	// maxLimit is the largest page of v2.
	maxLimit = 500

	linkStart, linkEnd = "</v2", `>; rel="successor-version"`
)

// reply is what a route answers.
type reply struct {
	out any
	// next is the input of the successor that answers the same; nil for none.
	next any
}

// successorPage is the successor's page with the same objects as one of v1, which
// has that many rows; false where there is none. Where the orders differ that is the
// whole list only.
func successorPage(page asked, rows int, whole, reordered bool) (op.Paging, bool) {
	switch {
	case page.offset > 0, reordered && !whole:
		return op.Paging{}, false
	case page.limit <= maxLimit:
		return op.Paging{Limit: page.limit}, true
	}
	return op.Paging{Limit: maxLimit}, whole && rows <= maxLimit
}

// firstPage is the page of the successor for one of v1 of which no row was read:
// where the same objects cannot be promised, one of the usual size.
func firstPage(page asked, reordered bool) op.Paging {
	if p, ok := successorPage(page, 0, false, reordered); ok {
		return p
	}
	return op.Paging{Limit: defaultLimit}
}

// defaultLimit is the limit of v2's lists where none is given.
const defaultLimit = 100

// followed reports whether the route has a successor that is in the release that is
// served.
func (r *route) followed() bool {
	return !r.facade.Plain && !r.Additive && r.Successor.Meta().Since <= r.facade.Release
}

// link is the value of the header Link that leads to the successor with the
// input; empty where it is left out.
func (r *route) link(next any) string {
	if next == nil || !r.followed() {
		return ""
	}
	b, err := op.AppendTarget(append(make([]byte, 0, 256), linkStart...), r.Successor, next)
	if err != nil {
		return ""
	}
	if b = append(b, linkEnd...); len(b) > maxLink {
		return ""
	}
	return string(b)
}

// addLink adds the header that leads to the successor with the input.
func (r *route) addLink(c *gin.Context, next any) {
	if link := r.link(next); link != "" {
		c.Writer.Header().Add("Link", link)
	}
}

// linkWhenGone adds the header that leads to the successor to the answer of a
// request that the key's phase refuses.
func (r *route) linkWhenGone(c *gin.Context) {
	if link := r.goneLink(c); link != "" {
		c.Writer.Header().Add("Link", link)
	}
}

// goneLink is the value of the header: as of an answer of success where the request
// can be read and the key reaches the objects of its path, with those of its ids that
// the key reaches; of a list whose same page cannot be promised, a page of the usual
// size. Of a request that cannot be read it is the successor alone, unless that needs
// ids. Errors are dropped, as the request is refused in any case.
func (r *route) goneLink(c *gin.Context) string {
	if !r.followed() {
		return ""
	}
	next, err := r.unanswered(c)
	if err == nil && next != nil {
		return r.link(next)
	}
	if path := r.Successor.Meta().Path; !strings.Contains(path, ":") && !c.Request.URL.Query().Has("ids") {
		return linkStart + path + linkEnd
	}
	return ""
}

// unanswered is the successor's input for the request.
func (r *route) unanswered(c *gin.Context) (any, error) {
	described := *r.input
	if !r.bodyNames() {
		described.Body = nil // need not be read
	}
	in, _, err := ginop.Decode(c, &described, r.input.New(), true)
	if err != nil {
		return nil, err
	}
	ctx := c.Request.Context() // its time begins when the body was read
	// What the key reaches is read for the link also where it may only write.
	reader := *domain.CallerFrom(ctx)
	reader.Scopes = []domain.Scope{domain.Read}
	ctx = domain.WithCaller(ctx, &reader)

	path, query := inputPart(in, "Path"), inputPart(in, "Query")
	parts := slices.Concat(path, query)
	if _, err := idmap.Resolve(ctx, r.facade.Registry, parts...); err != nil {
		return nil, err
	}
	if err := r.facade.mustReach(ctx, path); err != nil {
		return nil, err
	}
	next, err := r.next(in, func(called any) error { return r.facade.locate(ctx, called) })
	if clients, ok := next.(*v2.ListClients); err == nil && ok && clients.Query.IDs != nil {
		err = r.facade.onlyReached(ctx, clients)
	}
	return next, err
}

// bodyNames reports whether the successor's path names what the body does.
func (r *route) bodyNames() bool { return len(r.input.Path) == 0 && len(r.Successor.Input().Path) > 0 }

// inputPart is a part of an input; none where it has no such part.
func inputPart(in any, name string) []any {
	if part := reflect.ValueOf(in).Elem().FieldByName(name); part.IsValid() {
		return []any{part.Addr().Interface()}
	}
	return nil
}

// mustReach reports NotFound unless the key reaches the objects of all numbers in
// the values, with a statement for each kind of them.
func (f *Facade) mustReach(ctx context.Context, values []any) error {
	held, err := idmap.ResolvedIDs(values...)
	if err != nil {
		return err
	}
	byKind := map[idmap.Kind][]idmap.UUID{}
	for _, key := range held {
		byKind[key.Kind] = append(byKind[key.Kind], key.ID)
	}
	for kind, ids := range byKind {
		reached, err := f.reached(ctx, kind.String(), ids)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, func(id idmap.UUID) bool { return !reached[id] }) {
			return domain.ErrNotFound(kind.String())
		}
	}
	return nil
}

// onlyReached leaves those ids in a list's query that the key reaches: others are not
// distinguished from what does not exist.
func (f *Facade) onlyReached(ctx context.Context, in *v2.ListClients) error {
	var ids []idmap.UUID
	for _, id := range in.Query.IDs.IDs {
		ids = append(ids, idmap.UUID(id))
	}
	reached, err := f.reached(ctx, idmap.Client.String(), ids)
	if err != nil {
		return err
	}
	reachable := &op.IDList[domain.ClientKind]{}
	for _, id := range in.Query.IDs.IDs {
		if reached[idmap.UUID(id)] {
			reachable.IDs, reachable.Given = append(reachable.IDs, id), reachable.Given+1
		}
	}
	in.Query.IDs = reachable
	return nil
}

// reached are those of a kind's objects that the key reaches.
func (f *Facade) reached(ctx context.Context, kind string, ids []idmap.UUID) (map[idmap.UUID]bool, error) {
	asked := &v2.Reachable{}
	asked.Body.Kind, asked.Body.IDs = v2.ReachableKind(kind), ids
	reached, err := f.v1.Reachable.Call(ctx, asked)
	if err != nil {
		return nil, err
	}
	return reached.IDs, nil
}

// locate is the locator that calls the operation, for one row.
func (f *Facade) locate(ctx context.Context, called any) error {
	switch in := called.(type) {
	case *v2.SentResults:
		in.Query.Paging = op.Paging{Limit: 1}
		_, err := f.v1.SentResults.Call(ctx, in)
		return err
	case *v2.SentEmails:
		in.Query.Paging = op.Paging{Limit: 1}
		_, err := f.v1.SentEmails.Call(ctx, in)
		return err
	case *v2.SendToUser:
		if len(in.Body.UserIDs) == 0 {
			return fmt.Errorf("no user is named")
		}
		user := &v2.SentResults{}
		user.Path.UserID = in.Body.UserIDs[0]
		err := f.locate(ctx, user)
		in.Client = user.Client
		return err
	}
	return nil
}
