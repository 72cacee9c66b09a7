package v1compat

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"partnerapi/domain"
)

// memoryCheckpoints bounds the memory of all keys' checkpoints together, at some
// 400 bytes each. Beyond it, the key that has the most loses its oldest: no key's
// walks evict those of a key that has fewer.
const memoryCheckpoints = 100_000

// memory keeps checkpoints in this process. It is safe for concurrent use.
type memory struct {
	clock  domain.Clock
	perKey int // keyCheckpoints, or less in tests

	mu    sync.Mutex
	keys  map[string]*keyMemory
	total int
}

// keyMemory is the checkpoints of one key.
type keyMemory struct {
	// marks are in the order in which they were put, and so expire.
	marks *simplelru.LRU[mark, checkpoint]
	// offsets are those of the marks by the names of their lists.
	offsets map[string]map[int]struct{}
}

type mark struct {
	list   string
	offset int
}

type checkpoint struct {
	cursor string
	until  time.Time
}

func newMemory(clock domain.Clock) *memory {
	return &memory{clock: clock, perKey: keyCheckpoints, keys: map[string]*keyMemory{}}
}

// Cursor returns what was put at the offset of a list in the last 15 minutes.
func (m *memory) Cursor(_ context.Context, list List, offset int) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.keys[list.Key]
	if !ok {
		return "", nil
	}

	found, ok := key.marks.Peek(mark{list.Name, offset})
	if !ok || m.clock.Now().After(found.until) {
		return "", nil
	}
	return found.cursor, nil
}

// Put remembers a cursor.
func (m *memory) Put(_ context.Context, list List, offset int, cursor string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(list.Key)
	key := m.key(list.Key)

	if key.offsets[list.Name] == nil {
		key.offsets[list.Name] = map[int]struct{}{}
	}
	key.offsets[list.Name][offset] = struct{}{}
	if !key.marks.Contains(mark{list.Name, offset}) {
		m.total++
	}
	key.marks.Add(mark{list.Name, offset}, checkpoint{cursor, m.clock.Now().Add(CheckpointLife)})

	for m.total > memoryCheckpoints {
		m.largest().marks.RemoveOldest()
	}
	return nil
}

// Drop forgets all checkpoints of a list.
func (m *memory) Drop(_ context.Context, list List) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.keys[list.Key]
	if !ok {
		return nil
	}

	for offset := range key.offsets[list.Name] {
		key.marks.Remove(mark{list.Name, offset})
	}
	return nil
}

// key returns the checkpoints of a key. A key without any is not in the map.
func (m *memory) key(name string) *keyMemory {
	if key, ok := m.keys[name]; ok {
		return key
	}

	key := &keyMemory{offsets: map[string]map[int]struct{}{}}
	var err error
	key.marks, err = simplelru.NewLRU(m.perKey, func(gone mark, _ checkpoint) {
		m.total--
		delete(key.offsets[gone.list], gone.offset)
		if len(key.offsets[gone.list]) == 0 {
			delete(key.offsets, gone.list)
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

// largest returns the checkpoints of the key that has the most.
func (m *memory) largest() (most *keyMemory) {
	for _, key := range m.keys {
		if most == nil || key.marks.Len() > most.marks.Len() {
			most = key
		}
	}
	return most
}

// expire removes the checkpoints of a key that are too old.
func (m *memory) expire(name string) {
	key, ok := m.keys[name]
	if !ok {
		return
	}

	now := m.clock.Now()
	for {
		if _, oldest, ok := key.marks.GetOldest(); !ok || !now.After(oldest.until) {
			return
		}
		key.marks.RemoveOldest()
	}
}
