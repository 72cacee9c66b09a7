package domain

import (
	"context"
	"math"
	"sync"
	"time"
)

// Clock tells the time of day, which can be set forward and back, and how long it has run. What is stored and shown goes
// by Now; what ages within the process, such as a cached value, goes by Elapsed.
type Clock interface {
	// Now returns the time in UTC and whole microseconds. That is the precision of the database, so that a stored time
	// equals the original.
	Now() time.Time
	// Elapsed returns the monotonic time since the process started. Setting the time of day does not change it.
	Elapsed() time.Duration
}

// processStart has a monotonic reading.
var processStart = time.Now()

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Elapsed implements Clock.
func (SystemClock) Elapsed() time.Duration { return time.Since(processStart) }

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

const (
	// LeapForward is the length of a step forward of the clock from which on its steps are leaps: by more than this, what
	// the clock alone causes may be wrong.
	LeapForward = time.Minute
	// NoLeap is the time since the last leap of a clock that has not leapt.
	NoLeap = time.Duration(math.MaxInt64)
)

// ManualClock always returns the time to which it was set. NewManualClock creates one; the zero value is not usable. It
// is safe for concurrent use.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
	leap    time.Duration // when it last leapt, by elapsed; negative if it has not
}

// NewManualClock returns a clock that is set to now, and has run for no time.
func NewManualClock(now time.Time) *ManualClock {
	return &ManualClock{now: now.UTC().Truncate(time.Microsecond), leap: -1}
}

// Now returns the time to which the clock is set.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Elapsed returns the sum of the durations by which Set and Advance moved the clock forward.
func (c *ManualClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// SinceLeap returns the time that has elapsed since the last Step of more than LeapForward, or NoLeap.
func (c *ManualClock) SinceLeap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leap < 0 {
		return NoLeap
	}
	return c.elapsed - c.leap
}

// Set sets the clock to t, in UTC and whole microseconds. If t is later, that time has elapsed.
func (c *ManualClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(t)
}

func (c *ManualClock) set(t time.Time) {
	t = t.UTC().Truncate(time.Microsecond)
	c.elapsed += max(t.Sub(c.now), 0)
	c.now = t
}

// Advance lets the duration d elapse. A negative d sets the clock back.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.now.Add(d))
}

// Step sets the clock forward, or back if d is negative, without any time elapsing: as the clock of a machine is set.
func (c *ManualClock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	if d > LeapForward {
		c.leap = c.elapsed
	}
}
