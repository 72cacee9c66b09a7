package v1compat

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// CheckpointLife is the lifetime of a checkpoint (decisions 5.7).
const CheckpointLife = 15 * time.Minute

// keyCheckpoints is the maximum number of checkpoints per key, some 4 MB. At 600 requests a minute (decisions 2.2)
// a key creates 9,000 within CheckpointLife, so none is evicted early.
const keyCheckpoints = 10_000

// Store keeps checkpoints: cursors by the offset at which a page of a list ended.
//
// A checkpoint lasts CheckpointLife. It is evicted earlier only for walks of the same key (beyond keyCheckpoints,
// oldest first), or as the store documents; an unreachable store has none. A page whose checkpoint is gone is
// positional: its rows are counted from the start of the list. It is correct if the list has not changed since the
// walk began; otherwise the walk misses a row for each one removed before the offset, and repeats a row for each one
// inserted there. To avoid that, a client restarts at offset 0, or uses v2, whose cursors need no store.
type Store interface {
	// Cursor returns the cursor that was put at the offset of a list, or "".
	Cursor(ctx context.Context, list List, offset int) (string, error)
	Put(ctx context.Context, list List, offset int, cursor string) error
	// Drop forgets all checkpoints of a list.
	Drop(ctx context.Context, list List) error
}

// List is a list as one API key walks it.
type List struct {
	Key string // the key's name (domain.Caller.Name)
	// Name identifies the operation, its path and its filters.
	Name string
}

// walk is a page of a walk by offset over a list (decisions 5.7). It begins at the cursor where the previous page
// ended.
type walk struct {
	pageRequest
	list List
	// cursor is where the page before this one ended; empty if there is no checkpoint.
	cursor string
}

// beginPage returns the walk by offset that reads a page of a list. At offset 0 it drops the previous walk's
// checkpoints. At another offset the walk begins at the cursor of the checkpoint there; without one, v2 counts the rows
// before the page. filters is the operation's input: a checkpoint is valid only for the same filters, as a cursor is.
func (f *Facade) beginPage(ctx context.Context, route string, o op.Declaration, filters any, page pageRequest) (walk, error) {
	text, err := op.ListBinding(o, filters)
	if err != nil {
		return walk{}, err
	}
	sum := sha256.Sum256([]byte(text))
	w := walk{pageRequest: page, list: List{
		Key:  domain.CallerFrom(ctx).Name(),
		Name: route + "/" + base64.RawURLEncoding.EncodeToString(sum[:]),
	}}

	if page.offset == 0 {
		return w, f.Store.Drop(ctx, w.list)
	}
	w.cursor, err = f.Store.Cursor(ctx, w.list, page.offset)
	return w, err
}

// paging returns the v2 Paging that reads the page: from the cursor or, without one, by the offset. Limit must be valid
// in v2, and Rows, v1's limit, takes its place.
func (w walk) paging() op.Paging {
	p := op.Paging{Limit: min(w.limit, maxLimit), Rows: w.limit, Cursor: w.cursor, Total: true}
	if w.cursor == "" {
		p.Skip = min(w.offset, math.MaxInt32) // the largest that the query builder takes
	}
	return p
}

// isStaleCursor reports whether v2 refused the checkpoint's cursor, and not the request. A store may have cursors of an
// earlier release, which v2 does not read any more. The page is then read by its offset.
func (w walk) isStaleCursor(err error) bool {
	var refused *domain.Error
	return w.cursor != "" && errors.As(err, &refused) && len(refused.Fields) > 0 && refused.Fields[0].Field == "cursor"
}

// total returns the total that v1 shows: rows, the number of rows that v2 counted, adjusted so that clients walk
// correctly (decisions 5.7). shown is the number of rows on the page, and more whether rows follow. If rows follow, the
// total is above the end of the page, so that the client continues. If a page that began at a cursor is the last, the
// total is its end, so that the client stops, even if rows inserted before it were counted.
func (w walk) total(rows, shown int, more bool) int {
	end := w.offset + shown
	switch {
	case more:
		return max(rows, end+1)
	case w.cursor != "":
		return end
	case shown == 0: // at or past the end
		return rows
	}
	return max(rows, end)
}

// saveCheckpoint stores a checkpoint for the offset after a page of shown rows: end, the cursor of its last row. A page
// without rows ends at its own offset, and needs none.
func (f *Facade) saveCheckpoint(ctx context.Context, w walk, shown int, end string) error {
	if shown == 0 {
		return nil
	}
	return f.Store.Put(ctx, w.list, w.offset+shown, end)
}

