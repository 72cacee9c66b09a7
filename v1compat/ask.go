package v1compat

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// Asked is a request of v1 as a program outside of the service reads it, and the
// request of v2 that follows it.
type Asked struct {
	*Reading
	// Kind and ID name the last object of the path, as v1 does; empty for none.
	Kind, ID string
	// Limit and Offset are those of the page, the limit within v1's bounds.
	Limit, Offset int
	// Next is the path and the query of v2's request; empty where v2 has none.
	Next string
	// Refusal is what v1 is to answer, where the request cannot be read or names no
	// object; nil where it can.
	Refusal *Error
}

// Outside is what a program outside of the service needs to know for Ask.
type Outside struct {
	// IDs finds the ids of numbers. It may leave some out.
	IDs func([]idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error)
	// Client finds the client of a user.
	Client func(domain.UserID) (domain.ClientID, error)
	// Now ends periods that have no end.
	Now time.Time
}

// ErrNoRoute is that a request is none of v1's own document.
var ErrNoRoute = errors.New("no route of v1")

// Ask reads a request, of which target is the path and the query, by its route's own
// translators. ErrNoRoute is returned where it has none.
func (f *Facade) Ask(method, target, body string, o Outside) (*Asked, error) {
	path, query, _ := strings.Cut(target, "?")
	for _, r := range f.routes {
		if r.Additive || r.Method != method {
			continue
		}
		a := &Asked{}
		params, ok := a.match(r.Path, path)
		if !ok {
			continue
		}
		a.Reading = readingOf(r)
		err := a.translate(r, params, query, body, o)
		if refused := (*domain.Error)(nil); errors.As(err, &refused) {
			e := r.translate(refused)
			a.Refusal, err = &Error{Status: httpStatus(e.Code), Error: e.Code, Message: e.Message}, nil
		}
		return a, err
	}
	return nil, ErrNoRoute
}

// Matches reports whether a path, without its query, is the route's.
func (r *Reading) Matches(path string) bool {
	_, ok := (&Asked{}).match(r.Path, path)
	return ok
}

// match reads the parameters of a path, of which pattern is the route's.
func (a *Asked) match(pattern, path string) (map[string]string, bool) {
	named, given := strings.Split("/v1"+pattern, "/"), strings.Split(path, "/")
	if len(named) != len(given) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range named {
		name, isParam := strings.CutPrefix(segment, ":")
		if !isParam {
			if segment != given[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(given[i])
		if err != nil || value == "" {
			return nil, false
		}
		params[name] = value
		a.Kind, a.ID = strings.TrimSuffix(name, "_id"), value
	}
	return params, true
}

// translate finds the request of v2.
func (a *Asked) translate(r *route, params map[string]string, query, body string, o Outside) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return domain.ErrInvalid("query", "is not well-formed")
	}
	in := r.input.New()
	err = r.input.Bind(in, op.Request{
		Path: func(name string) string { return params[name] }, Query: values, Body: []byte(body), Lenient: true,
	})
	if err != nil {
		return err
	}
	if a.Paged {
		page, err := pageOf(in)
		if err != nil {
			return err
		}
		a.Limit, a.Offset = page.limit, page.offset
	}
	if err := idmap.ResolveBy(o.IDs, in); err != nil {
		return err
	}

	next, err := r.next(in, o.locate)
	if err != nil || next == nil {
		return err
	}
	target, err := op.Target(r.Successor, next)
	if err != nil { // what the path names cannot be an object
		return domain.ErrNotFound("object")
	}
	a.Next = "/v2" + target
	return nil
}

// locate is the locator of a program outside.
func (o Outside) locate(called any) (err error) {
	switch in := called.(type) {
	case *v2.SentResults:
		in.Client, err = o.Client(in.Path.UserID)
	case *v2.SentEmails:
		switch {
		case in.Body.UserID != nil:
			in.User = *in.Body.UserID
		case in.Body.Email == "":
			return domain.ErrInvalid("user_id", "is required unless an email address is given")
		}
		in.Since, in.Until = in.Days(o.Now)
	}
	return err
}
