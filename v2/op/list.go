package op

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"partnerapi/domain"
)

// Paging selects a page of a list; lists embed it in their Query.
type Paging struct {
	Limit  int    `query:"limit" validate:"between=1 500" default:"100" doc:"Maximum number of items to return."`
	Cursor string `query:"cursor" validate:"max=8192" doc:"The next_cursor of the previous page. Use the same filters and sort order for every page."`

	// Rows, Skip and Total are set by other surfaces in this process. A positive Rows replaces Limit; Skip skips that
	// many rows after the cursor; Total requests the number of rows of the whole list.
	Rows  int
	Skip  int
	Total bool
}

// Page is one page of a list.
type Page[T any] struct {
	Data []T      `json:"data" doc:"The items of this page."`
	Page PageInfo `json:"page" doc:"How to get the next page."`

	// Total is the number of rows of the whole list, if requested.
	Total int `json:"-"`
	// End is the cursor of the page's last row, also on the last page; empty for a page without rows.
	End string `json:"-"`
}

// PageInfo holds the cursor of the next page of a list, and its horizon.
type PageInfo struct {
	NextCursor *string `json:"next_cursor" doc:"The cursor for the next page. Null on the last page."`
	HasMore    bool    `json:"has_more" doc:"Whether there is a next page."`
	// AsOf is zero for callers in this process, who do not need it.
	AsOf domain.Time `json:"as_of" since:"2.5" doc:"The list contains all changes before this time. Every page has the same as_of. If the list supports updated_since, set updated_since to this value for your next sync."`
}

// DeclareList declares an operation that answers with a page of a list.
//
// A cursor is bound to the parameters and the body of its request (ListBinding). DeclareList panics if In's Query does
// not embed Paging, or if In has other fields, to which cursors could not be bound. The tag json:"-" exempts a field
// that the function of the operation sets itself, such as from the clock.
func DeclareList[In, Item any](meta Meta) *Op[In, Page[Item]] {
	return declarePaged[In, Page[Item]](meta, reflect.TypeFor[Paging]())
}

// declarePaged declares an operation whose query embeds part, which is Paging or FeedQuery. It panics if the query does
// not, or if cursors cannot be bound to the input.
func declarePaged[In, Out any](meta Meta, part reflect.Type) *Op[In, Out] {
	paging, err := pagingOf(reflect.TypeFor[In](), part)
	if err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}
	o := Declare[In, Out](meta)
	o.paging = paging
	return o
}

// BindList binds a list in a set: read returns the rows of the window, item converts one of them.
func BindList[In, Row, Item any](
	s *Set, o *Op[In, Page[Item]],
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item,
) {
	bindPaged(s, o, read, item, func(page *Page[Item]) *Page[Item] { return page })
}

// bindPaged binds a list or a feed: read returns the rows of the window, item converts one of them, and output converts
// the page. Its End is the cursor of the slice's End, also on the last page; its NextCursor is set if rows follow.
func bindPaged[In, Out, Row, Item any](
	s *Set, o *Op[In, Out],
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item, output func(*Page[Item]) *Out,
) {
	Bind(s, o, func(ctx context.Context, in *In) (*Out, error) {
		binding, err := ListBinding(o, in)
		if err != nil {
			return nil, err
		}
		window, err := windowOf(s.Cursors, binding, reflect.ValueOf(in).Elem().FieldByIndex(o.paging).Interface())
		if err != nil {
			return nil, err
		}
		fixed, err := o.fixHorizon(ctx, s, in, &window)
		if err != nil {
			return nil, err
		}
		slice, err := read(ctx, in, window)
		if err != nil {
			return nil, err
		}
		if fixed {
			slice.Horizon = window.Horizon
		}

		page := &Page[Item]{Data: make([]Item, len(slice.Rows)), Total: slice.Total}
		for i, row := range slice.Rows {
			page.Data[i] = item(row)
		}
		page.Page.HasMore = slice.More
		if slice.Horizon != nil {
			page.Page.AsOf = domain.At(*slice.Horizon)
		}
		if end := slice.End; end != nil {
			if fixed {
				end.Horizon = window.Horizon
			}
			page.End = s.Cursors.Seal(binding, *end)
		}
		if slice.More {
			page.Page.NextCursor = &page.End
		}
		return output(page), nil
	})
}

// fixHorizon fixes the horizon of the window of a list, if callers are shown it. With updated_since it does not: there
// the read does so itself, after it has refreshed what is stale. A feed, too, has its own horizon.
func (o *Op[In, Out]) fixHorizon(ctx context.Context, s *Set, in *In, w *domain.Window) (fixed bool, err error) {
	v := reflect.ValueOf(in).Elem()
	if _, list := v.FieldByIndex(o.paging).Interface().(Paging); !list || s.FixHorizon == nil || !shows(ctx, asOfSince) {
		return false, nil
	}
	for _, p := range o.input.Query {
		if p.Name == "updated_since" && !v.FieldByIndex(p.index).IsZero() {
			return false, nil
		}
	}
	return true, s.FixHorizon(ctx, w)
}

