package v1compat

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// CheckpointLife is how long a checkpoint lasts (decisions 5.7).
const CheckpointLife = 15 * time.Minute

// keyCheckpoints is how many checkpoints a key has at the most, some 4 MB of
// them. At its rate of 600 requests a minute (decisions 2.2) a key leaves 9,000
// while the first of them lasts, so that it loses none before its time.
const keyCheckpoints = 10_000

// Store keeps checkpoints: cursors by the offsets where pages of a list ended.
//
// A checkpoint lasts CheckpointLife. It is evicted earlier only for the walks of
// the same key (beyond keyCheckpoints, oldest first), or as the store says; a
// store that cannot be reached has none. A page whose checkpoint is gone is
// positional: its rows are counted from the start of the list. It shows the right
// rows if the list has not changed since the walk began; else the walk misses a
// row for each one that was removed before the offset, and repeats a row for each
// one that was inserted there. A walker that cannot have that begins anew at
// offset 0, or uses v2, whose cursors need no store.
type Store interface {
	// Cursor returns what was put at the offset of a list, or "".
	Cursor(ctx context.Context, list List, offset int) (string, error)
	Put(ctx context.Context, list List, offset int, cursor string) error
	// Drop forgets all checkpoints of a list.
	Drop(ctx context.Context, list List) error
}

// List is a list as one API key walks over it.
type List struct {
	Key string // the key's prefix
	// Name stands for the operation, its path and its filters.
	Name string
}

// checkpoints remembers where the pages of walks ended, so that the next page
// goes on there instead of counting rows from the start.
type checkpoints struct{ store Store }

// walk is one page of a walk by offset over a list (decisions 5.7).
type walk struct {
	asked
	list List
	// cursor is where the page before this one ended, if this walk read it.
	cursor string
}

// walk begins the page: at offset 0 a new walk, which drops the checkpoints of
// the one before; else from a checkpoint at the offset, if there is one. filters is
// the operation's input: checkpoints are bound to it as cursors are.
func (c *checkpoints) walk(ctx context.Context, route string, o op.Operation, filters any, page asked) (walk, error) {
	text, err := op.ListBinding(o, filters)
	if err != nil {
		return walk{}, err
	}
	sum := sha256.Sum256([]byte(text))
	w := walk{asked: page, list: List{
		Key:  domain.CallerFrom(ctx).Prefix,
		Name: route + "/" + base64.RawURLEncoding.EncodeToString(sum[:]),
	}}

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
