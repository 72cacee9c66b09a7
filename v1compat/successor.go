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
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Success responses link to the v2 request with the same response, if any, in a Link header (RFC 8288) with the
// relation successor-version (RFC 5829): decisions 11.2. The link is built from the input with which the route called
// v2. If the route's operation is not public, a function beside its translators converts that input to the Successor's.

const (
	// maxLink is the longest value of the header in bytes.
	maxLink = 1000
	// maxLimit is the largest page of v2.
	maxLimit = 500

	linkEnd = `>; rel="successor-version"`
)

// reply is the response of a route.
type reply struct {
	out any
	// next is the successor's input for the same response; nil if there is none.
	next any
}

// successorPage returns the successor's page with the same objects as v1's page of that many rows; false if there is
// none: v2 has no offsets. whole means that no rows follow the page. Only a whole list qualifies if the orders differ
// (reordered), or if the limit is above v2's.
func successorPage(page pageRequest, rows int, whole, reordered bool) (op.Paging, bool) {
	switch {
	case page.offset > 0, reordered && !whole:
		return op.Paging{}, false
	case page.limit <= maxLimit:
		return op.Paging{Limit: page.limit}, true
	}
	return op.Paging{Limit: maxLimit}, whole && rows <= maxLimit
}

// firstPage returns the successor's page for a page of v1 that was not read: the one with the same objects, if that
// does not depend on the rows, otherwise the first page of the default size.
func firstPage(page pageRequest, reordered bool) op.Paging {
	if p, ok := successorPage(page, 0 /* rows */, false /* whole */, reordered); ok {
		return p
	}
	return op.Paging{Limit: defaultLimit}
}

// defaultLimit is the default limit of v2's lists.
const defaultLimit = 100

// hasServedSuccessor reports whether the route has a successor in the served release.
func (r *route) hasServedSuccessor() bool {
	return !r.Additive && r.Successor.Meta().Since <= r.facade.Release
}

// linkStart returns the beginning of links to version 2.
func (f *Facade) linkStart() string { return "<" + f.Root + "/v2" }

// link returns the Link header value for the successor with the input; empty if there is no input or no served
// successor, if the input has no URL, or if the link would be too long.
func (r *route) link(next any) string {
	if next == nil || !r.hasServedSuccessor() {
		return ""
	}
	target, err := op.Target(r.Successor, next)
	link := r.facade.linkStart() + target + linkEnd
	if err != nil || len(link) > maxLink {
		return ""
	}
	return link
}

// addLink adds a Link header, unless it is empty.
func addLink(c *gin.Context, link string) {
	if link != "" {
		c.Writer.Header().Add("Link", link)
	}
}

// goneLink returns the Link header value for the successor of a request that the key's phase refuses: the same link as
// after a success, with only the ids that the key can access. A list without an equivalent page is linked to the first
// page of the default size. If successorInput returns no input or an error, the link is to the successor's path; there
// is none if the path has parameters, or the request names ids.
func (r *route) goneLink(c *gin.Context) string {
	if !r.hasServedSuccessor() {
		return ""
	}
	next, err := r.successorInput(c)
	if err == nil && next != nil {
		return r.link(next)
	}
	if path := r.Successor.Meta().Path; !strings.Contains(path, ":") && !op.NamesList(c.Request.URL.Query(), "ids") {
		return r.facade.linkStart() + path + linkEnd
	}
	return ""
}

