package v1compat

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

func allFields(t *testing.T) (*Facade, []OperationFields) {
	t.Helper()
	f := New(v2.New(nil, nil), Config{})
	all, err := f.Fields()
	if err != nil {
		t.Fatal(err)
	}
	return f, all
}

// TestFields: every parameter, member of a body and member of an answer of v1 is in
// the table, each is explained, and what it names of v2 is there.
func TestFields(t *testing.T) {
	t.Parallel()
	f, all := allFields(t)
	unused := map[string]bool{}
	for key := range requestNotes {
		unused["request "+key] = true
	}
	for key := range responseNotes {
		unused["response "+key] = true
	}
	for _, of := range all {
		r := f.routes[slices.IndexFunc(f.routes, func(r *route) bool { return r.ID == of.Route.ID })]
		checkFields(t, r.ID+" request", of.Request, inputNames(r.input), inputNames(r.Successor.Input()))
		checkFields(t, r.ID+" response", of.Response, jsonPaths(r.output), jsonPaths(r.Successor.Output()))
		for _, p := range r.Successor.Input().Path {
			if !slices.ContainsFunc(of.Request, func(f Field) bool { return slices.Contains(f.V2, p.Name) }) {
				t.Errorf("%s: nothing says where %s of the successor's path comes from", r.ID, p.Name)
			}
		}
		for _, field := range of.Request {
			for _, id := range []string{r.ID, "page", "single"} {
				delete(unused, "request "+id+" "+field.V1)
			}
		}
		for _, field := range of.Response {
			for _, id := range []string{r.ID, "page", "single"} {
				delete(unused, "response "+id+" "+strings.TrimPrefix(field.V1, "items[]."))
			}
		}
	}
	for key := range unused {
		t.Errorf("a sentence was written for %s, which is no field", key)
	}
}

func checkFields(t *testing.T, of string, fields []Field, v1, v2 []string) {
	t.Helper()
	var named []string
	for _, field := range fields {
		named = append(named, field.V1)
		switch {
		case field.How == "":
			t.Errorf("%s: nothing explains %s (of %v): write a sentence in fields_notes.go", of, field.V1, field.V2)
		case field.V1 != "" && !slices.Contains(v1, field.V1):
			t.Errorf("%s: %s is made, and no field of v1", of, field.V1)
		case field.Explain == "" && field.How != Same && field.How != Renamed:
			t.Errorf("%s: %s is %s, and nothing says how", of, field.V1, field.How)
		case (field.How == GivenUp) != (len(field.V2) == 0) && field.V1 != "items":
			t.Errorf("%s: %s is %s, of %v", of, field.V1, field.How, field.V2)
		}
		for _, path := range field.V2 {
			if !slices.Contains(v2, path) {
				t.Errorf("%s: %s names %s, which v2 does not have", of, field.V1, path)
			}
		}
	}
	for _, name := range v1 {
		if !slices.Contains(named, name) {
			t.Errorf("%s: %s is not in the table", of, name)
		}
	}
}

// made is what a made-up translator makes of madeUp.
type made struct {
	Same    string                       `json:"same"`
	Other   int                          `json:"other"`
	Number  idmap.Ref[domain.ClientKind] `json:"number"`
	User    UUID[domain.UserKind]        `json:"user"`
	At      Time                         `json:"at"`
	Empty   string                       `json:"empty"`
	Left    *int                         `json:"left,omitempty"`
	Role    AdminRole                    `json:"role"`
	There   bool                         `json:"there"`
	Initial string                       `json:"initial"`
	Sum     int                          `json:"sum"`
	Rate    float64                      `json:"rate"`
	Fixed   string                       `json:"fixed"`
	Parts   []madePart                   `json:"parts"`
	Extra   map[string]int               `json:"extra"`
}

type madePart struct {
	Title string `json:"title"`
}

// madeUp is what a made-up operation of v2 shows.
type madeUp struct {
	Same  string           `json:"same"`
	Count int              `json:"count"`
	ID    domain.ClientID  `json:"id"`
	User  domain.UserID    `json:"user"`
	At    op.Time          `json:"at"`
	Text  *string          `json:"text"`
	Left  *int             `json:"left"`
	Role  domain.AdminRole `json:"role"`
	Seen  *op.Time         `json:"seen"`
	Name  string           `json:"name"`
	A     int              `json:"a"`
	B     int              `json:"b"`
	Parts []madeUpPart     `json:"parts"`

	Rate float64 `json:"-"`
}

