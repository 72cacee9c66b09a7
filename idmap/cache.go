package idmap

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"partnerapi/domain"
)

// NumberKey is a number as callers of v1 know it.
type NumberKey struct {
	Kind   Kind
	Number int64
}

// IDKey is an object's id.
type IDKey struct {
	Kind Kind
	ID   UUID
}

// A pair is an object and the number that it holds now.
type pair struct {
	kind   Kind
	number int64
	id     UUID
}

// reachedKey is a number as one API key knows it.
type reachedKey struct {
	caller domain.KeyID
	NumberKey
}

// A cache remembers pairs while Watch listens for changes of the registry;
// otherwise it is empty and stays so.
//
// A caller must not learn, by the time of an answer, whether a number beyond its
// reach is used. So the cache answers for a number only to callers that reached
// its object before. For every other number, used or not, each lookup is one
// statement; that a number is unused is not cached (no negative caching), and so
// is never stale.
//
// Who looks something up takes the era before it asks the database, and hands it
// back with the answer. A change of the registry begins another era, so that no
// stale answer is remembered.
type cache struct {
	mu      sync.Mutex
	era     uint64
	live    bool
	ids     *simplelru.LRU[reachedKey, UUID]
	numbers *simplelru.LRU[IDKey, int64]
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

// takeIDs puts into found what the caller reached before, and returns the rest.
func (c *cache) takeIDs(caller domain.KeyID, wanted []NumberKey, found map[NumberKey]UUID) (missing []NumberKey, era uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || c.ids.Len() == 0 {
		return wanted, c.era
	}

	for _, key := range wanted {
		if id, ok := c.ids.Get(reachedKey{caller, key}); ok {
			found[key] = id
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.era
}

// takeNumbers puts into found what it knows of wanted, and returns the rest. The
// objects are shown to the caller, which thereby reaches them.
func (c *cache) takeNumbers(caller domain.KeyID, wanted []IDKey, found map[IDKey]int64) (missing []IDKey, era uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers == nil || c.numbers.Len() == 0 {
		return wanted, c.era
	}

	for _, key := range wanted {
		if number, ok := c.numbers.Get(key); ok {
			found[key] = number
			c.ids.Add(reachedKey{caller, NumberKey{key.Kind, number}}, key.ID)
		} else {
			missing = append(missing, key)
		}
	}
	return missing, c.era
}

// put remembers pairs that were read in the era, unless it is over, and that the
// caller reached their objects.
func (c *cache) put(era uint64, caller domain.KeyID, pairs []pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live || c.era != era || c.ids == nil {
		return
	}

	for _, p := range pairs {
		c.ids.Add(reachedKey{caller, NumberKey{p.kind, p.number}}, p.id)
		c.numbers.Add(IDKey{p.kind, p.id}, p.number)
	}
}

// begin empties the cache and begins another era, in which it takes answers
// only if it is live.
func (c *cache) begin(live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = live
	c.era++
	if c.ids != nil {
		c.ids.Purge()
		c.numbers.Purge()
	}
}

// size returns how many pairs are remembered.
func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		return 0
	}
	return max(c.ids.Len(), c.numbers.Len())
}
