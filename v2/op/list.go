package op

import (
	"context"
	"fmt"
	"reflect"
	"slices"

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
// A cursor is bound to the request, as ListBinding writes it. What read derives from
// the clock is therefore no part of the binding. AddList panics for an In whose Query
// does not embed Paging, or that has fields which are in no request; json:"-" marks
// those that read sets.
func AddList[In, Row, Item any](
	s *Set, meta Meta,
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item,
) *Op[In, Page[Item]] {
	paging, err := pagingOf(reflect.TypeFor[In](), reflect.TypeFor[Paging]())
	if err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}

	var o *Op[In, Page[Item]]
	o = Add(s, meta, func(ctx context.Context, in *In) (*Page[Item], error) {
		list, err := newBoundList(s.Cursors, o, in, paging)
		if err != nil {
			return nil, err
		}
		window, err := list.window(*list.paging().(*Paging))
		if err != nil {
			return nil, err
		}
		slice, err := read(ctx, in, window)
		if err != nil {
			return nil, err
		}
		return pageOf(list, slice, item), nil
	})
	return o
}

// pagingOf returns the index of the Paging, or what stands for it, within a list's
// input.
func pagingOf(in, part reflect.Type) ([]int, error) {
	for _, f := range reflect.VisibleFields(in) {
		if !slices.Contains([]string{"Path", "Query", "Body"}, f.Name) && f.Tag.Get("json") != "-" {
			return nil, fmt.Errorf("its cursors cannot be bound to the field %s", f.Name)
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
	for _, f := range reflect.VisibleFields(query.Type) {
		if f.Index[0] != paging.Index[0] && !f.Anonymous && f.Tag.Get("query") == "" {
			return nil, fmt.Errorf("its cursors cannot be bound to the field %s", f.Name)
		}
	}
	return append(append([]int{}, query.Index...), paging.Index...), nil
}

// boundList is one list of one operation, as its cursors are bound to it.
type boundList struct {
	sealer    domain.CursorSealer
	binding   string
	operation string
	input     reflect.Value
	at        []int // where the input has its paging
}

// newBoundList binds to the request for an input, a pointer, which has its Paging, or
// what stands for it, at an index.
func newBoundList(sealer domain.CursorSealer, o Operation, in any, at []int) (boundList, error) {
	binding, err := ListBinding(o, in)
	return boundList{sealer, binding, o.Meta().ID, reflect.ValueOf(in).Elem(), at}, err
}

// paging returns a pointer to the Paging, or to what stands for it.
func (l boundList) paging() any { return l.input.FieldByIndex(l.at).Addr().Interface() }

// open returns the position of a cursor of this list.
func (l boundList) open(cursor string) (domain.Position, error) {
	p, err := l.sealer.Open(l.binding, cursor)
	if err == nil {
		return p, nil
	}
	for _, binding := range l.bindingsBefore() {
		if p, err = l.sealer.Open(binding, cursor); err == nil {
			return p, nil
		}
	}
	return p, err
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
	position, err := l.open(p.Cursor)
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