// successorInput returns the successor's input for the request; nil if there is none. It returns an error if the
// request cannot be parsed, or names in its path an object that the key has no access to.
func (r *route) successorInput(c *gin.Context) (any, error) {
	described := *r.input
	if !r.needsBody() {
		described.Body = nil // need not be read
	}
	in, _, err := ginop.Decode(c, &described, r.input.New(), true /* lenient */) // without the raw body
	if err != nil {
		return nil, err
	}
	ctx := c.Request.Context() // replaced by Decode: the time limit begins when the body has been read
	// Access is looked up for the link even if the key has only the scope write.
	reader := *domain.CallerFrom(ctx)
	reader.Scopes = []domain.Scope{domain.Read}
	ctx = domain.WithCaller(ctx, &reader)

	path, query := inputValues(in, "Path"), inputValues(in, "Query")
	if _, err := idmap.Resolve(ctx, r.facade.Registry, slices.Concat(path, query)...); err != nil {
		return nil, err
	}
	if err := r.facade.checkReach(ctx, path); err != nil {
		return nil, err
	}
	next, err := r.next(in, func(input any) error { return r.facade.fillPath(ctx, input) })
	if clients, ok := next.(*api.ListClientsInput); err == nil && ok && clients.Query.IDs != nil {
		err = r.facade.filterReached(ctx, clients)
	}
	return next, err
}

// needsBody reports whether the successor's path needs an id that v1 has in the body.
func (r *route) needsBody() bool { return len(r.input.Path) == 0 && len(r.Successor.Input().Path) > 0 }

// inputValues returns a pointer to a part of an input, such as its Path; nothing if it has none.
func inputValues(in any, name string) []any {
	if part := reflect.ValueOf(in).Elem().FieldByName(name); part.IsValid() {
		return []any{part.Addr().Interface()}
	}
	return nil
}

// checkReach returns NotFound unless the key has access to the objects of all numbers, with one statement per kind.
func (f *Facade) checkReach(ctx context.Context, values []any) error {
	keys, err := idmap.ResolvedIDs(values...)
	if err != nil {
		return err
	}
	byKind := map[idmap.Kind][]idmap.UUID{}
	for _, key := range keys {
		byKind[key.Kind] = append(byKind[key.Kind], key.ID)
	}
	for kind, ids := range byKind {
		reached, err := f.lookUpReach(ctx, kind.String(), ids)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, func(id idmap.UUID) bool { return !reached[id] }) {
			return domain.ErrNotFound(kind.String())
		}
	}
	return nil
}

// filterReached drops the ids that the key has no access to from a list's query; unused numbers have no id there.
func (f *Facade) filterReached(ctx context.Context, in *api.ListClientsInput) error {
	var ids []idmap.UUID
	for _, id := range in.Query.IDs.IDs {
		ids = append(ids, idmap.UUID(id))
	}
	reached, err := f.lookUpReach(ctx, idmap.Client.String(), ids)
	if err != nil {
		return err
	}
	in.Query.IDs.IDs = slices.DeleteFunc(in.Query.IDs.IDs, func(id domain.ClientID) bool { return !reached[idmap.UUID(id)] })
	return nil
}

// lookUpReach returns which objects of a kind the key has access to.
func (f *Facade) lookUpReach(ctx context.Context, kind string, ids []idmap.UUID) (map[idmap.UUID]bool, error) {
	in := &api.ReachableInput{}
	in.Body.Kind, in.Body.IDs = api.ReachableKind(kind), ids
	out, err := op.Call(ctx, f.v1, api.Reachable, in)
	if err != nil {
		return nil, err
	}
	return out.IDs, nil
}

// fillPath sets the ids in input that the operation finds. A list of sent results or emails sets them when it is
// called; the input's limit is 1. A send would have effects, so a list of the user's results finds the client. Other
// inputs need no ids.
func (f *Facade) fillPath(ctx context.Context, input any) error {
	switch in := input.(type) {
	case *api.SentResultsInput:
		_, err := op.Call(ctx, f.v1, api.SentResults, in)
		return err
	case *api.SentEmailsInput:
		_, err := op.Call(ctx, f.v1, api.SentEmails, in)
		return err
	case *api.SendToUserInput:
		if len(in.Body.UserIDs) == 0 {
			return fmt.Errorf("no user is named")
		}
		results := &api.SentResultsInput{}
		results.Path.UserID, results.Query.Limit = in.Body.UserIDs[0], 1
		err := f.fillPath(ctx, results)
		in.Client = results.Client
		return err
	}
	return nil
}
