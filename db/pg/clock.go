package pg

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

const (
	// measureEvery is the interval of measurements of the server's clock.
	measureEvery = 5 * time.Second
	// stepFrom is the correction from which on the clock has been set: a smaller one is drift.
	stepFrom = time.Second
)

// WithStepLog logs steps of the server's clock.
func WithStepLog(log *slog.Logger) Option { return func(o *options) { o.stepLog = log } }

// serverClock returns the time of the database server, so that all processes agree on it. It is the time that was last
// measured plus the monotonic time since then, so that setting the machine's clock does not change it. The server's time
// is measured on each new connection, which may be to another server, and on a connection that is about to be used: every
// measureEvery, and when the machine's clock was set, as it is after a suspension, in which monotonic time stands still.
// Before the first connection, serverClock returns the machine's time. It is safe for concurrent use.
type serverClock struct {
	machine domain.Clock
	log     *slog.Logger // nil for none
	// ask returns the server's time; a field for tests.
	ask func(context.Context, *pgx.Conn) (time.Time, error)
	// zero is the server's time at which Elapsed was 0, in Unix nanoseconds; machineZero is the machine's, as of the last
	// measurement.
	zero, machineZero atomic.Int64
	// due is the time of the next measurement, by Elapsed; 0 before the first one.
	due   atomic.Int64
	steps domain.Steps

	mu sync.Mutex // guards what follows, and is held during a correction
	// queried is when the measurement of zero began, by Elapsed, and uncertainty is how far zero may be wrong.
	queried, uncertainty time.Duration
	measured             bool
}

// newServerClock returns a clock that has measured nothing.
func newServerClock(machine domain.Clock, log *slog.Logger) *serverClock {
	c := &serverClock{machine: machine, log: log, ask: askServer}
	zero := zeroOf(machine.Now(), machine.Elapsed())
	c.zero.Store(zero)
	c.machineZero.Store(zero)
	return c
}

// askServer returns the server's time.
func askServer(ctx context.Context, conn *pgx.Conn) (at time.Time, err error) {
	err = conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
	return at, err
}

// zeroOf returns, in Unix nanoseconds, the time at which Elapsed was 0 by a clock that shows now.
func zeroOf(now time.Time, elapsed time.Duration) int64 { return now.UnixNano() - int64(elapsed) }

// Now returns the server's time, in UTC and whole microseconds.
func (c *serverClock) Now() time.Time {
	return time.Unix(0, c.zero.Load()).Add(c.machine.Elapsed()).UTC().Truncate(time.Microsecond)
}

// Elapsed implements domain.Clock.
func (c *serverClock) Elapsed() time.Duration { return c.machine.Elapsed() }

// Steps returns the steps that were measured.
func (c *serverClock) Steps() *domain.Steps { return &c.steps }

// afterConnect measures on a new connection. It returns an error if that broke the connection.
func (c *serverClock) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	c.due.Store(int64(c.machine.Elapsed() + measureEvery))
	if err := c.measure(ctx, conn); err != nil && conn.IsClosed() {
		return err
	}
	return nil
}

// prepareConn is the pool's PrepareConn hook: it measures if that is due, and returns false if the connection fails.
func (c *serverClock) prepareConn(ctx context.Context, conn *pgx.Conn) (bool, error) {
	elapsed, due := c.machine.Elapsed(), c.due.Load()
	machineWasSet := time.Duration(zeroOf(c.machine.Now(), elapsed)-c.machineZero.Load()).Abs() > stepFrom
	if int64(elapsed) < due && !machineWasSet {
		return true, nil
	}
	if !c.due.CompareAndSwap(due, int64(elapsed+measureEvery)) {
		return true, nil // another connection is measuring
	}
	_ = c.measure(ctx, conn)
	return !conn.IsClosed(), nil
}

// measure reads the server's time, and assumes that it is the time halfway between query and response. After an error
// the next connection measures.
func (c *serverClock) measure(ctx context.Context, conn *pgx.Conn) error {
	machineNow, queried := c.machine.Now(), c.machine.Elapsed()
	server, err := c.ask(ctx, conn)
	if err != nil {
		c.due.Store(0)
		return err
	}
	uncertainty := (c.machine.Elapsed() - queried) / 2
	c.machineZero.Store(zeroOf(machineNow, queried))
	c.correct(ctx, zeroOf(server, queried+uncertainty), queried, uncertainty)
	return nil
}

// correct takes a measurement, unless a later one was taken before. It ignores a correction within the uncertainty, so
// that time does not jump back and forth.
func (c *serverClock) correct(ctx context.Context, zero int64, queried, uncertainty time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.measured && queried < c.queried {
		return
	}
	c.queried = queried
	by := time.Duration(zero - c.zero.Load())
	if c.measured && by.Abs() <= uncertainty {
		return
	}
	if atLeast := by.Abs() - uncertainty - c.uncertainty; c.measured && atLeast > stepFrom {
		// Noted before it can be seen: who sees that a lease has ended sees the jump too.
		c.steps.Note(by, atLeast, c.machine.Elapsed())
		defer c.announce(ctx, by)
	}
	c.zero.Store(zero)
	c.measured, c.uncertainty = true, uncertainty
}

// announce logs a step that Now shows, and wakes those who wait for it.
func (c *serverClock) announce(ctx context.Context, by time.Duration) {
	c.steps.Announce()
	if c.log != nil {
		c.log.WarnContext(ctx, "the clock of the database server was set, or this process was suspended", "by", by.Round(time.Millisecond))
	}
}

// fixedClock always shows the time now, and runs as another clock does.
type fixedClock struct {
	runs *DB
	now  time.Time
}

// Now implements domain.Clock.
func (c fixedClock) Now() time.Time { return c.now }

// Elapsed implements domain.Clock.
func (c fixedClock) Elapsed() time.Duration { return c.runs.Elapsed() }
