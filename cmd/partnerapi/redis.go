// What replicas share: connections to Redis, the circuit breaker around its calls, and
// the budgets that are counted there.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sony/gobreaker/v2"

	"partnerapi/domain"
)

const (
	// redisWait bounds each step of a call to Redis, unless its URL does:
	// requests wait for it, and can do without.
	redisWait = 250 * time.Millisecond
	// redisIdle is how long a connection is kept that is not used.
	redisIdle = 30 * time.Minute
	// breakerFailures is after how many failures in a row Redis is left alone.
	breakerFailures = 3
	// breakerOpen is how long it is left alone before one call tries it again.
	breakerOpen = 5 * time.Second
)

// redisClient lends connections to Redis, from a bounded pool and through a circuit
// breaker. It is nil where no Redis is configured, and safe for concurrent use.
type redisClient struct {
	address string
	pool    *redis.Pool
	breaker *gobreaker.CircuitBreaker[struct{}]
	connect time.Duration // how long a call waits for a place in the pool
	// refuses says that Redis took no writes when it was last asked to: a write comes before
	// each call then, so that Redis is away for those too that only read.
	refuses atomic.Bool
	// observe gets how long each call took that the breaker let through, and its
	// error. It is set before the client is used by several.
	observe func(time.Duration, error)
}

// openRedis opens the client of what replicas share. While Redis fails or keeps
// silent, its calls fail at once (see newBreaker).
func openRedis(ctx context.Context, address string) (*redisClient, error) {
	at, err := parseRedisURL(address)
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	c := &redisClient{address: at.address, connect: at.connect, breaker: newBreaker(), observe: func(time.Duration, error) {}}
	c.pool = &redis.Pool{
		MaxActive: at.connections, MaxIdle: at.connections, Wait: true, IdleTimeout: redisIdle,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			if fresh, ok := ctx.Value(freshConnection{}).(*bool); ok {
				*fresh = true
			}
			// Each step has a bound of its own, in the options.
			conn, err := redis.DialContext(context.WithoutCancel(ctx), at.network, at.address, at.options()...)
			if err != nil {
				return nil, err
			}
			return &primaryConn{Conn: conn}, nil
		},
	}
	if err := c.do(ctx, "PING"); err != nil {
		return nil, errors.Join(fmt.Errorf("reach Redis: %w", err), c.Close())
	}
	return c, nil
}

// probeRedis says for doctor whether a Redis can be used.
func probeRedis(ctx context.Context, url string) (at string, written, err error) {
	client, err := openRedis(ctx, url)
	if err != nil {
		return "", nil, err
	}
	defer client.Close()
	return client.address, client.write(ctx), nil
}

// write tries a write: Redis may answer and take none.
func (c *redisClient) write(ctx context.Context) error { return c.Use(ctx, tryWrite) }

// tryWrite counts as budgets do, under a name of its own.
func tryWrite(conn redis.Conn) error {
	_, err := addToBudget.Do(conn, "partnerapi/budget:probe/"+rand.Text(), 1, redisWait.Milliseconds())
	return err
}

// freshConnection is the key of a context's *bool, which becomes true where a
// connection is made and none of the pool is used.
type freshConnection struct{}

// redisAddress is what a URL of Redis says.
type redisAddress struct {
	network, address     string
	tls, unverified      bool
	user, password, name string
	database             int
	connect, read, write time.Duration // bounds of the steps of a call
	connections          int           // at most
}

