package ginop

import (
	"context"
	"sync"

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
	// callers still wait for. Each may hold a page of 500 rows; the bodies of all
	// are bounded apart (see bodies).
	allInProgress = 256
	// partnerInProgress is how many requests of one partner's keys may be in
	// progress at a time, so that no partner takes the place of all others.
	partnerInProgress = allInProgress / 2
)

// progress bounds the requests in progress. A request is one from when its body is
// there. Requests that wait for their key's turn hold nothing that requests of
// other keys need. It is safe for concurrent use.
type progress struct {
	all  *semaphore.Weighted
	keys *shares[domain.KeyID]

	mu sync.Mutex
	// partners are the numbers of their requests in progress; none is 0.
	partners map[domain.PartnerID]int
}

func newProgress() *progress {
	return &progress{
		all: semaphore.NewWeighted(allInProgress), keys: newShares[domain.KeyID](keyInProgress),
		partners: map[domain.PartnerID]int{},
	}
}

// enter waits for the turn of a caller's request and returns what ends it.
// RateLimited when its key or its partner has too many in progress, Unavailable
// when all have.
func (p *progress) enter(ctx context.Context, caller *domain.Caller) (leave func(), err error) {
	give, err := p.keys.take(ctx, caller.Key, 1, busy("more than 16 requests with this key are in progress"))
	if err != nil {
		return nil, err
	}
	if err := p.take(caller.Partner); err != nil {
		give()
		return nil, err
	}
	return func() {
		p.give(caller.Partner)
		give()
	}, nil
}

// take counts a request as one of its partner and of all, where both have room.
func (p *progress) take(partner domain.PartnerID) error {
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

func (p *progress) give(partner domain.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Release(1)
	if p.partners[partner]--; p.partners[partner] == 0 {
		delete(p.partners, partner)
	}
}
