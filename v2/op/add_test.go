package op_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type (
	nothing struct{}
	onPath  struct {
		Path struct {
			ID domain.ClientID `path:"id"`
		}
	}
	unbindable struct {
		Query struct {
			Numbers []int `query:"numbers"`
		}
	}
	badDefault struct {
		Query struct {
			Limit int `query:"limit" default:"many"`
		}
	}
	unexported struct {
		Query struct{ op.Paging }
		days  int
	}
	unpaged struct{ Query struct{ Q string } }
	hidden  struct {
		Query struct {
			op.Paging
			Days int
		}
	}
	withBody struct {
		Body struct {
			Name string `json:"name"`
		}
	}
	withQuery struct{ Query struct{ op.Paging } }
	charged   struct{}
)

// BudgetClient is whom a call is charged to.
func (charged) BudgetClient() domain.ClientID { return domain.ClientID{} }

func does[In, Out any](context.Context, *In) (*Out, error) { return new(Out), nil }

// metaOf is the declaration of an operation that answers 200: of scope read for GET, else of
// scope write.
func metaOf(method, path string) op.Meta {
	scope := domain.Write
	if method == "GET" {
		scope = domain.Read
	}
	return op.Meta{ID: "a.b", Method: method, Path: path, Scope: scope, Since: op.V2_0, Status: 200, Summary: "s"}
}

// declared is an operation that returns its input.
func declared[In any](method, path string) op.Operation {
	set := &op.Set{}
	o := op.Add(set, metaOf(method, path), func(_ context.Context, in *In) (*In, error) { return in, nil })
	return set.Operation(o)
}

// scoped is a context whose caller has the scopes.
func scoped(t *testing.T, scopes ...domain.Scope) context.Context {
	return domain.WithCaller(t.Context(), &domain.Caller{Scopes: scopes})
}

// panicOf is what fn panics with; empty where it does not.
func panicOf(fn func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	fn()
	return ""
}

// TestAddRefuses: a declaration that contradicts itself stops the start-up, and so does a list whose
// input has what a cursor cannot be bound to.
func TestAddRefuses(t *testing.T) {
	good := metaOf("GET", "/a")
	with := func(change func(*op.Meta)) op.Meta {
		m := good
		change(&m)
		return m
	}
	for want, add := range map[string]func(*op.Set){
		"": func(s *op.Set) { op.Add(s, good, does[nothing, nothing]) },
		"its ID is taken": func(s *op.Set) {
			op.Add(s, good, does[nothing, nothing])
			op.Add(s, with(func(m *op.Meta) { m.Path = "/b" }), does[nothing, nothing])
		},
		"its ID is empty":                  func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.ID = "" }), does[nothing, nothing]) },
		"status 404":                       func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Status = 404 }), does[nothing, nothing]) },
		"status 0":                         func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Status = 0 }), does[nothing, nothing]) },
		`scope "admin"`:                    func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Scope = "admin" }), does[nothing, nothing]) },
		`scope ""`:                         func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Scope = "" }), does[nothing, nothing]) },
		"names no release":                 func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Since = 0 }), does[nothing, nothing]) },
		"no summary":                       func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Summary = "" }), does[nothing, nothing]) },
		"names no client":                  func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.PerClient = 1 }), does[nothing, nothing]) },
		"no path parameter id":             func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Path = "/a/:id" }), does[nothing, nothing]) },
		"path does not name id":            func(s *op.Set) { op.Add(s, good, does[onPath, nothing]) },
		"path parameter other":             func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Path = "/:id/:other" }), does[onPath, nothing]) },
		"[]int cannot be bound":            func(s *op.Set) { op.Add(s, good, does[unbindable, nothing]) },
		"the field days":                   func(*op.Set) { op.DeclareList[unexported, string](good) },
		"the field Days":                   func(*op.Set) { op.DeclareList[hidden, string](good) },
		"no query":                         func(*op.Set) { op.DeclareList[nothing, string](good) },
		"not embed Paging":                 func(*op.Set) { op.DeclareList[unpaged, string](good) },
		"map[string]op_test.part must not": func(s *op.Set) { op.Add(s, good, does[nothing, unviewable]) },
		"embeds part, which must":          func(s *op.Set) { op.Add(s, good, does[nothing, embedsPart]) },
		"it requires name":                 func(s *op.Set) { op.Add(s, metaOf("POST", "/a"), does[requiresLater, nothing]) },
		`release "3" is unknown`:           func(s *op.Set) { op.Add(s, good, does[nothing, badSince]) },
		"default of limit":                 func(s *op.Set) { op.Add(s, good, does[badDefault, nothing]); s.All()[0].New() },
	} {
		if got := panicOf(func() { add(&op.Set{}) }); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("panics with %q, not of %q", got, want)
		}
	}
	_ = unexported{}.days
	s := &op.Set{}
	op.Add(s, with(func(m *op.Meta) { m.PerClient = 1 }), does[nothing, charged])
	op.Add(s, with(func(m *op.Meta) { m.ID, m.Path = "b", "/a/:id" }), does[onPath, nothing])
	if all := s.All(); len(all) != 2 || all[0].Meta().ID != "a.b" || all[1].Meta().ID != "b" {
		t.Errorf("the set is %v", all)
	}
}

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]op.Release{"2.0": op.V2_0, "2.1": op.V2_1, "2.2": op.V2_2, "2.3": op.V2_3, "2.4": op.V2_4, "2.5": op.V2_5, "latest": op.V2_5, "": 0, "2": 0, "2.6": 0, "v2.0": 0, "Latest": 0} {
		var r op.Release
		if err := r.UnmarshalText([]byte(text)); r != want || (err != nil) != (want == 0) {
			t.Errorf("%q is %v, %v", text, r, err)
		}
		if want != 0 && text != "latest" && r.String() != text {
			t.Errorf("%q is written %q", text, r)
		}
	}
}
