package domain

import (
	"context"
	"sync"
	"time"
)

// Clock returns the time, in UTC and whole microseconds. That is the precision of the database, so that a stored time
// equals the original.
type Clock interface {
	Now() time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Pause waits for the duration d and returns nil. If ctx ends before, it returns the error of ctx.
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

// ManualClock always returns the time to which it was set. NewManualClock creates one; the zero value is not usable. It
// is safe for concurrent use.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewManualClock returns a clock that is set to now.
func NewManualClock(now time.Time) *ManualClock {
	c := &ManualClock{}
	c.Set(now)
	return c
}

// Now returns the time to which the clock is set.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock to t, in UTC and whole microseconds.
func (c *ManualClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t.UTC().Truncate(time.Microsecond)
}

// Advance sets the clock forward by d.
func (c *ManualClock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }
