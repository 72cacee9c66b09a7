package idmap

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"partnerapi/domain"
)

// NumberKey is a number of a kind, as callers of v1 send it.
type NumberKey struct {
	Kind   Kind
	Number int64
}

// IDKey is the id of an object of a kind.
type IDKey struct {
	Kind Kind
	ID   UUID
}

// String returns the id in the form of v2.
func (k IDKey) String() string { return kindInfos[k.Kind].show(k.ID) }

// A pair is an object and its current number.
type pair struct {
	kind   Kind
	number int64
	id     UUID
}

// accessedKey is the number of an object that the API key caller has accessed.
type accessedKey struct {
	caller domain.KeyID
	NumberKey
}

// A cache is an LRU cache of pairs. It is empty unless Watch listens for changes of the registry.
//
// The time of a response must not reveal whether an object that the caller may not access has a given number. So the
// cache returns the id of a number only to callers that accessed the object before. For every other number, used or
// not, each lookup is one statement. Unused numbers are not cached, so that a number can be looked up as soon as it is
// allocated.
//
// A lookup gets the generation before it reads the database, and adds the pairs that it read only if the generation is
// still the same. A change of the registry empties the cache and begins the next generation, so that no stale pair is
// added.
type cache struct {
	mu         sync.Mutex
	generation uint64
	listening  bool
	ids        *simplelru.LRU[accessedKey, UUID]
	numbers    *simplelru.LRU[IDKey, int64]
}

// newCache returns a cache of at most size pairs; with a size below 1 it stays empty.
func newCache(size int) *cache {
	c := new(cache)
	if size > 0 { // the constructor's only error is a size below 1
		c.ids, _ = simplelru.NewLRU[accessedKey, UUID](size, nil)
		c.numbers, _ = simplelru.NewLRU[IDKey, int64](size, nil)
	}
	return c
}

// getIDs adds to found the cached ids of the wanted numbers whose objects the caller accessed before. It returns the
// other numbers and the current generation, for put.
func (c *cache) getIDs(
	caller domain.KeyID, wanted []NumberKey, found map[NumberKey]UUID,
) (missing []NumberKey, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || c.ids.Len() == 0 {
		return wanted, c.generation
	}

	for _, key := range wanted {
		if id, ok := c.ids.Get(accessedKey{caller, key}); ok {
			found[key] = id
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.generation
}

// getNumbers adds the cached numbers of the wanted ids to found, and records that the caller accessed the objects: they
// are in the response to the caller. It returns the other ids and the current generation, for put.
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
			c.ids.Add(accessedKey{caller, NumberKey{key.Kind, number}}, key.ID)
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.generation
}

// put adds pairs whose objects the caller may access. It does nothing if the registry has changed since generation, in
// which the pairs were read, if Watch is not listening, or if the cache has no room for any pair.
func (c *cache) put(generation uint64, caller domain.KeyID, pairs []pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listening || c.generation != generation || c.ids == nil {
		return
	}

	for _, p := range pairs {
		c.ids.Add(accessedKey{caller, NumberKey{p.kind, p.number}}, p.id)
		c.numbers.Add(IDKey{p.kind, p.id}, p.number)
	}
}

// reset empties the cache and begins the next generation. Pairs can be added to it only if listening is true.
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
