package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
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
		r := command(t, "serve", "--listen=127.0.0.1:0", "--data-dir="+t.TempDir(), "--redis-url="+address, database(t))
		if r.code != 1 || !strings.Contains(r.err, word) ||
			strings.Contains(r.err, "sesame") || strings.Contains(r.err, "ses%ame") {
			t.Errorf("%s: exit %d: %s", address, r.code, r.err)
		}
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
	client, err := openRedis(t.Context(), "redis://"+listener.Addr().String()+"?max_retries=-1", slog.Default())
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
	pipe := client.TxPipeline()
	set := pipe.Set(t.Context(), "k", "v", 0)
	if _, err := pipe.Exec(t.Context()); !errors.Is(err, gobreaker.ErrOpenState) || set.Err() == nil {
		t.Errorf("a pipeline ends in %v, its command in %v", err, set.Err())
	}
}

// TestBreaker opens after failures in a row, and closes when one call in a
// while succeeds.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, result := 0, error(nil)
		b := newBreaker()
		handshake := b.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return result })
		process := b.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error {
			calls++
			err := handshake(ctx, nil) // of its connection
			if err != nil {
				cmd.SetErr(err)
			}
			return err
		})
		call := func(wantCalls int, want error) {
			t.Helper()
			cmd := redis.NewCmd(t.Context())
			err := process(t.Context(), cmd)
			if !errors.Is(err, want) || !errors.Is(cmd.Err(), want) || calls != wantCalls {
				t.Fatalf("call %d ends in %v", calls, err)
			}
		}
		silent := errors.New("i/o timeout")
		result = redis.Nil // an answer
		for n := range 5 {
			call(n+1, redis.Nil)
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
	client, err := openRedis(t.Context(), "redis://"+store.Addr(), slog.Default())
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
