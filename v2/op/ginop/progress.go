package ginop

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
)

const (
	// keyInProgress is how many requests of one key may be in progress at a time (decisions 2.2).
	keyInProgress = 16
	// allInProgress is how many requests of all keys may be in progress at a time: 16 keys with 16 each. They share
	// some 20 connections to the database, on which a usual read takes 2 ms, so 256 requests are done within 30 ms; if
	// reads take 100 times as long, within 3 s, which is within callers' timeouts. Each may hold a page of 500 rows;
	// their bodies are bounded separately (see bodies).
	allInProgress = 256
	// partnerInProgress is how many requests of one partner's keys may be in progress at a time, so that no partner
	// excludes the others.
	partnerInProgress = allInProgress / 2
)

// progress bounds the requests in progress, those whose body has arrived. A request that waits for its key's share
// holds nothing that other keys need. It is safe for concurrent use.
type progress struct {
	all  *semaphore.Weighted
	keys *shares[domain.KeyID]

	mu sync.Mutex
	// partners counts the requests in progress by partner; no count is 0.
	partners map[domain.PartnerID]int
}

// newProgress returns bounds per key, per partner and for the process.
func newProgress() *progress {
	return &progress{
		all: semaphore.NewWeighted(allInProgress), keys: newShares[domain.KeyID](keyInProgress),
		partners: map[domain.PartnerID]int{},
	}
}

// enter waits for a place in progress and returns a function that releases it. It waits up to turnWithin for a place of
// the caller's key. The error is RateLimited if the key or its partner has no place left, and Unavailable if the
// process has none.
func (p *progress) enter(ctx context.Context, caller *domain.Caller) (leave func(), err error) {
	releaseKey, err := p.keys.acquire(ctx, caller.Key, 1, busy("more than 16 requests with this key are in progress"))
	if err != nil {
		return nil, err
	}
	if err := p.acquire(caller.Partner); err != nil {
		releaseKey()
		return nil, err
	}
	return func() {
		p.release(caller.Partner)
		releaseKey()
	}, nil
}

// acquire acquires a place of the partner and of the process without waiting, or neither.
func (p *progress) acquire(partner domain.PartnerID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partners[partner] >= partnerInProgress {
		return busy("more than 128 requests with keys of this partner are in progress")
	}
	if !p.all.TryAcquire(1) {
		return overloaded("too many requests are in progress; try again in a moment")
	}
	p.partners[partner]++
	return nil
}

// release releases a place of the partner and of the process.
func (p *progress) release(partner domain.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Release(1)
	if p.partners[partner]--; p.partners[partner] == 0 {
		delete(p.partners, partner)
	}
}

// turnWithin is the longest wait for a place of the key.
const turnWithin = time.Second

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

// acquire waits for n units of an owner's share and returns a function that releases them. The error is refused after
// turnWithin, or that of ctx.
func (s *shares[K]) acquire(ctx context.Context, owner K, n int64, refused *domain.Error) (give func(), err error) {
	sh := s.retain(owner)
	if err := acquire(ctx, sh.Weighted, n, refused); err != nil {
		s.drop(owner, sh)
		return nil, err
	}
	return func() {
		sh.Release(n)
		s.drop(owner, sh)
	}, nil
}

// retain returns the owner's share with one more user.
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

// drop removes a user of the owner's share, and deletes the share with its last user.
func (s *shares[K]) drop(owner K, sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh.refs--; sh.refs == 0 {
		delete(s.owners, owner)
	}
}

// acquire waits for n units of a semaphore. The error is refused after turnWithin, or that of ctx.
func acquire(ctx context.Context, units *semaphore.Weighted, n int64, refused *domain.Error) error {
	if units.TryAcquire(n) {
		return nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	if units.Acquire(waitCtx, n) == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller disconnected, or the request's time is over
		return ctx.Err()
	}
	return refused
}

// busy returns the error of an exhausted share of a key or a partner.
func busy(message string) *domain.Error {
	return &domain.Error{Code: domain.RateLimited, RetryAfter: time.Second, Message: message}
}

// overloaded returns the error of an exhausted share of the process.
func overloaded(message string) *domain.Error {
	return &domain.Error{Code: domain.Unavailable, RetryAfter: time.Second, Message: message}
}
