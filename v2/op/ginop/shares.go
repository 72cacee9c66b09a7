package ginop

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
)

// turnWithin is how long a request waits for one of its key's to end.
const turnWithin = time.Second

// shares bounds what each owner, a key or a partner, holds at a time. Those that
// wait are served in the order of their arrival, and hold nothing that other
// owners need. It is safe for concurrent use.
type shares[K comparable] struct {
	each int64 // units that an owner may hold

	mu     sync.Mutex
	owners map[K]*share
}

// share is what an owner holds.
type share struct {
	*semaphore.Weighted
	users int // that hold a part of it, or wait for one
}

func newShares[K comparable](each int64) *shares[K] {
	return &shares[K]{each: each, owners: map[K]*share{}}
}

// take waits for n units of an owner's share and returns what gives them back;
// refused where there are none within turnWithin.
func (s *shares[K]) take(ctx context.Context, owner K, n int64, refused *domain.Error) (give func(), err error) {
	of := s.join(owner)
	if err := acquire(ctx, of.Weighted, n, refused); err != nil {
		s.part(owner, of)
		return nil, err
	}
	return func() {
		of.Release(n)
		s.part(owner, of)
	}, nil
}

func (s *shares[K]) join(owner K) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, ok := s.owners[owner]
	if !ok {
		of = &share{Weighted: semaphore.NewWeighted(s.each)}
		s.owners[owner] = of
	}
	of.users++
	return of
}

func (s *shares[K]) part(owner K, of *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(s.owners, owner)
	}
}

// acquire takes n units, at once or as soon as there are such; refused where there
// are none within turnWithin.
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

// busy is the error of what is bounded for a key or a partner.
func busy(message string) *domain.Error {
	return &domain.Error{Code: domain.RateLimited, RetryAfter: time.Second, Message: message}
}

// overloaded is the error of what is bounded for all.
func overloaded(message string) *domain.Error {
	return &domain.Error{Code: domain.Unavailable, RetryAfter: time.Second, Message: message}
}
