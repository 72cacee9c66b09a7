package ginop

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/domain"
)

// Keys recognizes API keys. It remembers a key it found for KeyMemory, so that
// most requests ask the database nothing; a revocation acts within that time.
// It is safe for concurrent use.
type Keys struct {
	find  func(ctx context.Context, digest []byte) (*domain.Caller, error)
	clock domain.Clock
	demo  bool
	known *lru.Cache[[sha256.Size]byte, knownKey]

	mu   sync.Mutex
	used map[domain.KeyID]time.Time
}

type knownKey struct {
	caller *domain.Caller
	until  time.Time
}

const (
	// KeyMemory is how long a key is remembered. A revoked key must stop
	// working within 30 seconds (decisions 9).
	KeyMemory = 15 * time.Second

	knownKeys = 10_000 // remembered at once
)

// NewKeys recognizes the keys whose digest find knows; the keys of a
// demonstration only where demo is set.
func NewKeys(find func(ctx context.Context, digest []byte) (*domain.Caller, error), clock domain.Clock, demo bool) *Keys {
	known, err := lru.New[[sha256.Size]byte, knownKey](knownKeys)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &Keys{find: find, clock: clock, demo: demo, known: known, used: map[domain.KeyID]time.Time{}}
}

// Caller returns whose key it is; Unauthorized for a key that is missing,
// unknown, expired or revoked.
func (k *Keys) Caller(ctx context.Context, key string) (*domain.Caller, error) {
	if key == "" {
		return nil, &domain.Error{Code: domain.Unauthorized, Message: "send an API key in the header X-API-Key"}
	}
	now := k.clock.Now()
	digest := sha256.Sum256([]byte(key))
	entry, ok := k.known.Get(digest)
	if !ok || !now.Before(entry.until) {
		caller, err := k.find(ctx, digest[:])
		if err != nil {
			k.known.Remove(digest)
			return nil, err
		}
		entry = knownKey{caller: caller, until: now.Add(KeyMemory)}
		k.known.Add(digest, entry)
	}
	caller := entry.caller
	if caller.Demo && !k.demo || !caller.ExpiresAt.IsZero() && !now.Before(caller.ExpiresAt) {
		return nil, &domain.Error{Code: domain.Unauthorized, Message: "the API key is unknown, expired or revoked"}
	}
	k.mu.Lock()
	k.used[caller.Key] = now
	k.mu.Unlock()
	return caller, nil
}

// Unrecorded gives back what Used returned, when it could not be recorded.
func (k *Keys) Unrecorded(used map[domain.KeyID]time.Time) {
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
