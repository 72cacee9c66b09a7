package v1compat

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/domain"
)

// CheckpointLife is how long a checkpoint lasts (decisions 5.7).
const CheckpointLife = 15 * time.Minute

// maxCheckpoints bounds the memory of all walks together, at some 400 bytes
// each; the longest unused are forgotten first, and their walks count again.
const maxCheckpoints = 50_000

// memory keeps checkpoints in this process. It is safe for concurrent use.
type memory struct {
	clock domain.Clock

	mu    sync.Mutex
	marks *lru.Cache[mark, checkpoint]
	// walks counts how often each list was begun: what belongs to an earlier
	// walk of a list is never found again, and ages out.
	walks *lru.Cache[string, int]
	begun int
}

type mark struct {
	list   string
	walk   int
	offset int
}

type checkpoint struct {
	cursor string
	until  time.Time
}

func newMemory(clock domain.Clock) *memory {
	m := &memory{clock: clock}
	var err error
	if m.marks, err = lru.New[mark, checkpoint](maxCheckpoints); err != nil {
		panic(err) // the size is a constant
	}
	if m.walks, err = lru.New[string, int](maxCheckpoints); err != nil {
		panic(err)
	}
	return m
}

// Cursor returns what was put at the offset of a list in the last 15 minutes.
func (m *memory) Cursor(_ context.Context, list string, offset int) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	walk, _ := m.walks.Get(list)
	found, ok := m.marks.Get(mark{list, walk, offset})
	if !ok || m.clock.Now().After(found.until) {
		return "", nil
	}
	return found.cursor, nil
}

// Put remembers a cursor.
func (m *memory) Put(_ context.Context, list string, offset int, cursor string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	walk, _ := m.walks.Get(list)
	m.marks.Add(mark{list, walk, offset}, checkpoint{cursor, m.clock.Now().Add(CheckpointLife)})
	return nil
}

// Drop forgets all of a list.
func (m *memory) Drop(_ context.Context, list string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun++
	m.walks.Add(list, m.begun)
	return nil
}
