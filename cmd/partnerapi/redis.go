// This file has what replicas share in Redis: the budgets, and the client, whose calls go through a circuit breaker.

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
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sony/gobreaker/v2"
)

const (
	// redisWait bounds each step of a call to Redis: requests wait for it, and can do without.
	redisWait = 250 * time.Millisecond
	// redisConnections is the maximum number of connections of a process per processor.
	redisConnections = 10
	// redisIdle is how long an unused connection is kept.
	redisIdle = 30 * time.Minute
	// breakerFailures is the number of failures in a row that opens the breaker.
	breakerFailures = 3
	// breakerOpen is how long the breaker stays open before one call tries Redis again.
	breakerOpen = 5 * time.Second
)

// redisClient provides connections to Redis, from a bounded pool and through a circuit breaker. It is nil if no
// Redis is configured, and safe for concurrent use.
type redisClient struct {
	address string
	pool    *redis.Pool
	breaker *gobreaker.CircuitBreaker[struct{}]
	// rejectsWrites reports whether Redis refused the last write. Each call then tries a write first, so that calls
	// that only read fail too.
	rejectsWrites atomic.Bool
	// observe is called with the duration and error of each call that the breaker let through. It is set before the
	// client is used concurrently.
	observe func(time.Duration, error)
}

// openRedis opens the client of the shared Redis, and pings it. While Redis fails or hangs, calls fail at once.
func openRedis(ctx context.Context, address string) (*redisClient, error) {
	at, err := redisAddress(address)
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	c := &redisClient{address: at.Host, breaker: newBreaker(), observe: func(time.Duration, error) {}}
	most := redisConnections * runtime.GOMAXPROCS(0)
	c.pool = &redis.Pool{
		MaxActive: most, MaxIdle: most, Wait: true, IdleTimeout: redisIdle,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			if fresh, ok := ctx.Value(freshConnection{}).(*bool); ok {
				*fresh = true // tells lend that the connection was not idle
			}
			// Each step has its own timeout, in place of that of ctx.
			conn, err := redis.DialURLContext(context.WithoutCancel(ctx), at.String(),
				redis.DialConnectTimeout(redisWait), redis.DialTLSHandshakeTimeout(redisWait),
				redis.DialReadTimeout(redisWait), redis.DialWriteTimeout(redisWait))
			if err != nil {
				return nil, err
			}
			return &primaryConn{Conn: conn}, nil
		},
	}
	if err := c.do(ctx, "PING"); err != nil {
		return nil, errors.Join(fmt.Errorf("--redis-url: connect to Redis at %s: %w", at.Host, err), c.Close())
	}
	return c, nil
}

// probeRedis connects to the Redis at a URL. It returns the address and, in writeErr, the error of a write to it.
func probeRedis(ctx context.Context, url string) (at string, writeErr, err error) {
	client, err := openRedis(ctx, url)
	if err != nil {
		return "", nil, err
	}
	defer client.Close()
	return client.address, client.checkWritable(ctx), nil
}

// checkWritable returns an error if Redis takes no writes, even if it answers.
func (c *redisClient) checkWritable(ctx context.Context) error { return c.Use(ctx, probeWrite) }

// probeWrite makes a write as budgets do, under a name that no budget has.
func probeWrite(conn redis.Conn) error {
	_, err := addToBudget.Do(conn, "partnerapi/budget:probe/"+rand.Text(), 1, redisWait.Milliseconds()) // n, window
	return err
}

// freshConnection is the context key of a *bool, which is set when a connection was dialed rather than reused.
type freshConnection struct{}

// databasePath matches a URL path with the number of a database, or none.
var databasePath = regexp.MustCompile(`^/?\d*$`)

// redisAddress parses a --redis-url, and completes its host and port. Its errors never contain the password: it
// rejects what redis.DialURLContext would quote.
func redisAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "redis" && u.Scheme != "rediss", u.Opaque != "", !databasePath.MatchString(u.Path):
		return nil, errors.New("not a valid URL; write it as redis://user:password@host:port/database, or with rediss:// " +
			"for TLS, with special characters escaped")
	case u.RawQuery != "":
		return nil, errors.New("parameters are not supported; omit the ? and everything after it")
	}
	u.Host = net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379"))
	return u, nil
}

// Close closes the connections.
func (c *redisClient) Close() error { return c.pool.Close() }

// Use calls fn with a connection, which fn must not keep, and returns fn's error. fn must return errors of its calls.
// While the breaker is open, Use fails at once. If Redis had closed the idle connection, fn is called again with
// another one. After Redis refused a write, Use makes a test write first, and calls fn only if that succeeds.
func (c *redisClient) Use(ctx context.Context, fn func(redis.Conn) error) error {
	_, err := c.breaker.Execute(func() (struct{}, error) {
		start := time.Now()
		err := c.lend(ctx, func(conn redis.Conn) error {
			if c.rejectsWrites.Load() {
				if err := probeWrite(conn); err != nil {
					return err
				}
				c.rejectsWrites.Store(false)
			}
			return fn(conn)
		})
		if answer, ok := errors.AsType[redis.Error](err); ok && refusedByState(answer) {
			c.rejectsWrites.Store(true)
		}
		c.observe(time.Since(start), err)
		return struct{}{}, err
	})
	return err
}

