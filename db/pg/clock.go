package pg

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// measureEvery is how long a measurement of the server's clock is good for.
const measureEvery = time.Minute

// serverClock tells the time of the database's server, so that all processes agree on it: the
// machine's clock, corrected by how far the server's is ahead. It measures that on a
// connection about to be used, the first one included, and again after a minute. Before the
// first connection it tells the machine's time. It is safe for concurrent use.
type serverClock struct {
	machine domain.Clock
	// ahead is how far the server's clock is ahead of the machine's, in
	// nanoseconds.
	ahead atomic.Int64
	// due is when to measure again by the machine's clock, in Unix nanoseconds;
	// zero at first.
	due atomic.Int64
	mu  sync.Mutex // held while measuring
}

// Now is the server's time, in UTC and whole microseconds.
func (c *serverClock) Now() time.Time {
	return c.machine.Now().Add(time.Duration(c.ahead.Load())).Truncate(time.Microsecond)
}

// prepareConn is the pool's PrepareConn hook: it measures if that is due, and returns false
// for a connection that turned out to be dead.
func (c *serverClock) prepareConn(ctx context.Context, conn *pgx.Conn) (bool, error) {
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

// measure asks the server for its time, and assumes that it was read halfway between query and
// answer. It ignores a correction within that uncertainty, so that time does not jump back and
// forth. On a failure it changes nothing.
func (c *serverClock) measure(ctx context.Context, conn *pgx.Conn) {
	var server time.Time
	asked := c.machine.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
		return
	}
	answered := c.machine.Now()

	doubt := answered.Sub(asked) / 2
	ahead := server.Sub(asked.Add(doubt))
	if (ahead - time.Duration(c.ahead.Load())).Abs() > doubt {
		c.ahead.Store(int64(ahead))
	}
	c.due.Store(answered.Add(measureEvery).UnixNano())
}
