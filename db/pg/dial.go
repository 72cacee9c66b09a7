package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectWithin is the timeout of connecting to a single server, unless the URL has a connect_timeout. hostWithin
	// is the timeout of connecting to each of several servers; it is shorter because the next one may be the primary.
	connectWithin = 5 * time.Second
	hostWithin    = 2 * time.Second
	// pingWithin is the timeout of the ping of an idle connection.
	pingWithin = 2 * time.Second
	// silentFor is how long a server is skipped after a connection to it timed out.
	silentFor = 5 * time.Second
)

// detectDeadServers configures a pool to detect within seconds that a server's machine or network has failed, which
// does not close connections. Idle connections then fail, and new ones go to the other servers of the URL: if there are
// any, a connection attempt times out earlier, and a silent server is skipped for a while (dial).
func detectDeadServers(config *pgxpool.Config) {
	c := config.ConnConfig
	d := &dialer{Dialer: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3,
	}}}
	config.PingTimeout = pingWithin
	c.ConnectTimeout, c.DialFunc = cmp.Or(c.ConnectTimeout, connectWithin), d.DialContext
	other := func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port }
	if slices.ContainsFunc(c.Fallbacks, other) {
		c.ConnectTimeout, c.DialFunc = hostWithin, d.dial
	}
}

// dialer connects to one of several servers. It is safe for concurrent use.
type dialer struct {
	net.Dialer
	silent sync.Map // the time until which an address is skipped, by address
}

// dial connects to an address. It fails at once if the address timed out less than silentFor ago.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if until, ok := d.silent.Load(address); ok && time.Now().Before(until.(time.Time)) {
		return nil, fmt.Errorf("%s did not respond a moment ago", address)
	}
	conn, err := d.DialContext(ctx, network, address)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		d.silent.Store(address, time.Now().Add(silentFor))
	}
	return conn, err
}