// memoryCheckpoints bounds all keys' checkpoints together, at some 400 bytes each. Beyond it, the key with the most
// loses its oldest: no key's walks evict those of a key with fewer.
const memoryCheckpoints = 100_000

// memory keeps checkpoints in this process. It is safe for concurrent use.
type memory struct {
	clock  domain.Clock
	perKey int // keyCheckpoints, or less in tests

	mu    sync.Mutex
	keys  map[string]*keyCheckpointsInMemory
	total int
}

// keyCheckpointsInMemory is the checkpoints of one key.
type keyCheckpointsInMemory struct {
	// marks are in the order of their last Put, which is also the order of expiry.
	marks *simplelru.LRU[mark, checkpoint]
	// offsets are the offsets of the marks, by list name.
	offsets map[string]map[int]struct{}
}

// mark identifies a checkpoint among those of a key.
type mark struct {
	list   string
	offset int
}

// checkpoint is a cursor and its expiry, by Elapsed.
type checkpoint struct {
	cursor string
	until  time.Duration
}

// newMemory returns an empty store.
func newMemory(clock domain.Clock) *memory {
	return &memory{clock: clock, perKey: keyCheckpoints, keys: map[string]*keyCheckpointsInMemory{}}
}

// Cursor returns the cursor at the offset of a list; empty if there is none.
func (m *memory) Cursor(_ context.Context, list List, offset int) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.keys[list.Key]
	if !ok {
		return "", nil
	}

	found, ok := key.marks.Peek(mark{list.Name, offset}) // not Get: expire needs the order of Put
	if !ok || m.clock.Elapsed() > found.until {
		return "", nil
	}
	return found.cursor, nil
}

// Put stores a cursor, and deletes the key's expired checkpoints. Beyond memoryCheckpoints it evicts the oldest of the
// key with the most.
func (m *memory) Put(_ context.Context, list List, offset int, cursor string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(list.Key)
	key := m.ensureKey(list.Key)

	if key.offsets[list.Name] == nil {
		key.offsets[list.Name] = map[int]struct{}{}
	}
	key.offsets[list.Name][offset] = struct{}{}
	if !key.marks.Contains(mark{list.Name, offset}) {
		m.total++
	}
	key.marks.Add(mark{list.Name, offset}, checkpoint{cursor, m.clock.Elapsed() + CheckpointLife})

	for m.total > memoryCheckpoints {
		m.largest().marks.RemoveOldest() // also decreases total (ensureKey)
	}
	return nil
}

// Drop deletes all checkpoints of a list.
func (m *memory) Drop(_ context.Context, list List) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.keys[list.Key]
	if !ok {
		return nil
	}

	for offset := range key.offsets[list.Name] {
		key.marks.Remove(mark{list.Name, offset}) // also deletes the offset (ensureKey)
	}
	return nil
}

// ensureKey returns the checkpoints of a key, and adds an entry for the key if there is none. A checkpoint that is
// removed updates total and the offsets; the last one of a key also removes the entry.
func (m *memory) ensureKey(name string) *keyCheckpointsInMemory {
	if key, ok := m.keys[name]; ok {
		return key
	}

	key := &keyCheckpointsInMemory{offsets: map[string]map[int]struct{}{}}
	var err error
	key.marks, err = simplelru.NewLRU(m.perKey, func(removed mark, _ checkpoint) {
		m.total--
		delete(key.offsets[removed.list], removed.offset)
		if len(key.offsets[removed.list]) == 0 {
			delete(key.offsets, removed.list)
		}
		if len(key.offsets) == 0 {
			delete(m.keys, name)
		}
	})
	if err != nil {
		panic(err) // the size is positive
	}
	m.keys[name] = key
	return key
}

// largest returns the checkpoints of the key with the most.
func (m *memory) largest() (most *keyCheckpointsInMemory) {
	for _, key := range m.keys {
		if most == nil || key.marks.Len() > most.marks.Len() {
			most = key
		}
	}
	return most
}

// expire deletes the expired checkpoints of a key.
func (m *memory) expire(name string) {
	key, ok := m.keys[name]
	if !ok {
		return
	}

	elapsed := m.clock.Elapsed()
	for {
		if _, oldest, ok := key.marks.GetOldest(); !ok || elapsed <= oldest.until {
			return
		}
		key.marks.RemoveOldest()
	}
}
