package op

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"partnerapi/domain"
)

// Paging is the part of a list that a caller asks for; lists embed it in their
// Query.
type Paging struct {
	Limit  int    `query:"limit" validate:"between=1 500" default:"100" doc:"How many items to return at the most."`
	Cursor string `query:"cursor" validate:"max=4096" doc:"The next_cursor of the page before. Its list must have the same filters and the same order."`

	// Rows, Skip and Total are inputs of other surfaces in this process.
	// Rows, where positive, stands in for Limit; Skip passes over that many rows
	// after the cursor; Total asks for the number of rows of the whole list.
	Rows  int
	Skip  int
	Total bool
}

// Page is one page of a list.
type Page[T any] struct {
	Data []T      `json:"data" doc:"The items of this page."`
	Page PageInfo `json:"page" doc:"Where the list goes on."`

	// Total is the number of rows of the whole list, where it was asked for.
	Total int `json:"-"`
	// End is the cursor of the page's last row, also on the last page; empty
	// for a page without rows.
	End string `json:"-"`
}

// PageInfo says where a list goes on.
type PageInfo struct {
	NextCursor *string `json:"next_cursor" doc:"Pass it as cursor for the next page. Null on the last page."`
	HasMore    bool    `json:"has_more" doc:"Whether there is a next page."`
}

// AddList declares an operation that answers with a page of a list: read returns
// the rows of the window, item shows one of them.
//
// A cursor is bound to the operation and to the whole input but its Paging: the
// path, the filters and the sort in the query, and the fields of other surfaces.
// What read derives from the clock is therefore no part of the binding. All
// fields of In must be exported, and its Query must embed Paging; else AddList
// panics.
func AddList[In, Row, Item any](
	s *Set, meta Meta,
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item,
) *Op[In, Page[Item]] {
	paging, err := pagingOf(reflect.TypeFor[In](), reflect.TypeFor[Paging]())
	if err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}

	return Add(s, meta, func(ctx context.Context, in *In) (*Page[Item], error) {
		bound := *in
		part := reflect.ValueOf(&bound).Elem().FieldByIndex(paging).Addr().Interface().(*Paging)
		asked := *part
		*part = Paging{}
		list := newBoundList(s.Cursors, meta.ID, bound)

		window, err := list.window(asked)
		if err != nil {
			return nil, err
		}
		slice, err := read(ctx, in, window)
		if err != nil {
			return nil, err
		}
		return pageOf(list, slice, item), nil
	})
}

// pagingOf returns the index of the Paging, or what stands for it, within a list's
// input.
func pagingOf(in, part reflect.Type) ([]int, error) {
	for _, f := range reflect.VisibleFields(in) {
		if !f.IsExported() {
			return nil, fmt.Errorf("its cursors cannot be bound to the unexported field %s", f.Name)
		}
	}
	query, _ := in.FieldByName("Query")
	if query.Type == nil || query.Type.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its input has no query")
	}
	paging, ok := query.Type.FieldByName(part.Name())
	if !ok || paging.Type != part {
		return nil, fmt.Errorf("its query does not embed %s", part.Name())
	}
	return append(append([]int{}, query.Index...), paging.Index...), nil
}

// boundList is one list of one operation, as its cursors are bound to it.
type boundList struct {
	sealer  domain.CursorSealer
	binding string
}

// newBoundList binds to an operation and to its input without the Paging.
func newBoundList(sealer domain.CursorSealer, operation string, in any) boundList {
	binding, err := json.Marshal([]any{operation, in})
	if err != nil {
		panic(err) // an input without a JSON form is a programming error
	}
	return boundList{sealer: sealer, binding: string(binding)}
}

// window reads the part of the list that is asked for; InvalidRequest for a
// cursor that this list did not give.
func (l boundList) window(p Paging) (domain.Window, error) {
	w := domain.Window{Limit: p.Limit, Skip: p.Skip, Total: p.Total}
	if p.Rows > 0 {
		w.Limit = p.Rows
	}
	if p.Cursor == "" {
		return w, nil
	}
	position, err := l.sealer.Open(l.binding, p.Cursor)
	if err != nil {
		return w, domain.ErrInvalid("cursor", "is not a cursor of this list with these filters and this sort")
	}
	w.After = &position
	return w, nil
}

// pageOf makes the page that shows a slice of the list.
func pageOf[Row, Item any](l boundList, s domain.Slice[Row], item func(Row) Item) *Page[Item] {
	page := &Page[Item]{Data: make([]Item, len(s.Rows)), Total: s.Total}
	for i, row := range s.Rows {
		page.Data[i] = item(row)
	}
	page.Page.HasMore = s.More
	if s.End != nil {
		page.End = l.sealer.Seal(l.binding, *s.End)
	}
	if s.More {
		page.Page.NextCursor = &page.End
	}
	return page
}
