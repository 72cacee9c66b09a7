package op_test

import (
	"context"
	"fmt"
	"slices"
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

// TestAddRefuses: a declaration that contradicts itself stops the start-up.
func TestAddRefuses(t *testing.T) {
	good := func() op.Meta {
		return op.Meta{ID: "a.b", Method: "GET", Path: "/a", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s"}
	}
	with := func(change func(*op.Meta)) op.Meta {
		m := good()
		change(&m)
		return m
	}
	for want, add := range map[string]func(*op.Set){
		"": func(s *op.Set) { op.Add(s, good(), does[nothing, nothing]) },
		"its id is taken": func(s *op.Set) {
			op.Add(s, good(), does[nothing, nothing])
			op.Add(s, with(func(m *op.Meta) { m.Path = "/b" }), does[nothing, nothing])
		},
		"its id is empty":       func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.ID = "" }), does[nothing, nothing]) },
		"status 404":            func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Status = 404 }), does[nothing, nothing]) },
		"status 0":              func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Status = 0 }), does[nothing, nothing]) },
		`scope "admin"`:         func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Scope = "admin" }), does[nothing, nothing]) },
		`scope ""`:              func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Scope = "" }), does[nothing, nothing]) },
		"names no release":      func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Since = 0 }), does[nothing, nothing]) },
		"no summary":            func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Summary = "" }), does[nothing, nothing]) },
		"names no client":       func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.PerClient = 1 }), does[nothing, nothing]) },
		"no path parameter id":  func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Path = "/a/:id" }), does[nothing, nothing]) },
		"path does not name id": func(s *op.Set) { op.Add(s, good(), does[onPath, nothing]) },
		"path parameter other":  func(s *op.Set) { op.Add(s, with(func(m *op.Meta) { m.Path = "/:id/:other" }), does[onPath, nothing]) },
		"[]int cannot be bound": func(s *op.Set) { op.Add(s, good(), does[unbindable, nothing]) },
		"default of limit":      func(s *op.Set) { op.Add(s, good(), does[badDefault, nothing]); s.All()[0].New() },
	} {
		if got := panicOf(func() { add(&op.Set{}) }); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("panics with %q, not of %q", got, want)
		}
	}
	s := &op.Set{}
	op.Add(s, with(func(m *op.Meta) { m.PerClient = 1 }), does[nothing, charged])
	op.Add(s, with(func(m *op.Meta) { m.ID, m.Path = "b", "/a/:id" }), does[onPath, nothing])
	if all := s.All(); len(all) != 2 || all[0].Meta().ID != "a.b" || all[1].Meta().ID != "b" {
		t.Errorf("the set is %v", all)
	}
}

// TestCodes: what an operation can fail with follows from its declaration.
func TestCodes(t *testing.T) {
	common := []domain.Code{
		domain.InvalidRequest, domain.Unauthorized, domain.Forbidden, domain.RateLimited, domain.Internal, domain.Unavailable,
	}
	s := &op.Set{}
	meta := func(method string, fails ...domain.Code) op.Meta {
		return op.Meta{ID: fmt.Sprint(len(s.All())), Method: method, Path: "/a", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s", Fails: fails}
	}
	op.Add(s, meta("GET"), does[nothing, nothing])
	op.Add(s, meta("GET", domain.Conflict, domain.NotFound), does[withQuery, nothing])
	op.Add(s, meta("PATCH"), does[withBody, nothing])
	op.Add(s, meta("POST"), does[nothing, nothing])
	object := meta("GET")
	object.Path = "/a/:id"
	op.Add(s, object, does[onPath, nothing])
	for i, more := range [][]domain.Code{
		nil, {domain.NotFound, domain.Conflict}, {domain.RequestTimeout, domain.PayloadTooLarge}, {domain.Conflict}, {domain.NotFound},
	} {
		got, want := op.Codes(s.All()[i]), slices.Concat(common, more)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("operation %d can fail with %v, not %v", i, got, want)
		}
	}
}

// TestCallChecks: nothing runs an operation without its scope or with an input
// that breaks its rules.
func TestCallChecks(t *testing.T) {
	s, runs := &op.Set{}, 0
	o := op.Add(s, op.Meta{ID: "o", Method: "GET", Path: "/o", Scope: domain.Write, Since: op.V2_0, Status: 200, Summary: "s"},
		func(context.Context, *withQuery) (*nothing, error) { runs++; return &nothing{}, nil })
	as := func(scopes ...domain.Scope) context.Context {
		return domain.WithCaller(t.Context(), &domain.Caller{Scopes: scopes})
	}
	for _, ctx := range []context.Context{t.Context(), as(), as(domain.Read)} {
		if _, err := op.Call(ctx, s, o, o.New().(*withQuery)); !domain.IsCode(err, domain.Forbidden) {
			t.Errorf("without the scope: %v", err)
		}
		if _, err := s.Operation(o).Run(ctx, &withQuery{}); !domain.IsCode(err, domain.Forbidden) {
			t.Errorf("the scope comes second: %v", err)
		}
	}
	if _, err := s.Operation(o).Run(as(domain.Write), &withQuery{}); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("a limit of 0: %v", err)
	}
	if _, err := s.Operation(o).Run(as(domain.Write), &nothing{}); err == nil || domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("an input of another type: %v", err)
	}
	if runs != 0 {
		t.Errorf("ran %d times", runs)
	}
	if out, err := s.Operation(o).Run(as(domain.Read, domain.Write), o.New()); err != nil || runs != 1 || out == nil {
		t.Errorf("ran %d times: %v, %v", runs, out, err)
	}
}

// TestAllClients: an operation that needs a key with access to all clients is
// refused to others.
func TestAllClients(t *testing.T) {
	s := &op.Set{}
	o := op.Add(s, op.Meta{
		ID: "o", Method: "POST", Path: "/o", Scope: domain.Write, AllClients: true, Since: op.V2_0, Status: 200, Summary: "s",
	}, does[withQuery, nothing])
	for want, caller := range map[string]*domain.Caller{
		"this key lacks the scope write":                        {Scopes: []domain.Scope{domain.Read}},
		"this operation needs a key with access to all clients": {Scopes: []domain.Scope{domain.Write}},
		"limit must be between 1 and 500":                       {Scopes: []domain.Scope{domain.Write}, AllClients: true},
	} {
		_, err := op.Call(domain.WithCaller(t.Context(), caller), s, o, &withQuery{})
		if got := domain.AsError(err).Message; got != want {
			t.Errorf("%+v: %s, not %s", caller, got, want)
		}
	}
}

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]op.Release{"2.0": op.V2_0, "2.1": op.V2_1, "2.2": op.V2_2, "2.3": op.V2_3, "2.4": op.V2_4, "latest": op.V2_4, "": 0, "2": 0, "2.5": 0, "v2.0": 0, "Latest": 0} {
		var r op.Release
		if err := r.UnmarshalText([]byte(text)); r != want || (err != nil) != (want == 0) {
			t.Errorf("%q is %v, %v", text, r, err)
		}
		if want != 0 && text != "latest" && r.String() != text {
			t.Errorf("%q is written %q", text, r)
		}
	}
}