// lend calls fn with a pooled connection. If Redis had closed it while it was idle, lend tries again with another one.
func (c *redisClient) lend(ctx context.Context, fn func(redis.Conn) error) error {
	for {
		fresh := false
		err := c.lendOnce(ctx, &fresh, fn)
		if fresh || !isClosedConn(err) {
			return err
		}
	}
}

// lendOnce calls fn with a connection of the pool, within redisWait; fresh is set if the connection was dialed. It
// returns errBusy if all connections stay in use.
func (c *redisClient) lendOnce(ctx context.Context, fresh *bool, fn func(redis.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, freshConnection{}, fresh), redisWait)
	defer cancel()
	conn, err := c.pool.GetContext(ctx)
	if err != nil {
		if !*fresh && errors.Is(err, context.DeadlineExceeded) { // no dial was tried: it waited for the pool
			err = errBusy
		}
		return err
	}
	defer conn.Close() // back to the pool, which drops it after a failure
	return fn(conn)
}

// errBusy is returned if all connections stay in use. The breaker ignores it, as it is no failure of Redis.
var errBusy = errors.New("all connections to Redis are in use")

// isClosedConn reports whether an error shows that Redis had closed the connection.
func isClosedConn(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// do runs a command, and returns only its error.
func (c *redisClient) do(ctx context.Context, command string, args ...any) error {
	return c.Use(ctx, func(conn redis.Conn) error {
		_, err := redis.DoContext(conn, ctx, command, args...)
		return err
	})
}

// newBreaker returns a circuit breaker for all calls to Redis. After breakerFailures in a row it opens: calls fail
// at once, so that Redis slows no request down. After breakerOpen one call is let through, and its outcome decides.
func newBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: "redis", Timeout: breakerOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		IsSuccessful: func(err error) bool { return err == nil || isAnswer(err) },
		IsExcluded: func(err error) bool { // the caller hung up, or never asked
			return errors.Is(err, context.Canceled) || errors.Is(err, errBusy)
		},
	})
}

// isAnswer reports whether an error is a regular answer: Redis is up, and refuses or has no such value (redis.ErrNil).
// A refusal because of Redis's own state, such as that of a replica, counts as an outage.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && !refusedByState(answer) || errors.Is(err, redis.ErrNil)
}

// refusedByState reports whether Redis refused its own command because state: it is a read-only replica, out of
// memory, unable to save snapshots, without enough replicas, loading its data, or cut off from its master or cluster.
// Redis 6 and older have the code of a script's error in the message, after a minus sign.
func refusedByState(answer redis.Error) bool {
	for _, code := range []string{"READONLY", "OOM", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN", "CLUSTERDOWN"} {
		if strings.HasPrefix(string(answer), code+" ") || strings.Contains(string(answer), "-"+code+" ") {
			return true
		}
	}
	return false
}

// primaryConn is a connection that the pool discards once its server has become a replica; the next dial may find
// the primary at the address.
type primaryConn struct {
	redis.Conn
	replica error // its READONLY error; nil while it takes writes
}

func (c *primaryConn) Do(command string, args ...any) (any, error) {
	reply, err := c.Conn.Do(command, args...)
	return reply, c.noteReplica(err)
}

func (c *primaryConn) DoContext(ctx context.Context, command string, args ...any) (any, error) {
	reply, err := redis.DoContext(c.Conn, ctx, command, args...)
	return reply, c.noteReplica(err)
}

func (c *primaryConn) ReceiveContext(ctx context.Context) (any, error) {
	reply, err := redis.ReceiveContext(c.Conn, ctx)
	return reply, c.noteReplica(err)
}

// Err returns why the connection is unusable.
func (c *primaryConn) Err() error { return cmp.Or(c.replica, c.Conn.Err()) }

// noteReplica returns err. If err shows that the server is a replica, so does Err, and the pool drops the connection.
func (c *primaryConn) noteReplica(err error) error {
	var answer redis.Error
	if errors.As(err, &answer) && strings.Contains(string(answer), "READONLY ") { // Redis 6 has it within a script's error
		c.replica = err
	}
	return err
}

// redisBudgets counts requests across replicas; see ginop.Store.
type redisBudgets struct{ client *redisClient }

// addToBudget adds ARGV[1] to the count KEYS[1], whose window of ARGV[2] milliseconds starts now if there is none,
// and returns the count and the milliseconds left in the window.
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

// Add adds n to the count of a name, and returns the count and the rest of its window, by the clock of Redis. It
// implements ginop.Store.
func (b redisBudgets) Add(
	ctx context.Context, name string, n int64, window time.Duration,
) (count int64, left time.Duration, err error) {
	var got []int64 // the count, and the milliseconds left in the window
	err = b.client.Use(ctx, func(c redis.Conn) (err error) {
		got, err = redis.Int64s(addToBudget.Do(c, "partnerapi/budget:"+name, n, window.Milliseconds()))
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	// Redis counts whole milliseconds, and forgets a key after its last one.
	return got[0], time.Duration(got[1]+1) * time.Millisecond, nil
}
