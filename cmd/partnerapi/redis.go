package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"partnerapi/domain"
)

// redisClient is nil where no Redis is configured.
type redisClient = *redis.Client

const (
	// redisWait bounds each step of a call to Redis, unless its URL does:
	// requests wait for it, and can do without.
	redisWait = 250 * time.Millisecond
	// breakerFailures is after how many failures in a row Redis is left alone.
	breakerFailures = 3
	// breakerOpen is how long it is left alone before one call tries it again.
	breakerOpen = 5 * time.Second
)

// openRedis opens the client of what replicas share. While Redis fails or keeps
// silent, its calls fail at once (see breaker).
func openRedis(ctx context.Context, address string, log *slog.Logger) (redisClient, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		var quoting *url.Error // the whole address, its password too
		if errors.As(err, &quoting) {
			err = quoting.Err
		}
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	for _, wait := range []*time.Duration{&options.DialTimeout, &options.ReadTimeout, &options.WriteTimeout} {
		if *wait == 0 {
			*wait = redisWait
		}
	}
	if options.MaxRetries == 0 {
		options.MaxRetries = 1
	}
	options.DialerRetries = 1
	redis.SetLogger(redisLog{log})
	client := redis.NewClient(options)
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("reach Redis: %w", err), client.Close())
	}
	client.AddHook(newBreaker())
	return client, nil
}

// redisLog takes the driver's own lines: what they tell of is logged in the
// service's words by whoever called.
type redisLog struct{ *slog.Logger }

// Printf logs a line.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.DebugContext(ctx, fmt.Sprintf(format, v...))
}

// breaker is a circuit breaker around all calls to Redis. After breakerFailures
// in a row it opens: calls fail at once, and none slows a request down. After
// breakerOpen one call is let through, and its outcome decides. It is safe for
// concurrent use.
type breaker struct {
	*gobreaker.CircuitBreaker[struct{}]
}

func newBreaker() breaker {
	return breaker{gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: "redis", Timeout: breakerOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		IsSuccessful: func(err error) bool { return err == nil || answered(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) }, // the caller hung up
	})}
}

// answered says that an error is an answer: Redis is there, and says no; redis.Nil too.
func answered(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// withinBreaker marks the context of a call that the breaker let through: the
// handshake of a connection that it makes is part of it.
type withinBreaker struct{}

// call lets fn through, or fails at once. Only then reports rejected.
func (b breaker) call(ctx context.Context, fn func(context.Context) error) (rejected bool, err error) {
	if ctx.Value(withinBreaker{}) != nil {
		return false, fn(ctx)
	}
	rejected = true
	_, err = b.Execute(func() (struct{}, error) {
		rejected = false
		return struct{}{}, fn(context.WithValue(ctx, withinBreaker{}, true))
	})
	return rejected, err
}

// DialHook leaves dialling as it is: a failure is the call's that needs it.
func (b breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook puts the breaker around a command.
func (b breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		rejected, err := b.call(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if rejected {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook puts the breaker around a pipeline.
func (b breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		rejected, err := b.call(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if rejected {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// redisBudgets counts requests for all replicas; see ginop.Store.
type redisBudgets struct {
	client redisClient
	clock  domain.Clock
}

// addToBudget adds ARGV[1] to the count KEYS[1], whose window of ARGV[2]
// milliseconds begins with it where there is none, and returns the count and
// the milliseconds that are left of the window.
var addToBudget = redis.NewScript(`
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
	keys := []string{"partnerapi/budget:" + name}
	got, err := addToBudget.Run(ctx, b.client, keys, n, window.Milliseconds()).Int64Slice()
	if err != nil {
		return 0, time.Time{}, err
	}
	// Redis counts whole milliseconds, and forgets a key after its last one.
	left := time.Duration(got[1]+1) * time.Millisecond
	return got[0], b.clock.Now().Add(left), nil
}
