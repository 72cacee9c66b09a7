package idmap

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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

// A cache remembers pairs while somebody listens for changes of the registry;
// when nobody does, nothing is in it and nothing gets in. What is not there is
// not remembered: it could come to be at any moment.
//
// Whoever looks something up takes the era before asking the database and
// hands it back with the answer. A change of the registry begins another era,
// so an answer from before it never gets in after it.
type cache struct {
	mu      sync.Mutex
	era     uint64
	live    bool
	ids     *simplelru.LRU[NumberKey, UUID]
	numbers *simplelru.LRU[IDKey, int64]
}

// newCache returns a cache of at most size pairs; below 1 it holds none.
func newCache(size int) *cache {
	c := new(cache)
	if size > 0 { // the constructor's only error is a size below 1
		c.ids, _ = simplelru.NewLRU[NumberKey, UUID](size, nil)
		c.numbers, _ = simplelru.NewLRU[IDKey, int64](size, nil)
	}
	return c
}

// takeIDs puts what it knows of wanted into found, and returns the rest.
func (c *cache) takeIDs(wanted []NumberKey, found map[NumberKey]UUID) (missing []NumberKey, era uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return take(c.ids, wanted, found), c.era
}

// takeNumbers puts what it knows of wanted into found, and returns the rest.
func (c *cache) takeNumbers(wanted []IDKey, found map[IDKey]int64) (missing []IDKey, era uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return take(c.numbers, wanted, found), c.era
}

// take puts what known has of wanted into found, and returns the rest. A nil
// known has nothing.
func take[K comparable, V any](known *simplelru.LRU[K, V], wanted []K, found map[K]V) (missing []K) {
	if known == nil || known.Len() == 0 {
		return wanted
	}
	for _, key := range wanted {
		if value, ok := known.Get(key); ok {
			found[key] = value
		} else {
			missing = append(missing, key)
		}
	}
	return missing
}

// put remembers pairs that were read in the era, unless it is over.
func (c *cache) put(era uint64, pairs []pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live || c.era != era || c.ids == nil {
		return
	}
	for _, p := range pairs {
		c.ids.Add(NumberKey{p.kind, p.number}, p.id)
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
