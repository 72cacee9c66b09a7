package ginop

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
)

const (
	// keyInProgress bounds the requests of one key in progress, with their body read, at a time (decisions 2.2).
	keyInProgress = 16
	// allInProgress is how many requests of all keys may be in progress at a time: 16 keys with 16 each. They share
	// some 20 connections to the database, on which a usual read takes 2 ms, so 256 requests are done within 30 ms; if
	// reads take 100 times as long, within 3 s, which is within callers' timeouts. Each may hold a page of 500 rows;
	// their bodies are bounded separately (keyBodies).
	allInProgress = 256
	// partnerInProgress is how many requests of one partner's keys may be in progress at a time, so that no partner
	// excludes the others.
	partnerInProgress = allInProgress / 2
)

// bounds bounds the units of a resource that each key, each partner and the process hold at a time. A request that
// waits for its key's share holds nothing that other keys need. It is safe for concurrent use.
type bounds struct {
	keys     *shares[domain.KeyID]
	partners *shares[domain.PartnerID]
	all      *semaphore.Weighted
}

// newBounds returns bounds under which each key, each partner and the process may hold these numbers of units.
func newBounds(perKey, perPartner, all int64) bounds {
	return bounds{newShares[domain.KeyID](perKey), newShares[domain.PartnerID](perPartner), semaphore.NewWeighted(all)}
}

// turnTimeout is the longest wait for bytes, or for a place of the key.
const turnTimeout = time.Second

// shares bounds the units that each owner, a key or a partner, holds at a time. Waiters are served in order of arrival.
// It is safe for concurrent use.
type shares[K comparable] struct {
	each int64 // units that an owner may hold

	mu     sync.Mutex
	owners map[K]*share
}

// share is the semaphore of one owner.
type share struct {
	*semaphore.Weighted
	refs int // how many requests hold or wait for units
}

// newShares returns shares under which each owner may hold n units.
func newShares[K comparable](n int64) *shares[K] {
	return &shares[K]{each: n, owners: map[K]*share{}}
}

// acquire acquires n units of an owner's share and returns a function that releases them. It waits up to timeout for
// them, and then returns refusal; if ctx ends first, it returns the error of ctx.
func (s *shares[K]) acquire(
	ctx context.Context, owner K, n int64, timeout time.Duration, refusal *domain.Error,
) (release func(), err error) {
	sh := s.retain(owner)
	releaseUnits, err := acquire(ctx, sh.Weighted, n, timeout, refusal)
	if err != nil {
		s.drop(owner, sh)
		return nil, err
	}
	return func() {
		releaseUnits()
		s.drop(owner, sh)
	}, nil
}

// retain returns the owner's share, which it creates if needed, and counts one more request that refers to it.
func (s *shares[K]) retain(owner K) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh, ok := s.owners[owner]
	if !ok {
		sh = &share{Weighted: semaphore.NewWeighted(s.each)}
		s.owners[owner] = sh
	}
	sh.refs++
	return sh
}

// drop counts one request less that refers to the owner's share, and deletes the share if there is no other.
func (s *shares[K]) drop(owner K, sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh.refs--; sh.refs == 0 {
		delete(s.owners, owner)
	}
}

// acquire acquires n units of a semaphore and returns a function that releases them. It waits up to timeout for them,
// and then returns refusal; if ctx ends first, it returns the error of ctx.
func acquire(
	ctx context.Context, units *semaphore.Weighted, n int64, timeout time.Duration, refusal *domain.Error,
) (release func(), err error) {
	release = func() { units.Release(n) }
	if units.TryAcquire(n) {
		return release, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if units.Acquire(waitCtx, n) == nil {
		return release, nil
	}
	if ctx.Err() != nil { // the caller disconnected, or the request's time is over
		return nil, ctx.Err()
	}
	return nil, refusal
}

// busy returns the error of an exhausted share of a key or a partner.
func busy(message string) *domain.Error {
	return &domain.Error{Code: domain.RateLimited, RetryAfter: time.Second, Message: message}
}

// overloaded returns the error of an exhausted share of the process.
func overloaded(message string) *domain.Error {
	return &domain.Error{Code: domain.Unavailable, RetryAfter: time.Second, Message: message}
}
