package idmap

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"partnerapi/domain"
)

// NumberKey is a number of one kind, as callers of v1 send it.
type NumberKey struct {
	Kind   Kind
	Number int64
}

// IDKey is an object's id.
type IDKey struct {
	Kind Kind
	ID   UUID
}

// String is the id as v2 shows it.
func (k IDKey) String() string { return spaces[k.Kind].show(k.ID) }

// A pair is an object and the number that it holds now.
type pair struct {
	kind   Kind
	number int64
	id     UUID
}

// reachedKey is the number of an object that an API key reached.
type reachedKey struct {
	caller domain.KeyID
	NumberKey
}

// A cache holds pairs, least recently used first out, while Watch listens for
// changes of the registry; otherwise it is empty.
//
// A caller must not learn, by the time of an answer, whether a number beyond its
// reach is used. So the cache answers for a number only to callers that reached
// its object before. For every other number, used or not, each lookup is one
// statement. There is no negative caching: an unused number that is allocated
// works at once.
//
// A lookup notes the generation before it reads the database, and adds what it
// read only to the same generation. A change of the registry invalidates the
// cache and begins the next generation, so that nothing stale is added.
type cache struct {
	mu         sync.Mutex
	generation uint64
	listening  bool
	ids        *simplelru.LRU[reachedKey, UUID]
	numbers    *simplelru.LRU[IDKey, int64]
}

// newCache returns a cache of at most size pairs; below 1 it holds none.
func newCache(size int) *cache {
	c := new(cache)
	if size > 0 { // the constructor's only error is a size below 1
		c.ids, _ = simplelru.NewLRU[reachedKey, UUID](size, nil)
		c.numbers, _ = simplelru.NewLRU[IDKey, int64](size, nil)
	}
	return c
}

// getIDs adds to found what the caller reached before, and returns the rest.
func (c *cache) getIDs(
	caller domain.KeyID, wanted []NumberKey, found map[NumberKey]UUID,
) (missing []NumberKey, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || c.ids.Len() == 0 {
		return wanted, c.generation
	}

	for _, key := range wanted {
		if id, ok := c.ids.Get(reachedKey{caller, key}); ok {
			found[key] = id
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.generation
}

// getNumbers adds to found what is cached of wanted, and returns the rest. The
// caller reaches the objects, for they are shown to it.
func (c *cache) getNumbers(
	caller domain.KeyID, wanted []IDKey, found map[IDKey]int64,
) (missing []IDKey, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers == nil || c.numbers.Len() == 0 {
		return wanted, c.generation
	}

	for _, key := range wanted {
		if number, ok := c.numbers.Get(key); ok {
			found[key] = number
			c.ids.Add(reachedKey{caller, NumberKey{key.Kind, number}}, key.ID)
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.generation
}

// put adds pairs whose objects the caller reaches, unless the generation in which
// they were read is over.
func (c *cache) put(generation uint64, caller domain.KeyID, pairs []pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listening || c.generation != generation || c.ids == nil {
		return
	}

	for _, p := range pairs {
		c.ids.Add(reachedKey{caller, NumberKey{p.kind, p.number}}, p.id)
		c.numbers.Add(IDKey{p.kind, p.id}, p.number)
	}
}

// reset invalidates all of the cache and begins the next generation, in which
// pairs are added only while Watch is listening.
func (c *cache) reset(listening bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening = listening
	c.generation++
	if c.ids != nil {
		c.ids.Purge()
		c.numbers.Purge()
	}
}

// size returns how many pairs are cached.
func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		return 0
	}
	return max(c.ids.Len(), c.numbers.Len())
}
