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

// linkWhenGone adds the header that leads to the successor to the answer of a
// request that the key's phase refuses.
func (r *route) linkWhenGone(c *gin.Context) {
	if link := r.goneLink(c); link != "" {
		c.Writer.Header().Add("Link", link)
	}
}

// goneLink is the value of the header: as of an answer of success where the request
// can be read and the key reaches all that the link would name; of a list whose same
// page cannot be promised, a page of the usual size. Else it is the successor alone
// where its path names no object, and "" where it does. Nothing that goes wrong is
// told, as the request is refused all the same.
func (r *route) goneLink(c *gin.Context) string {
	if !r.followed() {
		return ""
	}
	if next, err := r.unanswered(c); err == nil && next != nil {
		if link := r.link(next); link != "" {
			return link
		}
	}
	if path := r.Successor.Meta().Path; !strings.Contains(path, ":") {
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

	var parts []any
	for _, name := range []string{"Path", "Query"} {
		if part := reflect.ValueOf(in).Elem().FieldByName(name); part.IsValid() {
			parts = append(parts, part.Addr().Interface())
		}
	}
	if _, err := idmap.Resolve(ctx, r.facade.Registry, parts...); err != nil {
		return nil, err
	}
	if err := r.facade.mustReach(ctx, parts); err != nil {
		return nil, err
	}
	return r.next(ctx, in)
}

// bodyNames reports whether the successor's path names what the body does.
func (r *route) bodyNames() bool { return len(r.input.Path) == 0 && len(r.Successor.Input().Path) > 0 }

// mustReach reports NotFound unless the key reaches the objects of all numbers in
// the values, with a statement for each kind of them.
func (f *Facade) mustReach(ctx context.Context, values []any) error {
	held, err := idmap.Held(values...)
	if err != nil {
		return err
	}
	byKind := map[idmap.Kind][]idmap.UUID{}
	for _, key := range held {
		byKind[key.Kind] = append(byKind[key.Kind], key.ID)
	}
	for kind, ids := range byKind {
		asked := &v2.Reachable{}
		asked.Body.Kind, asked.Body.IDs = v2.ReachableKind(kind.String()), ids
		reached, err := f.v1.Reachable.Call(ctx, asked)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, func(id idmap.UUID) bool { return !reached.IDs[id] }) {
			return domain.ErrNotFound(kind.String())
		}
	}
	return nil
}

// locate leaves in an input of v1's own operations what the operation itself would
// find and leave there, for the successor's path.
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
