package op_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// numbers asks for the numbers from 1 up, as text.
type numbers struct{ Query struct{ op.Paging } }

// aList declares the list of the numbers up to 5; got holds the last window.
func aList(s *op.Set, got *domain.Window) *op.Op[numbers, op.Page[string]] {
	list := op.DeclareList[numbers, string](metaOf("GET", "/numbers"))
	op.BindList(s, list, func(_ context.Context, _ *numbers, w domain.Window) (domain.Slice[int], error) {
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

// TestList: a list is read to its end through its cursors, with any limit, and after a page of
// another surface too.
func TestList(t *testing.T) {
	set, got := &op.Set{Cursors: domain.CursorSealer{Secret: []byte("secret")}}, domain.Window{}
	list, ctx := aList(set, &got), scoped(t, domain.Read)

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
	in.Query.Paging = op.Paging{Limit: 500, Cursor: page.End}
	if page, err := op.Call(ctx, set, list, in); err != nil || !slices.Equal(page.Data, []string{"3", "4", "5"}) {
		t.Errorf("after such a page: %+v, %v", page, err)
	}
	in.Query.Cursor = "x"
	if _, err := op.Call(ctx, set, list, in); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("a cursor of nobody: %v", err)
	}
}
