package domain

import (
	"context"
	"sync"
	"time"
)

// Clock returns the time, in UTC and whole microseconds: what the database can
// hold, so that a time that was stored reads back equal.
type Clock interface {
	Now() time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Pause waits for d. Where ctx ends before, it returns at once, with the context's error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// ManualClock stands still until it is set. Its zero value is not usable; make
// one with NewManualClock. It is safe for concurrent use.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewManualClock returns a clock that stands at now.
func NewManualClock(now time.Time) *ManualClock {
	c := &ManualClock{}
	c.Set(now)
	return c
}

// Now returns where the clock stands.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to t.
func (c *ManualClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t.UTC().Truncate(time.Microsecond)
}

// Advance moves the clock by d.
func (c *ManualClock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }
