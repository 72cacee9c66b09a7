package v1compat

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// Translator translates a route's requests and responses for programs that read v2's
// responses as JSON. It runs the route's own translators. It is safe for concurrent use.
type Translator struct {
	Meta
	// Paged reports whether v1 answers with a page of items; otherwise with one object.
	Paged bool
	// List reports whether v2 answers with a page of objects; otherwise with one object.
	List bool

	required []member // of each object of v2
	route    *route
}

// member is a member of v2's JSON, with its tag since.
type member struct{ name, since string }

// Numbers finds the numbers of objects. It may leave some out.
type Numbers func([]idmap.IDKey) (map[idmap.IDKey]int64, error)

// NoNumber stands in v1's items for the number of an object that Numbers omitted. No object has it.
const NoNumber = -1

// Readers returns the translators of the read-only routes of v1's own document, in the order of the table.
func (f *Facade) Readers() []*Translator {
	var all []*Translator
	for _, r := range f.routes {
		if !r.Additive && r.operation.Meta().Scope == domain.Read {
			all = append(all, translatorOf(r))
		}
	}
	return all
}

// Expected is what v1 must return for an object of v2.
type Expected struct {
	// Item is v1's item; nil if the object could not be read.
	Item jsontext.Value
	// Faults says, by name, which members of v2's object are missing, or of another type than v2 declares.
	Faults map[string]string
}

// Expect translates objects of a release of v2 into v1's items, one result for each object; without an item if the
// object cannot be read. It calls numbers at most once, and uses NoNumber for objects that numbers leaves out.
func (t *Translator) Expect(objects []jsontext.Value, release op.Release, numbers Numbers) ([]Expected, error) {
	all := make([]Expected, len(objects))
	items := make([]any, len(objects))
	for i, object := range objects {
		all[i].Faults = t.missing(object, release)
		item, err := t.item(object)
		if err == nil {
			items[i] = item
			continue
		}
		field := "(object)"
		if at, ok := errors.AsType[*json.SemanticError](err); ok && at.JSONPointer != "" {
			field = strings.ReplaceAll(strings.TrimPrefix(string(at.JSONPointer), "/"), "/", ".")
		}
		all[i].Faults[field] = "cannot be read: " + err.Error()
	}

	err := idmap.NumberBy(func(wanted []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		found, err := numbers(wanted)
		complete := make(map[idmap.IDKey]int64, len(wanted))
		for _, key := range wanted {
			complete[key] = cmp.Or(found[key], NoNumber)
		}
		return complete, err
	}, items...)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if item == nil {
			continue
		}
		if all[i].Item, err = json.Marshal(item); err != nil {
			return nil, fmt.Errorf("write an item of %s: %w", t.ID, err)
		}
	}
	return all, nil
}

// missing returns a fault for each required member that an object of a release of v2 lacks; none if the value is not an
// object.
func (t *Translator) missing(object jsontext.Value, release op.Release) map[string]string {
	var members map[string]jsontext.Value
	faults := map[string]string{}
	if json.Unmarshal(object, &members) != nil {
		return faults
	}
	for _, m := range t.required {
		if _, ok := members[m.name]; !ok && release.Includes(m.since) {
			faults[m.name] = "is missing"
		}
	}
	return faults
}

// item returns a pointer to v1's item for an object of v2.
func (t *Translator) item(object jsontext.Value) (any, error) {
	shown := reflect.New(t.route.v2Output).Interface()
	if err := json.Unmarshal(object, shown); err != nil {
		return nil, err
	}
	return t.route.fromV2(shown), nil
}

// translatorOf returns the translator of a route, from the JSON of the route's Successor. Members of that JSON that v2
// never omits are required.
func translatorOf(r *route) *Translator {
	_, paged := r.output.FieldByName("Items")
	wire := r.Successor.Output()
	data, list := wire.FieldByName("Data")
	if list {
		wire = data.Type.Elem()
	}
	t := &Translator{Meta: r.Meta, List: list, Paged: paged, route: r}
	for _, f := range reflect.VisibleFields(wire) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !f.Anonymous && !strings.Contains(options, "omit") {
			t.required = append(t.required, member{name, f.Tag.Get("since")})
		}
	}
	return t
}

