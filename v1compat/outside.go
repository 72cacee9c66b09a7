package v1compat

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// Reading is a route that only reads, for programs that have v2's answers as JSON and
// want to know what v1 has to say: it runs the route's own translator on them. It
// is safe for concurrent use.
type Reading struct {
	Meta
	// Paged says that v1 answers with a page of items; else with one object.
	Paged bool
	// List says that v2 answers with a page of objects; else with one object.
	List bool
	// MaxLimit is the largest page of v1; 0 where it is not paged.
	MaxLimit int

	// needs are the members that each object of v2 has.
	needs []string
	// item translates an object of v2.
	item func(object jsontext.Value) (any, error)
}

// Numbers finds the numbers of objects. It may leave some out.
type Numbers func([]idmap.IDKey) (map[idmap.IDKey]int64, error)

// NoNumber stands in v1's items where Numbers left an object out. No object has it.
const NoNumber = -1

// Readings are the routes of v1's own document that only read, in the order of the
// table.
func (f *Facade) Readings() []*Reading {
	var all []*Reading
	for _, r := range f.routes {
		if !r.Additive && r.operation.Meta().Scope == domain.Read {
			all = append(all, readingOf(r))
		}
	}
	return all
}

// Expected is what v1 has to say of one object of v2.
type Expected struct {
	// Item is v1's item; nil where the object could not be read.
	Item jsontext.Value
	// Faults are members of v2's object that are missing or of another type than
	// v2 declares, by their names, with what is wrong.
	Faults map[string]string
}

// Expect translates objects of v2 into v1's items. All numbers are looked up at once.
func (r *Reading) Expect(objects []jsontext.Value, numbers Numbers) ([]Expected, error) {
	all := make([]Expected, len(objects))
	items := make([]any, len(objects))
	for i, object := range objects {
		all[i].Faults = r.missing(object)
		item, err := r.item(object)
		if err == nil {
			items[i] = item
			continue
		}
		field := "(object)"
		if at, ok := err.(*json.SemanticError); ok && at.JSONPointer != "" {
			field = strings.ReplaceAll(strings.TrimPrefix(string(at.JSONPointer), "/"), "/", ".")
		}
		all[i].Faults[field] = "cannot be read: " + err.Error()
	}

	err := idmap.NumberBy(func(wanted []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		found, err := numbers(wanted)
		all := make(map[idmap.IDKey]int64, len(wanted))
		for _, key := range wanted {
			all[key] = cmp.Or(found[key], NoNumber)
		}
		return all, err
	}, items...)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if item == nil {
			continue
		}
		if all[i].Item, err = json.Marshal(item); err != nil {
			return nil, fmt.Errorf("write an item of %s: %w", r.ID, err)
		}
	}
	return all, nil
}

// missing are the members that an object of v2 lacks. Of what is no object, reading it
// says so.
func (r *Reading) missing(object jsontext.Value) map[string]string {
	var members map[string]jsontext.Value
	faults := map[string]string{}
	if json.Unmarshal(object, &members) != nil {
		return faults
	}
	for _, name := range r.needs {
		if _, ok := members[name]; !ok {
			faults[name] = "is missing"
		}
	}
	return faults
}

// readingOf says how a route's answers are translated, object by object. The objects are
// those in the JSON of the operation that callers of v2 have.
func readingOf(r *route) *Reading {
	_, paged := r.output.FieldByName("Items")
	wire := r.Successor.Output()
	data, list := wire.FieldByName("Data")
	if list {
		wire = data.Type.Elem()
	}

	reading := &Reading{Meta: r.Meta, List: list, Paged: paged}
	if paged {
		in := r.input.New()
		_ = r.input.Bind(in, op.Request{Query: url.Values{"limit": {"1000000"}}, Lenient: true, Path: func(string) string { return "1" }})
		if largest, err := pageOf(in); err == nil {
			reading.MaxLimit = largest.limit
		}
	}
	for name, always := range wireNames(wire) {
		if always {
			reading.needs = append(reading.needs, name)
		}
	}
	slices.Sort(reading.needs)
	reading.item = func(object jsontext.Value) (any, error) {
		shown := reflect.New(r.shown)
		if err := json.Unmarshal(object, shown.Interface()); err != nil {
			return nil, err
		}
		item := reflect.ValueOf(r.fromV2(shown.Interface()))
		if item.Kind() == reflect.Pointer {
			return item.Interface(), nil
		}
		settable := reflect.New(item.Type())
		settable.Elem().Set(item)
		return settable.Interface(), nil
	}
	return reading
}

// wireNames are the members of a struct's JSON, and whether each is always there.
func wireNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok || tag == "-" || f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		names[name] = !strings.Contains(options, "omit")
	}
	return names
}

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
