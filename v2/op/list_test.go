package op_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// numbers asks for the numbers from 1 up, as text.
type numbers struct {
	Path struct {
		ID domain.ClientID `path:"id"`
	}
	Query struct {
		op.Paging
		within
		Q    string `query:"q"`
		Sort string `query:"sort" default:"up"`
	}
}

// moreNumbers is numbers of a later release.
type moreNumbers struct {
	Path struct {
		ID domain.ClientID `path:"id"`
	}
	Query struct {
		op.Paging
		Odd *bool `query:"odd"`
		within
		Q    string `query:"q"`
		Even bool   `query:"even" default:"true"`
		Sort string `query:"sort" default:"up"`
	}
}

type within struct {
	Since *domain.Time `query:"since"`
}

// aList declares the list of the numbers up to 5; got holds the last window.
func aList(s *op.Set, id string, got *domain.Window) *op.Op[numbers, op.Page[string]] {
	return listOf[numbers](s, id, got)
}

func listOf[In any](s *op.Set, id string, got *domain.Window) *op.Op[In, op.Page[string]] {
	meta := op.Meta{
		ID: id, Method: "GET", Path: "/" + id + "/:id", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s",
	}
	list := op.DeclareList[In, string](meta)
	op.BindList(s, list, func(_ context.Context, _ *In, w domain.Window) (domain.Slice[int], error) {
		*got = w
		first := 1
		if w.After != nil {
			first, _ = strconv.Atoi(w.After.Key)
			first++
		}
		slice := domain.Slice[int]{Total: 5}
		for n := first; n <= 5 && len(slice.Rows) < w.Limit; n++ {
			slice.Rows = append(slice.Rows, n)
			slice.End = &domain.Position{Key: strconv.Itoa(n)}
		}
		slice.More = len(slice.Rows) > 0 && slices.Max(slice.Rows) < 5
		return slice, nil
	}, strconv.Itoa)
	return list
}

// TestList: a list is read to its end through its cursors, with any limit.
func TestList(t *testing.T) {
	set, got := &op.Set{Cursors: domain.CursorSealer{Secret: []byte("secret")}}, domain.Window{}
	list := aList(set, "numbers", &got)
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Scopes: []domain.Scope{domain.Read}})

	in := list.New().(*numbers)
	var all []string
	for limit := 1; ; limit++ {
		in.Query.Limit = limit
		page, err := op.Call(ctx, set, list, in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Data...)
		if !page.Page.HasMore {
			break
		}
		in.Query.Cursor = *page.Page.NextCursor
	}
	if !slices.Equal(all, []string{"1", "2", "3", "4", "5"}) {
		t.Errorf("the pages hold %v", all)
	}

	in.Query.Paging = op.Paging{Limit: 3, Rows: 2, Skip: 1, Total: true}
	page, err := op.Call(ctx, set, list, in)
	if err != nil || got.Limit != 2 || got.Skip != 1 || !got.Total || got.After != nil || page.Total != 5 || page.End == "" {
		t.Errorf("the window is %+v, the page %+v: %v", got, page, err)
	}
	in.Query.Cursor = "x"
	if _, err := op.Call(ctx, set, list, in); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("a cursor of nobody: %v", err)
	}
}

