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
	// time: 16 keys at their most. They share some 20 connections to the
	// database, on which a usual read takes 2 ms, so 256 requests are done
	// within 30 ms; where reads take 100 times as long, within 3 s, which
	// callers still wait for. Each may hold a body of 1 MiB and a page of 500
	// rows, so 256 are some 500 MB at the worst.
	allInProgress = 256
	// partnerInProgress is how many requests of one partner's keys may be in
	// progress at a time, so that no partner takes the place of all others.
	partnerInProgress = allInProgress / 2
)

// progress bounds the requests in progress. Requests that wait for their key's
// turn hold nothing that requests of other keys need. It is safe for concurrent
// use.
type progress struct {
	all *semaphore.Weighted

	mu   sync.Mutex
	keys map[domain.KeyID]*turns
	// partners are the numbers of their requests in progress; none is 0.
	partners map[domain.PartnerID]int
}

// turns are the requests in progress of one key. Those that wait are served in
// the order of their arrival.
type turns struct {
	*semaphore.Weighted
	requests int // in progress and waiting
}

func newProgress() *progress {
	return &progress{
		all:  semaphore.NewWeighted(allInProgress),
		keys: map[domain.KeyID]*turns{}, partners: map[domain.PartnerID]int{},
	}
}

// enter waits for the turn of a caller's request and returns what ends it.
// RateLimited when its key or its partner has too many in progress, Unavailable
// when all have.
func (p *progress) enter(ctx context.Context, caller *domain.Caller) (leave func(), err error) {
	t := p.join(caller.Key)
	if err := t.wait(ctx); err != nil {
		p.part(caller.Key, t)
		return nil, err
	}

	if err := p.take(caller.Partner); err != nil {
		t.Release(1)
		p.part(caller.Key, t)
		return nil, err
	}
	return func() {
		p.give(caller.Partner)
		t.Release(1)
		p.part(caller.Key, t)
	}, nil
}

// take counts a request as one of its partner and of all, where both have room.
func (p *progress) take(partner domain.PartnerID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partners[partner] >= partnerInProgress {
		return &domain.Error{
			Code: domain.RateLimited, RetryAfter: time.Second,
			Message: "more than 128 requests with keys of this partner are in progress",
		}
	}
	if !p.all.TryAcquire(1) {
		return &domain.Error{
			Code: domain.Unavailable, RetryAfter: time.Second,
			Message: "too many requests are in progress; try again in a moment",
		}
	}
	p.partners[partner]++
	return nil
}

func (p *progress) give(partner domain.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Release(1)
	if p.partners[partner]--; p.partners[partner] == 0 {
		delete(p.partners, partner)
	}
}

// wait takes a turn, at once or as soon as there is one.
func (t *turns) wait(ctx context.Context) error {
	if t.TryAcquire(1) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	if t.Acquire(waiting, 1) == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller hung up
		return ctx.Err()
	}
	return &domain.Error{
		Code: domain.RateLimited, RetryAfter: time.Second,
		Message: "more than 16 requests with this key are in progress",
	}
}

func (p *progress) join(key domain.KeyID) *turns {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.keys[key]
	if !ok {
		t = &turns{Weighted: semaphore.NewWeighted(keyInProgress)}
		p.keys[key] = t
	}
	t.requests++
	return t
}

func (p *progress) part(key domain.KeyID, t *turns) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.requests--; t.requests == 0 {
		delete(p.keys, key)
	}
}
