package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	redisstore "github.com/ulule/limiter/v3/drivers/store/redis"

	"partnerapi/domain"
)

// redisClient is nil where no Redis is configured.
type redisClient = *redis.Client

const (
	// redisWait bounds each step of a call to Redis, unless its URL does:
	// requests wait for it, and can do without.
	redisWait = 500 * time.Millisecond
	// redialEvery is how often a Redis that is away is looked for.
	redialEvery = time.Second
)

// openRedis opens what replicas share: the client, and the store of budgets.
func openRedis(address string, clock domain.Clock) (redisClient, limiter.Store, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		var quoting *url.Error // the whole address, its password too
		if errors.As(err, &quoting) {
			err = quoting.Err
		}
		return nil, nil, fmt.Errorf("--redis-url: %w", err)
	}
	for _, wait := range []*time.Duration{&options.DialTimeout, &options.ReadTimeout, &options.WriteTimeout} {
		if *wait == 0 {
			*wait = redisWait
		}
	}
	options.MaxRetries, options.DialerRetries = 1, 1
	options.Dialer = (&redialer{dial: redis.NewDialer(options), clock: clock}).Dial
	client := redis.NewClient(options)
	store, err := redisstore.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "partnerapi/budget"})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reach Redis: %w", err), client.Close())
	}
	return client, store, nil
}

// redialer dials at most once in redialEvery while that fails; in between it
// fails at once, so that an outage does not slow every request down. It is safe
// for concurrent use.
type redialer struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	clock domain.Clock

	mu    sync.Mutex
	err   error // of the last try
	until time.Time
}

// Dial connects, or returns why the last try failed.
func (r *redialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := r.failing(); err != nil {
		return nil, err
	}
	conn, err := r.dial(ctx, network, address)
	if !errors.Is(ctx.Err(), context.Canceled) { // else it was the caller who gave up
		r.mu.Lock()
		r.err, r.until = err, r.clock.Now().Add(redialEvery)
		r.mu.Unlock()
	}
	return conn, err
}

func (r *redialer) failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil && r.clock.Now().Before(r.until) {
		return r.err
	}
	return nil
}
