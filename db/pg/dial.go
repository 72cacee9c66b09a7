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
	// connectWithin bounds connecting to the only server, unless the URL gives connect_timeout.
	// hostWithin bounds connecting to each of several: the next may be the one that takes writes.
	connectWithin = 5 * time.Second
	hostWithin    = 2 * time.Second
	// pingWithin is how long a connection may take to show that it is alive.
	pingWithin = 2 * time.Second
	// silentFor is how long a server that did not answer is skipped for the others.
	silentFor = 5 * time.Second
)

// findDead makes a pool notice within seconds that a server's machine or network is gone,
// which closes no connection. Idle connections then fail, and new ones go to the other servers
// of the URL.
func findDead(config *pgxpool.Config) {
	c := config.ConnConfig
	d := &dialer{Dialer: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3,
	}}}
	config.PingTimeout = pingWithin
	c.ConnectTimeout, c.DialFunc = connectTimeout(c.ConnectTimeout), d.DialContext
	other := func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port }
	if slices.ContainsFunc(c.Fallbacks, other) {
		c.ConnectTimeout, c.DialFunc = hostWithin, d.dial
	}
}

// connectTimeout is the connect_timeout of a URL, or connectWithin where that gives none.
func connectTimeout(given time.Duration) time.Duration { return cmp.Or(given, connectWithin) }

// dialer connects to one of several servers. It is safe for concurrent use.
type dialer struct {
	net.Dialer
	silent sync.Map // by address, the time until which it is skipped
}

// dial connects. It fails at once if the address timed out less than silentFor ago.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if until, ok := d.silent.Load(address); ok && time.Now().Before(until.(time.Time)) {
		return nil, fmt.Errorf("%s did not answer a moment ago", address)
	}
	conn, err := d.DialContext(ctx, network, address)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		d.silent.Store(address, time.Now().Add(silentFor))
	}
	return conn, err
}
