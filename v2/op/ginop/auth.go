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

// Keys recognizes API keys. It remembers a key it found for KeyMemory, so that
// most requests ask the database nothing; a revocation acts within that time.
// It is safe for concurrent use.
type Keys struct {
	// Elsewhere, where set, returns the code of the cell that a key lives in where that is
	// another than this one; see db.Cells.
	Elsewhere func(key string, digest []byte) string
	// Left, where set, reports whether a key was of this cell and moved to another one.
	Left func(digest []byte) bool

	find    func(ctx context.Context, digest []byte) (*domain.Caller, error)
	clock   domain.Clock
	demo    bool
	known   *lru.Cache[digest, knownKey]
	unknown *lru.Cache[digest, time.Time] // until when it is not looked for
	lookups singleflight.Group            // by digest

	mu   sync.Mutex
	used map[domain.KeyID]time.Time
}

type digest = [sha256.Size]byte

// knownKey is a key that was found. It is kept after its time, until others
// need its place: that it was valid once distinguishes it from a guess.
type knownKey struct {
	caller *domain.Caller
	until  time.Time
}

const (
	// KeyMemory is how long a key is remembered. A revoked key must stop
	// working within 30 seconds (decisions 9).
	KeyMemory = 15 * time.Second
	// unknownMemory is how long it is remembered that a key is unknown: a key
	// that was tried before it was created works within this time.
	unknownMemory = 5 * time.Second

	rememberedKeys = 10_000 // of each kind, at once
)

var errUnknownKey = &domain.Error{Code: domain.Unauthorized, Message: "the API key is unknown, expired or revoked"}

// NewKeys recognizes the keys whose digest find knows; the keys of a
// demonstration only where demo is set.
func NewKeys(
	find func(ctx context.Context, digest []byte) (*domain.Caller, error), clock domain.Clock, demo bool,
) *Keys {
	return &Keys{
		find: find, clock: clock, demo: demo, known: newCache[knownKey](), unknown: newCache[time.Time](),
		used: map[domain.KeyID]time.Time{},
	}
}

func newCache[V any]() *lru.Cache[digest, V] {
	cache, err := lru.New[digest, V](rememberedKeys)
	if err != nil {
		panic(err) // the size is a constant
	}
	return cache
}

// errKeyLeft is the cause of the refusal of a key that is valid in another cell. Whoever
// has it is no stranger to the service, and routers may learn of the move late.
var errKeyLeft = errors.New("the key's partner moved to another cell")

// Caller returns whose key it is; Unauthorized for a key that is missing,
// unknown, expired or revoked. What has not the form of a key, or a wrong checksum,
// is unknown at no cost, and one of another cell is Misdirected at none. Before the database is asked for a key that was
// never found, admit is called, at most once: its error is returned in place of
// an answer. Requests that need the same key at the same time share one look-up.
func (k *Keys) Caller(ctx context.Context, key string, admit func() error) (*domain.Caller, error) {
	if key == "" {
		return nil, &domain.Error{Code: domain.Unauthorized, Message: "send an API key in the header X-API-Key"}
	}
	if !domain.MayBeAPIKey(key) {
		return nil, errUnknownKey
	}
	now := k.clock.Now()
	d := sha256.Sum256([]byte(key))
	if k.Elsewhere != nil {
		if cell := k.Elsewhere(key, d[:]); cell != "" {
			err := &domain.Error{
				Code: domain.Misdirected, Cell: cell, Message: "this API key is not of this cell of the service, but of cell " + cell,
			}
			if k.Left != nil && k.Left(d[:]) {
				err.Cause = errKeyLeft
			}
			return nil, err
		}
	}

	entry, found := k.known.Get(d)
	if !found || !now.Before(entry.until) {
		if until, ok := k.unknown.Get(d); ok && now.Before(until) {
			return nil, errUnknownKey
		}
		if found {
			admit = nil
		}
		var err error
		if entry, err = k.lookUp(ctx, d, admit); err != nil {
			return nil, err
		}
	}

	caller := entry.caller
	if caller.Demo && !k.demo || !caller.ExpiresAt.IsZero() && !now.Before(caller.ExpiresAt) {
		return nil, errUnknownKey
	}
	return caller, nil
}

// use notes that a key was used: not one that was refused for its network.
func (k *Keys) use(caller *domain.Caller) {
	now := k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[caller.Key] = now
}

// lookUp asks the database for a key and remembers the answer. A caller that
// hangs up does not end the look-up for others that wait for it.
func (k *Keys) lookUp(ctx context.Context, d digest, admit func() error) (knownKey, error) {
	entry, err, _ := k.lookups.Do(string(d[:]), func() (any, error) {
		if admit != nil {
			if err := admit(); err != nil {
				return knownKey{}, err
			}
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()

		caller, err := k.find(asking, d[:])
		now := k.clock.Now()
		switch {
		case domain.IsCode(err, domain.Unauthorized):
			k.known.Remove(d)
			k.unknown.Add(d, now.Add(unknownMemory))
			return knownKey{}, err
		case err != nil:
			return knownKey{}, err
		}
		entry := knownKey{caller: caller, until: now.Add(KeyMemory)}
		k.known.Add(d, entry)
		return entry, nil
	})
	return entry.(knownKey), err
}

// Requeue gives back what Used returned, when it could not be recorded.
func (k *Keys) Requeue(used map[domain.KeyID]time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, at := range used {
		if _, later := k.used[key]; !later {
			k.used[key] = at
		}
	}
}

// Used returns when each key was last used since the last call.
func (k *Keys) Used() map[domain.KeyID]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	used := k.used
	k.used = map[domain.KeyID]time.Time{}
	return used
}