// TestCursorBinding: a cursor is good for the same list only: the operation, the
// path, the filters and the sort.
func TestCursorBinding(t *testing.T) {
	set, got := &op.Set{Cursors: domain.CursorSealer{Secret: []byte("secret")}}, domain.Window{}
	list, other := aList(set, "numbers", &got), aList(set, "others", &got)
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Scopes: []domain.Scope{domain.Read}})
	noon := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	with := func(change func(*numbers)) *numbers {
		in := list.New().(*numbers)
		in.Path.ID, in.Query.Since = domain.ClientID{15: 1}, &domain.Time{Time: noon}
		change(in)
		return in
	}
	page, err := op.Call(ctx, set, list, with(func(in *numbers) { in.Query.Limit = 2 }))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := op.Call(ctx, set, list, with(func(in *numbers) { in.Query.Limit = 2 })); err != nil || again.End != page.End {
		t.Errorf("a page that is read again: %+v, %v", again, err)
	}

	for name, change := range map[string]func(*numbers){
		"same":      func(*numbers) {},
		"limit":     func(in *numbers) { in.Query.Limit = 500 },
		"rows":      func(in *numbers) { in.Query.Rows, in.Query.Skip, in.Query.Total = 1, 2, true },
		"time zone": func(in *numbers) { in.Query.Since.Time = noon.In(time.FixedZone("", 3600)) },
		"-path":     func(in *numbers) { in.Path.ID[15]++ },
		"-filter":   func(in *numbers) { in.Query.Q = "x" },
		"-sort":     func(in *numbers) { in.Query.Sort = "down" },
		"-embedded": func(in *numbers) { in.Query.Since.Time = noon.Add(time.Second) },
		"-absent":   func(in *numbers) { in.Query.Since = nil },
	} {
		in := with(change)
		in.Query.Cursor = page.End
		_, err := op.Call(ctx, set, list, in)
		if refused := domain.IsCode(err, domain.InvalidRequest); refused != strings.HasPrefix(name, "-") || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := with(func(in *numbers) { in.Query.Cursor = page.End })
	if _, err := op.Call(ctx, set, other, in); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("a cursor of another operation: %v", err)
	}
}

// TestCursorsOfLaterFilters: a filter that a later release adds leaves the cursors of
// before good, unless it is given; and cursors of the later release are taken by the one
// before, whichever process of a rolling upgrade answers.
func TestCursorsOfLaterFilters(t *testing.T) {
	sealer, got := domain.CursorSealer{Secret: []byte("secret")}, domain.Window{}
	then, now := &op.Set{Cursors: sealer}, &op.Set{Cursors: sealer}
	before, later := listOf[numbers](then, "numbers", &got), listOf[moreNumbers](now, "numbers", &got)
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Scopes: []domain.Scope{domain.Read}})
	old, renewed := before.New().(*numbers), later.New().(*moreNumbers)
	old.Query.Limit, renewed.Query.Limit = 2, 2
	old.Query.Q, renewed.Query.Q = "é", "é"
	theirs, err := op.Call(ctx, then, before, old)
	if err != nil {
		t.Fatal(err)
	}

	renewed.Query.Cursor = theirs.End
	ours, err := op.Call(ctx, now, later, renewed)
	if err != nil || !slices.Equal(ours.Data, []string{"3", "4"}) {
		t.Fatalf("a cursor of before: %+v, %v", ours, err)
	}
	old.Query.Cursor = ours.End
	if page, err := op.Call(ctx, then, before, old); err != nil || !slices.Equal(page.Data, []string{"5"}) {
		t.Errorf("a later cursor: %+v, %v", page, err)
	}
	renewed.Query.Odd = new(false)
	if _, err := op.Call(ctx, now, later, renewed); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("a cursor of before with a filter that was not: %v", err)
	}
}

// TestListRefuses: an input that a cursor cannot be bound to stops the start-up.
func TestListRefuses(t *testing.T) {
	type unexported struct {
		Query struct{ op.Paging }
		days  int
	}
	type unpaged struct{ Query struct{ Q string } }
	type hidden struct {
		Query struct {
			op.Paging
			Days int
		}
	}
	meta := op.Meta{ID: "a", Method: "GET", Path: "/a", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s"}
	for want, declare := range map[string]func(){
		"the field days":   func() { op.DeclareList[unexported, string](meta) },
		"the field Days":   func() { op.DeclareList[hidden, string](meta) },
		"no query":         func() { op.DeclareList[nothing, string](meta) },
		"not embed Paging": func() { op.DeclareList[unpaged, string](meta) },
	} {
		if got := panicOf(declare); !strings.Contains(got, want) {
			t.Errorf("panics with %q, not of %q", got, want)
		}
	}
	_ = unexported{}.days
}
