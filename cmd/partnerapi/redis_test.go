package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/sony/gobreaker/v2"

	"partnerapi/domain"
)

// TestSharedBudgets counts the requests to two services together, while their
// Redis is there.
func TestSharedBudgets(t *testing.T) {
	store := miniredis.RunT(t)
	flag := demonstration(t)
	args := []string{flag, "--demo", "--redis-url=redis://" + store.Addr()}
	one, two := serving(t, args...), serving(t, args...)
	remaining := func(r *running) int {
		t.Helper()
		got := r.get("/v2/clients?limit=1", "pk_demo_all").want(http.StatusOK)
		n, err := strconv.Atoi(got.header.Get("X-RateLimit-Remaining"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, r := range []*running{one, two, two, one} {
		if got := remaining(r); got != 599-i {
			t.Errorf("request %d leaves %d", i, got)
		}
	}
	store.Close()
	if got := remaining(one); got != 599 { // counted by itself
		t.Errorf("without Redis, %d are left", got)
	}
	if !strings.Contains(one.logs.String(), "the shared budgets cannot be reached") {
		t.Errorf("the log says nothing of Redis:\n%s", one.logs)
	}
	if err := store.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := remaining(two); got != 595 {
		t.Errorf("with Redis again, %d are left", got)
	}
	one.finish()
	two.finish()
}

func TestRedisFlag(t *testing.T) {
	for address, word := range map[string]string{
		"redis://:ses%ame@127.0.0.1/0":   "--redis-url",
		"http://:sesame@127.0.0.1":       "--redis-url",
		"redis://:sesame@127.0.0.1:1":    "Redis",
		"redis://:sesame@127.0.0.1/many": "--redis-url",
	} {
		r := command(t, "serve", "--listen=127.0.0.1:0", "--data-dir="+t.TempDir(), "--redis-url="+address, databaseFlag(t))
		if r.code != 1 || !strings.Contains(r.err, word) ||
			strings.Contains(r.err, "sesame") || strings.Contains(r.err, "ses%ame") {
			t.Errorf("%s: exit %d: %s", address, r.code, r.err)
		}
	}
}

// TestRedisURL reads addresses, credentials and parameters.
func TestRedisURL(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*redisAddress){
		"redis://":                     func(a *redisAddress) { a.address = "localhost:6379" },
		"redis://cache":                func(*redisAddress) {},
		"redis://:s%20t@cache/2":       func(a *redisAddress) { a.password, a.database = "s t", 2 },
		"rediss://u:p@[::1]:7":         func(a *redisAddress) { a.tls, a.user, a.password, a.address = true, "u", "p", "[::1]:7" },
		"rediss://cache?skip_verify=1": func(a *redisAddress) { a.tls, a.unverified = true, true },
		"unix://u:p@/run/redis?db=3": func(a *redisAddress) {
			a.network, a.address, a.user, a.password, a.database = "unix", "/run/redis", "u", "p", 3
		},
		"redis://cache?client_name=api":  func(a *redisAddress) { a.name = "api" },
		"redis://cache?dial_timeout=2":   func(a *redisAddress) { a.connect = 2 * time.Second },
		"redis://cache?read_timeout=1ms": func(a *redisAddress) { a.read = time.Millisecond },
		"redis://cache?write_timeout=3s": func(a *redisAddress) { a.write = 3 * time.Second },
		"redis://cache?pool_size=4":      func(a *redisAddress) { a.connections = 4 },
	} {
		want := &redisAddress{network: "tcp", address: "cache:6379", connect: redisWait, read: redisWait, write: redisWait,
			connections: 10 * runtime.GOMAXPROCS(0)}
		change(want)
		if got, err := parseRedisURL(text); err != nil || *got != *want {
			t.Errorf("%s: %+v (%v)", text, got, err)
		}
	}
	for _, text := range []string{
		"cache:6379", "http://cache", "redis://cache/many", "redis://cache?pool_size=0", "redis://cache?read_timeout=-1",
		"redis://cache?write_timeout=soon", "redis://cache?min_idle_conns=3",
	} {
		if got, err := parseRedisURL(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestRedisRestarts has Redis close all connections of the pool: the next call is made
// over a new one.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	client, err := openRedis(t.Context(), "redis://"+store.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var atOnce func(n int) error
	atOnce = func(n int) error {
		if n == 0 {
			return nil
		}
		return client.Use(t.Context(), func(redis.Conn) error { return atOnce(n - 1) })
	}
	if err := atOnce(5); err != nil || client.pool.IdleCount() != 5 {
		t.Fatalf("%d connections (%v)", client.pool.IdleCount(), err)
	}
	store.Close()
	if err := store.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := client.do(t.Context(), "PING"); err != nil {
		t.Error(err)
	}
}

// silenced forwards connections to an address until it falls silent: from then
// on it takes what it is sent, and answers nothing.
type silenced struct {
	net.Listener
	to     string
	silent atomic.Bool
}

func (s *silenced) serve() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		go s.forward(conn)
	}
}

func (s *silenced) forward(conn net.Conn) {
	defer conn.Close()
	onward, err := net.Dial("tcp", s.to)
	if err != nil {
		return
	}
	defer onward.Close()
	go func() { _, _ = io.Copy(conn, onward) }()
	text := make([]byte, 4096)
	for {
		n, err := conn.Read(text)
		if err != nil {
			return
		}
		if !s.silent.Load() {
			_, _ = onward.Write(text[:n])
		}
	}
}

// TestSilentRedis has a Redis that accepts and never answers cost the first
// calls their wait, and the others nothing.
func TestSilentRedis(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	server := &silenced{Listener: listener, to: miniredis.RunT(t).Addr()}
	go server.serve()
	client, err := openRedis(t.Context(), "redis://"+listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	budgets := redisBudgets{client, domain.SystemClock{}}
	if n, _, err := budgets.Add(t.Context(), "x", 1, time.Minute); err != nil || n != 1 {
		t.Fatalf("counts %d (%v)", n, err)
	}

	server.silent.Store(true)
	for range breakerFailures {
		if _, _, err := budgets.Add(t.Context(), "x", 1, time.Minute); err == nil || errors.Is(err, gobreaker.ErrOpenState) {
			t.Errorf("one of the first calls ends in %v", err)
		}
	}
	if _, _, err := budgets.Add(t.Context(), "x", 1, time.Minute); !errors.Is(err, gobreaker.ErrOpenState) {
		t.Errorf("a further call ends in %v", err)
	}
}

// TestBreaker opens after failures in a row, and closes when one call in a
// while succeeds.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, result := 0, error(nil)
		b := newBreaker()
		call := func(wantCalls int, want error) {
			t.Helper()
			_, err := b.Execute(func() (struct{}, error) {
				calls++
				return struct{}{}, result
			})
			if !errors.Is(err, want) || calls != wantCalls {
				t.Fatalf("call %d ends in %v", calls, err)
			}
		}
		silent := errors.New("i/o timeout")
		result = redis.ErrNil // an answer
		for n := range 5 {
			call(n+1, redis.ErrNil)
		}
		result = context.Canceled // of a caller who hung up
		for n := range 5 {
			call(n+6, context.Canceled)
		}
		result = silent
		for n := range breakerFailures {
			call(n+11, silent)
		}
		call(13, gobreaker.ErrOpenState)
		time.Sleep(breakerOpen + 1)
		call(14, silent)
		call(14, gobreaker.ErrOpenState)
		time.Sleep(breakerOpen + 1)
		result = nil
		call(15, nil)
		call(16, nil)
	})
}

// TestRedisBudgets counts in windows that begin with their first request and
// end for a request at their end.
func TestRedisBudgets(t *testing.T) {
	store := miniredis.RunT(t)
	client, err := openRedis(t.Context(), "redis://"+store.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	clock := domain.NewManualClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	budgets := redisBudgets{client, clock}
	add := func(n, want int64, left time.Duration) {
		t.Helper()
		count, end, err := budgets.Add(t.Context(), "key/x", n, time.Minute)
		if err != nil || count != want || end.Sub(clock.Now()) != left+time.Millisecond {
			t.Errorf("counts %d until %v (%v)", count, end, err)
		}
	}
	add(0, 0, time.Minute)
	add(-1, 0, time.Minute)
	add(1, 1, time.Minute)
	store.FastForward(1500 * time.Millisecond)
	add(1, 2, 58500*time.Millisecond)
	add(0, 2, 58500*time.Millisecond)
	add(-1, 1, 58500*time.Millisecond)
	store.FastForward(58499 * time.Millisecond)
	add(1, 2, time.Millisecond)
	store.FastForward(time.Millisecond)
	add(0, 0, time.Minute)
	add(1, 1, time.Minute)
}
