package ginop

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"partnerapi/domain"
)

// Keys authenticates API keys. It caches a valid key for KeyMemory, so that most requests need no database query; a
// revocation takes effect within that time. It is safe for concurrent use.
type Keys struct {
	// ForeignCell, if set, returns the code of the cell in which a key is valid, or "" for this cell; see cells.Cells.
	ForeignCell func(key string, digest []byte) string
	// MovedAway, if set, reports whether a key was moved from this cell to another one.
	MovedAway func(digest []byte) bool

	find    func(ctx context.Context, digest []byte) (*domain.Caller, error)
	clock   domain.Clock
	demo    bool
	known   *lru.Cache[digest, cachedKey]
	unknown *lru.Cache[digest, time.Duration] // until when, by Elapsed, the key is not looked up
	lookups singleflight.Group                // by digest

	mu   sync.Mutex
	used map[domain.KeyID]time.Time // the last uses since Used was called
}

type digest = [sha256.Size]byte

// cachedKey is the cached result of a look-up, which is valid before until, by Elapsed: a clock that is set back must not
// keep a revoked key alive. It stays in the cache afterwards: a key that was valid is no guess, so its next look-up does
// not call admit.
type cachedKey struct {
	caller *domain.Caller
	until  time.Duration
}

const (
	// KeyMemory is how long a valid key is cached. A revoked key must stop working within 30 seconds (decisions 9).
	KeyMemory = 15 * time.Second
	// unknownMemory is how long an unknown key is cached: the longest delay of a new key that was tried too early.
	unknownMemory = 5 * time.Second

	rememberedKeys = 10_000 // in each cache
)

var errUnknownKey = &domain.Error{Code: domain.Unauthorized, Message: "the API key is unknown, expired or revoked"}

// NewKeys returns Keys that look digests up with find, which returns Unauthorized for an unknown key. Demonstration
// keys are accepted only if demo is true.
func NewKeys(
	find func(ctx context.Context, digest []byte) (*domain.Caller, error), clock domain.Clock, demo bool,
) *Keys {
	return &Keys{
		find: find, clock: clock, demo: demo, known: newCache[cachedKey](), unknown: newCache[time.Duration](),
		used: map[domain.KeyID]time.Time{},
	}
}

// newCache returns an LRU cache by key digest.
func newCache[V any]() *lru.Cache[digest, V] {
	cache, err := lru.New[digest, V](rememberedKeys)
	if err != nil {
		panic(err) // the size is a constant
	}
	return cache
}

// errKeyMoved is the Cause of the error for a key that was moved to another cell. The request does not count against
// the caller's address, as routers may learn of a move late.
var errKeyMoved = errors.New("the key's partner moved to another cell")

// Caller returns the caller that owns a key. The error is Unauthorized for a key that is missing, malformed (it is not
// looked up), unknown, expired, revoked, or for a demonstration that is not enabled, and Misdirected for one of another
// cell; its Cause is errKeyMoved if the key was of this cell before. admit is called before the look-up of a key that
// is not in the cache; its error is returned. Concurrent requests with one key share a look-up and its admit.
func (k *Keys) Caller(ctx context.Context, key string, admit func() error) (*domain.Caller, error) {
	if key == "" {
		return nil, &domain.Error{Code: domain.Unauthorized, Message: "send an API key in the header X-API-Key"}
	}
	if !domain.MayBeAPIKey(key) {
		return nil, errUnknownKey
	}
	d := sha256.Sum256([]byte(key))
	if k.ForeignCell != nil {
		if cell := k.ForeignCell(key, d[:]); cell != "" {
			err := &domain.Error{
				Code: domain.Misdirected, Cell: cell, Message: "this API key belongs to another cell of the service: " + cell,
			}
			if k.MovedAway != nil && k.MovedAway(d[:]) {
				err.Cause = errKeyMoved
			}
			return nil, err
		}
	}

	entry, found := k.known.Get(d)
	if elapsed := k.clock.Elapsed(); !found || elapsed >= entry.until {
		if until, ok := k.unknown.Get(d); ok && elapsed < until {
			return nil, errUnknownKey
		}
		if found { // a key that was valid is no guess
			admit = nil
		}
		var err error
		if entry, err = k.lookUp(ctx, d, admit); err != nil {
			return nil, err
		}
	}

	caller := entry.caller
	if caller.Demo && !k.demo || !caller.ExpiresAt.IsZero() && !k.clock.Now().Before(caller.ExpiresAt) {
		return nil, errUnknownKey
	}
	return caller, nil
}

// markUsed records that the key was used now. It is not called for a request that was rejected for its network, or
// whose route is excluded (Surface.KeepLastUse).
func (k *Keys) markUsed(caller *domain.Caller) {
	now := k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[caller.Key] = now
}

// lookUp calls admit, unless it is nil, and reads a key from the database. It caches the key's caller, or that the key
// is unknown, but no other error. A cancelled request does not cancel the look-up for others that wait for it.
func (k *Keys) lookUp(ctx context.Context, d digest, admit func() error) (cachedKey, error) {
	entry, err, _ := k.lookups.Do(string(d[:]), func() (any, error) {
		if admit != nil {
			if err := admit(); err != nil {
				return cachedKey{}, err
			}
		}
		lookUpCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()

		caller, err := k.find(lookUpCtx, d[:])
		elapsed := k.clock.Elapsed()
		switch {
		case domain.IsCode(err, domain.Unauthorized):
			k.known.Remove(d) // if it was revoked
			k.unknown.Add(d, elapsed+unknownMemory)
			return cachedKey{}, err
		case err != nil:
			return cachedKey{}, err
		}
		entry := cachedKey{caller: caller, until: elapsed + KeyMemory}
		k.known.Add(d, entry)
		return entry, nil
	})
	return entry.(cachedKey), err
}

// Requeue adds times of use that Used returned and that could not be recorded, unless a key was used again.
func (k *Keys) Requeue(used map[domain.KeyID]time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, at := range used {
		if _, later := k.used[key]; !later {
			k.used[key] = at
		}
	}
}

// Used returns the last use of each key since the previous call, and clears them.
func (k *Keys) Used() map[domain.KeyID]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	used := k.used
	k.used = map[domain.KeyID]time.Time{}
	return used
}
