package v1compat

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Paging is the page of every list of v1.
type Paging[Item any] struct {
	Items  []Item `json:"items"`
	Limit  int    `json:"limit"`
	Offset int    `json:"offset"`
	Total  int    `json:"total"`
}

// asked is one page as it is asked for, its limit within the bounds.
type asked struct{ limit, offset int }

// windowed is the Query of a list: one of the types below, each with the limit
// of its lists.
type windowed interface{ asked() asked }

// window is the offset that every list takes.
type window struct {
	Offset integer `query:"offset" default:"0" doc:"How many items to pass over."`
}

func (w window) upTo(most int, limit integer) asked {
	return asked{limit: min(max(int(limit), 1), most), offset: int(w.Offset)}
}

// upTo50 is the window of most lists.
type upTo50 struct {
	Limit integer `query:"limit" default:"20" doc:"How many items to return, from 1 to 50; others are moved to the bound."`
	window
}

func (w upTo50) asked() asked { return w.upTo(50, w.Limit) }

// upTo1000 is the window of longer lists.
type upTo1000 struct {
	Limit integer `query:"limit" default:"200" doc:"How many items to return, from 1 to 1000; others are moved to the bound."`
	window
}

func (w upTo1000) asked() asked { return w.upTo(1000, w.Limit) }

// pageOf reads the page off a list's input.
func pageOf(in any) (asked, error) {
	q, ok := reflect.ValueOf(in).Elem().FieldByName("Query").Interface().(windowed)
	if !ok {
		return asked{}, fmt.Errorf("%T has no window", in)
	}
	page := q.asked()
	if page.offset < 0 {
		return asked{}, domain.ErrInvalid("offset", "must be at least 0")
	}
	return page, nil
}

// walk is one page of a walk by offset over a list (decisions 5.7).
type walk struct {
	asked
	list string
	// cursor is where the page before this one ended, if this walk read it.
	cursor string
}

// checkpoints remembers where the pages of walks ended, so that the next page
// goes on there instead of counting rows from the start.
type checkpoints struct{ store Store }

// Store keeps checkpoints for a while: for each list, offsets and cursors. A
// list's name holds the caller's key, the operation and the filters. Where it
// cannot be reached, walks fall back to counting.
type Store interface {
	// Cursor returns what was put at the offset of a list, or "".
	Cursor(ctx context.Context, list string, offset int) (string, error)
	Put(ctx context.Context, list string, offset int, cursor string) error
	// Drop forgets all of a list.
	Drop(ctx context.Context, list string) error
}

// walk begins the page: at offset 0 a new walk, which drops the checkpoints of
// the one before; else from a checkpoint at the offset, if there is one.
func (c *checkpoints) walk(ctx context.Context, operation string, filters any, page asked) (walk, error) {
	text, err := json.Marshal(filters)
	if err != nil {
		return walk{}, fmt.Errorf("name a list of %s: %w", operation, err)
	}
	sum := sha256.Sum256(text)
	w := walk{asked: page, list: domain.CallerFrom(ctx).Prefix + "/" + operation + "/" + base64.RawURLEncoding.EncodeToString(sum[:])}
	if page.offset == 0 {
		return w, c.store.Drop(ctx, w.list)
	}
	w.cursor, err = c.store.Cursor(ctx, w.list, page.offset)
	return w, err
}

// paging is the page in v2's terms.
func (w walk) paging() op.Paging {
	p := op.Paging{Limit: min(w.limit, 500), Rows: w.limit, Cursor: w.cursor, Total: true}
	if w.cursor == "" {
		p.Skip = min(w.offset, math.MaxInt32) // all that the query builder holds
	}
	return p
}

// outdated reports an error of the checkpoint's cursor rather than of the
// request: a store outlives the release that put it there. The page is then
// counted.
func (w walk) outdated(err error) bool {
	var refused *domain.Error
	return w.cursor != "" && errors.As(err, &refused) && len(refused.Fields) > 0 && refused.Fields[0].Field == "cursor"
}

// total is the number of rows of the list, as counted, unless a walker would
// then go wrong (decisions 5.7). Where rows follow, the total is above the end of
// the page: the walker must not stop. On a continued walk without rows that
// follow, it is the end of the page: the walker must stop, also when rows that
// came in behind it were counted.
func (w walk) total(rows, shown int, more bool) int {
	end := w.offset + shown
	switch {
	case more:
		return max(rows, end+1)
	case w.cursor != "":
		return end
	case shown == 0: // past the end
		return rows
	}
	return max(rows, end)
}

// leave puts a checkpoint where the page ended.
func (c *checkpoints) leave(ctx context.Context, w walk, shown int, end string) error {
	if shown == 0 {
		return nil
	}
	return c.store.Put(ctx, w.list, w.offset+shown, end)
}