type madeUpPart struct {
	Label string `json:"label"`
}

func fromMadeUp(in any) any {
	v := in.(*madeUp)
	out := &made{
		Same: v.Same, Other: v.Count, Number: idmap.RefTo(v.ID), User: uuidOf(v.User), At: at(v.At),
		Empty: orEmpty(v.Text), Left: v.Left, Role: toAdmin(v2.Admin{Role: v.Role}).Role, There: v.Seen != nil,
		Initial: v.Name[:min(1, len(v.Name))], Sum: v.A + v.B, Rate: v.Rate, Fixed: "fixed",
		Extra: map[string]int{"surplus": v.A},
	}
	for _, part := range v.Parts {
		out.Parts = append(out.Parts, madePart{part.Label})
	}
	return out
}

// TestMarkedValues: of a made-up translator that does one thing of each kind,
// marked values tell which.
func TestMarkedValues(t *testing.T) {
	t.Parallel()
	shown := reflect.TypeFor[madeUp]()
	fields, err := answerFields(shown, reflect.TypeFor[made](), fromMadeUp, publicOf(shown, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{V1: "same", V2: []string{"same"}, How: Same, Form: Equal},
		{V1: "other", V2: []string{"count"}, How: Renamed, Form: Equal},
		{V1: "number", V2: []string{"id"}, How: Converted, Form: Number, Explain: "a number in v1, an id `cli_…` in v2"},
		{V1: "user", V2: []string{"user"}, How: Converted, Form: UUIDForm, Explain: "a UUID in v1, an id `usr_…` in v2"},
		{V1: "at", V2: []string{"at"}, How: Converted, Form: Seconds, Explain: "whole seconds in v1, microseconds in v2"},
		{V1: "empty", V2: []string{"text"}, How: Converted, Form: Equal, Explain: "an empty text in v1 where v2 has null"},
		{V1: "left", V2: []string{"left"}, How: Converted, Form: Equal, Explain: "left out in v1 where v2 has null"},
		{
			V1: "role", V2: []string{"role"}, How: Converted, Form: Mapped,
			Values:  map[string]string{"owner": "Administrator", "admin": "Administrator", "viewer": "User"},
			Explain: "`Administrator` for `admin`, `owner`; `User` for `viewer`",
		},
		{V1: "there", V2: []string{"seen"}, How: Converted, Form: Presence, Explain: "`true` unless v2 has null"},
		{V1: "initial", V2: []string{"name"}}, // computed, which a sentence has to say
		{V1: "sum", V2: []string{"a", "b"}},   // the same
		{V1: "rate"},                          // given up: it comes from outside v2's JSON
		{V1: "fixed"},                         // given up: nothing moves it
		{V1: "parts", V2: []string{"parts"}, How: Same, Form: Equal},
		{V1: "parts[].title", V2: []string{"parts[].label"}, How: Renamed, Form: Equal},
		{V1: "extra"}, // a part of v1 that the type does not show
		{V1: "extra.surplus", V2: []string{"a"}, How: Renamed, Form: Equal},
	}
	for i, field := range fields {
		if i >= len(want) || !reflect.DeepEqual(field, want[i]) {
			t.Errorf("%d: %+v", i, field)
		}
	}
	if len(fields) != len(want) {
		t.Errorf("%d fields, not %d", len(fields), len(want))
	}

	notes := map[string]string{"x sum": "a and b together", "x rate": "v2 has none", "x other": "it is not the sum"}
	for _, c := range []struct {
		at   int
		how  How
		text string
	}{{9, "", ""}, {10, Computed, "a and b together"}, {11, GivenUp, "v2 has none"}, {1, Renamed, "it is not the sum"}} {
		if got := explained(fields[c.at], notes, "x "+fields[c.at].V1); got.How != c.how || got.Explain != c.text {
			t.Errorf("%+v", got)
		}
	}
}
