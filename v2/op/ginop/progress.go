package ginop

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
)

const (
	// keyInProgress is how many requests of one key may be in progress at a time
	// (decisions 2.2).
	keyInProgress = 16
	// allInProgress is how many requests of all keys may be in progress at a
	// time: 16 keys with 16 each. They share some 20 connections to the database,
	// on which a usual read takes 2 ms, so 256 requests are done within 30 ms; if
	// reads take 100 times as long, within 3 s, which callers still wait for.
	// Each may hold a page of 500 rows; their bodies are bounded separately (see
	// bodies).
	allInProgress = 256
	// partnerInProgress is how many requests of one partner's keys may be in
	// progress at a time, so that no partner crowds out the others.
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

// enter waits for a place in progress and returns a function that releases it: RateLimited if the caller's key or
// partner has too many, Unavailable if the process has.
func (p *progress) enter(ctx context.Context, caller *domain.Caller) (leave func(), err error) {
	give, err := p.keys.acquire(ctx, caller.Key, 1, busy("more than 16 requests with this key are in progress"))
	if err != nil {
		return nil, err
	}
	if err := p.acquire(caller.Partner); err != nil {
		give()
		return nil, err
	}
	return func() {
		p.release(caller.Partner)
		give()
	}, nil
}

// acquire acquires a place of the partner and of the process, or neither.
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

// shares bounds what each owner, a key or a partner, holds at a time. Waiters are served in order of arrival, and
// hold nothing that other owners need. It is safe for concurrent use.
type shares[K comparable] struct {
	each int64 // units that an owner may hold

	mu     sync.Mutex
	owners map[K]*share
}

// share is the semaphore of one owner.
type share struct {
	*semaphore.Weighted
	refs int // those who hold or await units
}

// newShares returns shares under which each owner may hold n units.
func newShares[K comparable](n int64) *shares[K] {
	return &shares[K]{each: n, owners: map[K]*share{}}
}

// acquire waits for n units of an owner's share and returns a function that releases them, or refused after
// turnWithin.
func (s *shares[K]) acquire(ctx context.Context, owner K, n int64, refused *domain.Error) (give func(), err error) {
	of := s.retain(owner)
	if err := acquire(ctx, of.Weighted, n, refused); err != nil {
		s.drop(owner, of)
		return nil, err
	}
	return func() {
		of.Release(n)
		s.drop(owner, of)
	}, nil
}

// retain returns the owner's share with one more user.
func (s *shares[K]) retain(owner K) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, ok := s.owners[owner]
	if !ok {
		of = &share{Weighted: semaphore.NewWeighted(s.each)}
		s.owners[owner] = of
	}
	of.refs++
	return of
}

// drop removes a user of the owner's share, and the share after its last.
func (s *shares[K]) drop(owner K, of *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.refs--; of.refs == 0 {
		delete(s.owners, owner)
	}
}

// acquire acquires n units of a semaphore, or returns refused after turnWithin.
func acquire(ctx context.Context, of *semaphore.Weighted, n int64, refused *domain.Error) error {
	if of.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	if of.Acquire(waiting, n) == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller hung up
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