// Translated is a request of v1 as its route reads it, and the v2 request that succeeds it.
type Translated struct {
	*Translator
	// Kind and ID are the kind and v1's id of the last object in the path; empty if it has none.
	Kind, ID string
	// Limit and Offset are the page's, the limit within v1's bounds.
	Limit, Offset int
	// Next is the path and the query of v2's request. If Email is set, send one request
	// for each user with this address, with the user's id in place of AnyUser.
	Next, Email string
	// Refusal is what v1 must answer if the request cannot be read or names no object; otherwise nil.
	Refusal *Error
}

// AnyUser stands for each of several users in a request of v2.
const AnyUser = "usr_7zzzzzzzzzzzzzzzzzzzzzzzzz"

// Lookups provide the ids and the time that translating a request needs.
type Lookups struct {
	// IDs finds the ids of numbers. It may leave some out.
	IDs func([]idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error)
	// Client finds the client of a user.
	Client func(domain.UserID) (domain.ClientID, error)
	// Now is the end of a period that gives none.
	Now time.Time
}

// Translate reads a request of v1 for a route that is not additive; target is the path and the query. If v1 refuses it,
// the Refusal is set, and the error is nil. Without such a route, or if a lookup fails, it is an error.
func (f *Facade) Translate(method, target, body string, l Lookups) (*Translated, error) {
	path, query, _ := strings.Cut(target, "?")
	for _, r := range f.routes {
		if r.Additive || r.Method != method {
			continue
		}
		a := &Translated{}
		params, ok := a.match(r.Path, path)
		if !ok {
			continue
		}
		a.Translator = translatorOf(r)
		err := a.translate(r, params, query, body, l)
		if refused := (*domain.Error)(nil); errors.As(err, &refused) {
			e := r.translateError(refused)
			a.Refusal, err = &Error{Status: httpStatus(e.Code), Error: e.Code, Message: e.Message}, nil
		}
		return a, err
	}
	return nil, fmt.Errorf("v1 has no route for %s %s", method, target)
}

// Matches reports whether a path, without its query, is the route's.
func (t *Translator) Matches(path string) bool {
	_, ok := (&Translated{}).match(t.Path, path)
	return ok
}

// match returns the parameters of a path, and sets Kind and ID from the last; false if the path is not of the pattern.
func (a *Translated) match(pattern, path string) (map[string]string, bool) {
	segments, parts := strings.Split("/v1"+pattern, "/"), strings.Split(path, "/")
	if len(segments) != len(parts) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range segments {
		name, isParam := strings.CutPrefix(segment, ":")
		if !isParam {
			if segment != parts[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(parts[i])
		if err != nil || value == "" {
			return nil, false
		}
		params[name] = value
		a.Kind, a.ID = strings.TrimSuffix(name, "_id"), value
	}
	return params, true
}

// translate sets Limit, Offset, Email and Next from the request. The error is a domain.Error if v1 refuses the request.
func (a *Translated) translate(r *route, params map[string]string, query, body string, l Lookups) error {
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
	if err := idmap.ResolveBy(l.IDs, in); err != nil {
		return err
	}

	next, err := r.next(in, l.locate)
	if err != nil {
		return err
	}
	if mails, ok := in.(*listSentEmails); ok && mails.Body.UserInfimaID == nil {
		a.Email = strings.TrimSpace(mails.Body.EmailAddress) // the emails of all users with it
	}
	target, err := op.Target(r.Successor, next)
	if err != nil { // next is nil, or has a zero id in the path: the number is unused, or the id invalid
		return domain.ErrNotFound("object")
	}
	a.Next = "/v2" + target
	return nil
}

// locate is the locate of route.next, by the lookups. For an email address it sets AnyUser, which stands for all its
// users.
func (l Lookups) locate(input any) (err error) {
	switch in := input.(type) {
	case *api.SentResultsInput:
		in.Client, err = l.Client(in.Path.UserID)
	case *api.SentEmailsInput:
		switch {
		case in.Body.UserID != nil:
			in.User = *in.Body.UserID
		case in.Body.Email == "":
			return domain.ErrInvalid("user_id", "is required unless an email address is given")
		default:
			in.User, err = domain.ParseID[domain.UserKind](AnyUser)
		}
		in.Since, in.Until = in.Period(l.Now)
	}
	return err
}
