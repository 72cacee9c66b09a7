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

// clockSkew is how far the clocks of two processes may differ: a later time was stored before the clock was set back.
const clockSkew = time.Second

// Ahead returns the time after which a stored time lies ahead of a clock that shows now. A value that was computed then
// is stale: it would stand still until the clock has caught up.
func Ahead(now time.Time) time.Time { return now.Add(clockSkew) }

const (
	// LeapForward is the length of a step forward of the clock from which on its steps are leaps: by more than this, what
	// the clock alone causes may be wrong.
	LeapForward = time.Minute
	// JumpForward is the length of a step forward from which on leases of living processes may have ended.
	JumpForward = 5 * time.Second
	// NoLeap is the time since the last leap, or jump, of a clock that has had none.
	NoLeap = time.Duration(math.MaxInt64)
)

// Steps keeps when a clock was set. The zero value has no steps. It is safe for concurrent use.
type Steps struct {
	mu    sync.Mutex
	count int64
	total time.Duration
	// leap and jump are the times of the last leap and jump, by Elapsed; nil if there was none.
	leap, jump *time.Duration
	next       chan struct{} // closed by Announce; nil if no one waits
}

// Note notes a step at a time by Elapsed, before the clock shows it. by is its length, and atLeast its length without
// what the measurement may be wrong by.
func (s *Steps) Note(by, atLeast, elapsed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.total += by.Abs()
	if by > 0 && atLeast > JumpForward {
		s.jump = &elapsed
	}
	if by > 0 && atLeast > LeapForward {
		s.leap = &elapsed
	}
}

// Announce closes the channel that Next returned, once the clock shows the step.
func (s *Steps) Announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Next returns a channel that is closed when the clock is set next.
func (s *Steps) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Total returns the number of steps, and the sum of their lengths.
func (s *Steps) Total() (count int64, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.total
}

// SinceLeap returns how long before elapsed the clock was last set forward by more than LeapForward, or NoLeap.
func (s *Steps) SinceLeap(elapsed time.Duration) time.Duration { return s.since(&s.leap, elapsed) }

// SinceJump returns how long before elapsed the clock was last set forward by more than JumpForward, or NoLeap.
func (s *Steps) SinceJump(elapsed time.Duration) time.Duration { return s.since(&s.jump, elapsed) }

func (s *Steps) since(last **time.Duration, elapsed time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *last == nil {
		return NoLeap
	}
	return elapsed - **last
}

// ManualClock always returns the time to which it was set. NewManualClock creates one; the zero value is not usable. It
// is safe for concurrent use.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
	steps   Steps
}

// NewManualClock returns a clock that is set to now, and has run for no time.
func NewManualClock(now time.Time) *ManualClock {
	return &ManualClock{now: now.UTC().Truncate(time.Microsecond)}
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

// Steps returns the steps by Step.
func (c *ManualClock) Steps() *Steps { return &c.steps }

// SinceLeap returns the time that has elapsed since the last Step of more than LeapForward, or NoLeap.
func (c *ManualClock) SinceLeap() time.Duration { return c.steps.SinceLeap(c.Elapsed()) }

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
	c.steps.Note(d, d.Abs(), c.elapsed)
	c.now = c.now.Add(d)
	c.mu.Unlock()
	c.steps.Announce()
}