// asOfSince is the tag since of PageInfo.AsOf.
var asOfSince = func() string {
	f, _ := reflect.TypeFor[PageInfo]().FieldByName("AsOf")
	return f.Tag.Get("since")
}()

// windowOf returns the window that query, a Paging or a FeedQuery, requests. binding is what the cursors of the list
// are bound to. A cursor of another list, or of other filters, is InvalidRequest.
func windowOf(sealer domain.CursorSealer, binding string, query any) (domain.Window, error) {
	var w domain.Window
	var cursor string
	switch q := query.(type) {
	case Paging:
		cursor, w = q.Cursor, domain.Window{Limit: q.Limit, Skip: q.Skip, Total: q.Total}
		if q.Rows > 0 { // set in this process, in place of Limit
			w.Limit = q.Rows
		}
	case FeedQuery:
		cursor, w = q.Cursor, domain.Window{Limit: q.Limit, Latest: q.Cursor == latestCursor}
	}
	if cursor == "" || w.Latest {
		return w, nil
	}
	position, err := sealer.Open(binding, cursor)
	if err != nil {
		return w, domain.ErrInvalid("cursor", "is not a cursor of this list with these filters and this sort")
	}
	w.After = &position
	return w, nil
}

// pagingOf returns the index in a list's input of part, the Paging or FeedQuery that its query embeds. It fails without
// such a part, or for a field that no request sets, as no cursor can be bound to it. json:"-" exempts a field of in.
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
		isOfPart := f.Index[0] == paging.Index[0] // cursors are not bound to these: they select the page
		if !isOfPart && !f.Anonymous && f.Tag.Get("query") == "" {
			return nil, fmt.Errorf("its cursors cannot be bound to the field %s", f.Name)
		}
	}
	return append(append([]int{}, query.Index...), paging.Index...), nil
}

// FeedQuery selects a page of a feed; feeds embed it in their Query.
type FeedQuery struct {
	Limit  int    `query:"limit" validate:"between=1 500" default:"100" doc:"Maximum number of items to return."`
	Cursor string `query:"cursor" validate:"max=8192" doc:"The next_cursor of the previous page, or latest to begin at the end of the feed. If omitted, the feed begins with the oldest stored events."`
}

// latestCursor is the cursor that begins a feed at its end.
const latestCursor = "latest"

// FeedPage is one page of a feed.
type FeedPage[T any] struct {
	Data []T      `json:"data" doc:"The items of this page."`
	Page FeedInfo `json:"page" doc:"How to continue reading the feed."`
}

// FeedInfo holds the cursor from which a feed continues.
type FeedInfo struct {
	NextCursor string       `json:"next_cursor" null:"2.5" doc:"The cursor to continue from, now or later. The cursor stays valid even if there are no more events yet. Null only if follow is false and there are no more events."`
	HasMore    bool         `json:"has_more" doc:"Whether more events are available now. If false, try again later."`
	AsOf       *domain.Time `json:"as_of" since:"2.5" doc:"Time up to which the feed is complete: no event from before this time appears later. For your next sync, set since to this value. Null unless you set follow=false or since."`
}

// DeclareFeed declares an operation that answers with a page of a feed: a list that callers follow, as it only grows at
// its end and its rows never change. Cursors are bound as in DeclareList.
func DeclareFeed[In, Item any](meta Meta) *Op[In, FeedPage[Item]] {
	return declarePaged[In, FeedPage[Item]](meta, reflect.TypeFor[FeedQuery]())
}

// BindFeed binds a feed in a set: read returns the rows of the window, and the position after which the feed continues,
// unless the caller wants its end and it has come; item converts a row.
func BindFeed[In, Row, Item any](
	s *Set, o *Op[In, FeedPage[Item]],
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item,
) {
	bindPaged(s, o, read, item, func(page *Page[Item]) *FeedPage[Item] {
		info := FeedInfo{NextCursor: page.End, HasMore: page.Page.HasMore}
		if as := page.Page.AsOf; !as.IsZero() {
			info.AsOf = &as
		}
		return &FeedPage[Item]{Data: page.Data, Page: info}
	})
}

// ListBinding returns the text that a list's cursors are bound to: the operation's id, and the path, query and body of
// a request for the input, without limit and cursor. input is a pointer. Absent filters are omitted, so that adding a
// filter keeps older cursors valid. An id in the path may be zero.
func ListBinding(o Declaration, input any) (string, error) {
	described, v := o.Input(), reflect.ValueOf(input).Elem()
	target, err := described.target(o.Meta(), described.filters, v)
	if err != nil {
		return "", fmt.Errorf("bind cursors: %w", err)
	}
	binding := o.Meta().ID + " " + target
	if described.Body == nil {
		return binding, nil
	}
	body, err := jsonv2.Marshal(v.FieldByIndex(described.body).Interface(), jsonv2.OmitZeroStructFields(true))
	if err != nil {
		return "", fmt.Errorf("operation %s: bind its cursors: %w", o.Meta().ID, err)
	}
	return binding + " " + string(body), nil
}
