package pg

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// measureEvery is the interval of measurements of the server's clock.
const measureEvery = time.Minute

// serverClock returns the time of the database server, so that all processes agree on it. It is the time of the
// machine's clock, corrected by the measured difference of the two clocks. The difference is measured on a connection
// that is about to be used: on the first one, and then every minute. Before, serverClock returns the machine's time. It
// is safe for concurrent use.
type serverClock struct {
	machine domain.Clock
	// ahead is how far the server's clock is ahead of the machine's, in nanoseconds.
	ahead atomic.Int64
	// due is the time of the next measurement by the machine's clock, in Unix nanoseconds; zero before the first one.
	due atomic.Int64
	mu  sync.Mutex // held during a measurement
}

// Now returns the server's time, in UTC and whole microseconds.
func (c *serverClock) Now() time.Time {
	return c.machine.Now().Add(time.Duration(c.ahead.Load())).Truncate(time.Microsecond)
}

// prepareConn is the pool's PrepareConn hook: it measures if that is due, and returns false if the connection fails.
func (c *serverClock) prepareConn(ctx context.Context, conn *pgx.Conn) (bool, error) {
	// If the clock was set back since the last measurement, the next one is due too.
	if now := c.machine.Now().UnixNano(); now < c.due.Load() && now >= c.due.Load()-int64(measureEvery) {
		return true, nil
	}
	if !c.mu.TryLock() {
		return true, nil // another connection is measuring
	}
	defer c.mu.Unlock()
	c.measure(ctx, conn)
	return !conn.IsClosed(), nil
}

// measure reads the server's time, and assumes that it is the time halfway between query and response. It ignores a
// correction within that uncertainty, so that time does not jump back and forth. After an error it changes nothing.
func (c *serverClock) measure(ctx context.Context, conn *pgx.Conn) {
	var server time.Time
	queried := c.machine.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
		return
	}
	received := c.machine.Now()

	uncertainty := received.Sub(queried) / 2
	ahead := server.Sub(queried.Add(uncertainty))
	if (ahead - time.Duration(c.ahead.Load())).Abs() > uncertainty {
		c.ahead.Store(int64(ahead))
	}
	c.due.Store(received.Add(measureEvery).UnixNano())
}
