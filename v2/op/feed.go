package op

import (
	"context"
	"fmt"
	"reflect"

	"partnerapi/domain"
)

// FeedQuery is the part of a feed that a caller asks for; feeds embed it in their
// Query.
type FeedQuery struct {
	Limit  int    `query:"limit" validate:"between=1 500" default:"100" doc:"How many items to return at the most."`
	Cursor string `query:"cursor" validate:"max=4096" doc:"The next_cursor of the page before, or latest to begin at the end. Left out, the oldest items that are kept come first."`
}

// latestCursor is the cursor that begins a feed at its end.
const latestCursor = "latest"

// FeedPage is one page of a feed.
type FeedPage[T any] struct {
	Data []T      `json:"data" doc:"The items of this page."`
	Page FeedInfo `json:"page" doc:"Where the feed goes on."`
}

// FeedInfo says where a feed goes on.
type FeedInfo struct {
	NextCursor string `json:"next_cursor" doc:"Where to go on, now or later; never null. It stays good when nothing follows yet."`
	HasMore    bool   `json:"has_more" doc:"More is there now; else ask again later."`
}

// AddFeed declares an operation that answers with a page of a feed: a list whose rows
// never change and come at its end only, which callers follow. read returns the rows
// of the window, and always the position after which the feed goes on. Cursors are
// bound as AddList binds them.
func AddFeed[In, Row, Item any](
	s *Set, meta Meta,
	read func(context.Context, *In, domain.Window) (domain.Slice[Row], error),
	item func(Row) Item,
) *Op[In, FeedPage[Item]] {
	following, err := pagingOf(reflect.TypeFor[In](), reflect.TypeFor[FeedQuery]())
	if err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}

	var o *Op[In, FeedPage[Item]]
	o = Add(s, meta, func(ctx context.Context, in *In) (*FeedPage[Item], error) {
		list, err := newBoundList(s.Cursors, o, in, following)
		if err != nil {
			return nil, err
		}
		asked := list.paging().(*FeedQuery)
		window := domain.Window{Limit: asked.Limit, Latest: asked.Cursor == latestCursor}
		if !window.Latest {
			if window, err = list.window(Paging{Limit: asked.Limit, Cursor: asked.Cursor}); err != nil {
				return nil, err
			}
		}
		slice, err := read(ctx, in, window)
		if err != nil {
			return nil, err
		}
		page := pageOf(list, slice, item)
		return &FeedPage[Item]{Data: page.Data, Page: FeedInfo{NextCursor: page.End, HasMore: slice.More}}, nil
	})
	return o
}