// parseRedisURL reads redis://user:password@host:port/database, the same with
// rediss:// for TLS, or unix://user:password@/path, and the parameters that set
// accepts. An error shows nothing that may be of the password.
func parseRedisURL(text string) (*redisAddress, error) {
	u, err := url.Parse(text)
	if err != nil { // which would show the password
		return nil, errors.New("it cannot be read: write it as redis://user:password@host:port/database, with special " +
			"characters escaped")
	}
	a := &redisAddress{connect: redisWait, read: redisWait, write: redisWait, connections: 10 * runtime.GOMAXPROCS(0)}
	a.user = u.User.Username()
	a.password, _ = u.User.Password()
	switch u.Scheme {
	case "redis", "rediss":
		a.tls = u.Scheme == "rediss"
		a.network, a.address = "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379"))
		if database := strings.Trim(u.Path, "/"); database != "" {
			if a.database, err = strconv.Atoi(database); err != nil {
				return nil, errors.New("the path is no number of a database")
			}
		}
	case "unix":
		a.network, a.address = "unix", u.Path
	default:
		return nil, fmt.Errorf("the scheme is redis, rediss or unix, not %q", u.Scheme)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, err
	}
	for name, values := range query {
		if err := a.set(name, values[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return a, nil
}

// set sets a parameter of the URL.
func (a *redisAddress) set(name, value string) (err error) {
	switch name {
	case "db":
		a.database, err = strconv.Atoi(value)
	case "client_name":
		a.name = value
	case "skip_verify":
		a.unverified, err = strconv.ParseBool(value)
	case "dial_timeout":
		a.connect, err = timeLimit(value)
	case "read_timeout":
		a.read, err = timeLimit(value)
	case "write_timeout":
		a.write, err = timeLimit(value)
	case "pool_size":
		if a.connections, err = strconv.Atoi(value); err == nil && a.connections < 1 {
			err = errors.New("must be 1 or more")
		}
	default:
		err = errors.New("is no parameter: there are db, client_name, skip_verify, dial_timeout, read_timeout, " +
			"write_timeout and pool_size")
	}
	return err
}

// timeLimit reads a duration such as 500ms, or a number of seconds; it must be above 0.
func timeLimit(text string) (time.Duration, error) {
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	limit, err := time.ParseDuration(text)
	if err == nil && limit <= 0 {
		err = errors.New("must be above 0")
	}
	return limit, err
}

func (a *redisAddress) options() []redis.DialOption {
	return []redis.DialOption{
		redis.DialUsername(a.user), redis.DialPassword(a.password), redis.DialDatabase(a.database),
		redis.DialClientName(a.name), redis.DialUseTLS(a.tls), redis.DialTLSSkipVerify(a.unverified),
		redis.DialConnectTimeout(a.connect), redis.DialTLSHandshakeTimeout(a.connect),
		redis.DialReadTimeout(a.read), redis.DialWriteTimeout(a.write),
	}
}

// Close closes the connections.
func (c *redisClient) Close() error { return c.pool.Close() }

// Use calls fn with a connection, which fn must not keep, and returns its error; while
// the breaker is open it fails at once. An error of fn's must be that of its calls.
// Where Redis has closed the connection since it was last used, fn is called again,
// with another one.
func (c *redisClient) Use(ctx context.Context, fn func(redis.Conn) error) error {
	_, err := c.breaker.Execute(func() (struct{}, error) {
		begun := time.Now()
		err := c.lend(ctx, func(conn redis.Conn) error {
			if c.refuses.Load() {
				if err := tryWrite(conn); err != nil {
					return err
				}
				c.refuses.Store(false)
			}
			return fn(conn)
		})
		if answer, ok := errors.AsType[redis.Error](err); ok && unwritable(answer) {
			c.refuses.Store(true)
		}
		c.observe(time.Since(begun), err)
		return struct{}{}, err
	})
	return err
}

func (c *redisClient) lend(ctx context.Context, fn func(redis.Conn) error) error {
	for {
		fresh := false
		err := c.lendOnce(ctx, &fresh, fn)
		if fresh || !closed(err) {
			return err
		}
	}
}

// lendOnce calls fn with a connection of the pool, or a fresh one.
func (c *redisClient) lendOnce(ctx context.Context, fresh *bool, fn func(redis.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, freshConnection{}, fresh), c.connect)
	defer cancel()
	conn, err := c.pool.GetContext(ctx)
	if err != nil {
		if !*fresh && errors.Is(err, context.DeadlineExceeded) {
			err = errBusy
		}
		return err
	}
	defer conn.Close() // back to the pool, which drops it after a failure
	return fn(conn)
}

// errBusy says that all connections were in use for too long. Whether Redis is there
// is for the calls to find that use them.
var errBusy = errors.New("all connections to Redis are in use")

// closed says that an error is that of a connection which the other side closed.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// do makes a call whose answer does not matter.
func (c *redisClient) do(ctx context.Context, command string, args ...any) error {
	return c.Use(ctx, func(conn redis.Conn) error {
		_, err := redis.DoContext(conn, ctx, command, args...)
		return err
	})
}

// newBreaker makes a circuit breaker for all calls to Redis. After breakerFailures
// in a row it opens: calls fail at once, and none slows a request down. After
// breakerOpen one call is let through, and its outcome decides.
func newBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: "redis", Timeout: breakerOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		IsSuccessful: func(err error) bool { return err == nil || answered(err) },
		IsExcluded: func(err error) bool { // the caller hung up, or never asked
			return errors.Is(err, context.Canceled) || errors.Is(err, errBusy)
		},
	})
}

// answered says that an error is an answer: Redis is there, and says no, or has no
// such value (redis.ErrNil). One that says that it takes no writes is none: it is as good as
// away.
func answered(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && !unwritable(answer) || errors.Is(err, redis.ErrNil)
}

// unwritable says that Redis refuses writes, or everything, in the state that it is in: as
// a replica, without memory or without a disk that takes its snapshots, while it loads.
// Scripts of Redis 6 and older have the code within the text.
func unwritable(answer redis.Error) bool {
	for _, code := range []string{"READONLY", "OOM", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN", "CLUSTERDOWN"} {
		if strings.HasPrefix(string(answer), code+" ") || strings.Contains(string(answer), "-"+code+" ") {
			return true
		}
	}
	return false
}

// primaryConn is a connection that its pool closes when it led to a server that became a
// replica: the next one is made to the address anew, where the primary may be by then.
type primaryConn struct {
	redis.Conn
	replica error // what it answered; nil while it takes writes
}

// Do runs a command.
func (c *primaryConn) Do(command string, args ...any) (any, error) {
	reply, err := c.Conn.Do(command, args...)
	return reply, c.noted(err)
}

// DoContext runs a command.
func (c *primaryConn) DoContext(ctx context.Context, command string, args ...any) (any, error) {
	reply, err := redis.DoContext(c.Conn, ctx, command, args...)
	return reply, c.noted(err)
}

// ReceiveContext reads an answer.
func (c *primaryConn) ReceiveContext(ctx context.Context) (any, error) {
	reply, err := redis.ReceiveContext(c.Conn, ctx)
	return reply, c.noted(err)
}

// Err is why the connection is of no use any more.
func (c *primaryConn) Err() error { return cmp.Or(c.replica, c.Conn.Err()) }

func (c *primaryConn) noted(err error) error {
	var answer redis.Error
	if errors.As(err, &answer) && strings.Contains(string(answer), "READONLY ") {
		c.replica = err
	}
	return err
}

// redisBudgets counts requests for all replicas; see ginop.Store.
type redisBudgets struct {
	client *redisClient
	clock  domain.Clock
}

// addToBudget adds ARGV[1] to the count KEYS[1], whose window of ARGV[2]
// milliseconds begins with it where there is none, and returns the count and
// the milliseconds that are left of the window.
var addToBudget = redis.NewScript(1, `
local n, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local left = redis.call("PTTL", KEYS[1])
if left < 0 then
	if n > 0 then
		redis.call("SET", KEYS[1], n, "PX", window)
	end
	return {math.max(n, 0), window}
end
return {redis.call("INCRBY", KEYS[1], n), left}
`)

// Add implements ginop.Store.
func (b redisBudgets) Add(
	ctx context.Context, name string, n int64, window time.Duration,
) (count int64, end time.Time, err error) {
	var got []int64
	err = b.client.Use(ctx, func(c redis.Conn) (err error) {
		got, err = redis.Int64s(addToBudget.Do(c, "partnerapi/budget:"+name, n, window.Milliseconds()))
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	// Redis counts whole milliseconds, and forgets a key after its last one.
	left := time.Duration(got[1]+1) * time.Millisecond
	return got[0], b.clock.Now().Add(left), nil
}
