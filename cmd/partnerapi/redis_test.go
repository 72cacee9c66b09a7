package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"partnerapi/domain"
)

// TestSharedBudgets counts the requests to two services together, while their
// Redis is there.
func TestSharedBudgets(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	flag := demonstration(t)
	args := []string{flag, "--demo", "--redis-url=redis://" + store.Addr()}
	one, two := serving(t, args...), serving(t, args...)
	remaining := func(r *running) int {
		t.Helper()
		n, err := strconv.Atoi(r.get("/v2/clients?limit=1", "pk_demo_all").want(http.StatusOK).header.Get("X-RateLimit-Remaining"))
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
	t.Parallel()
	for address, word := range map[string]string{
		"redis://:ses%ame@127.0.0.1/0":   "--redis-url",
		"http://:sesame@127.0.0.1":       "--redis-url",
		"redis://:sesame@127.0.0.1:1":    "Redis",
		"redis://:sesame@127.0.0.1/many": "--redis-url",
	} {
		r := command(t, "serve", "--listen=127.0.0.1:0", "--redis-url="+address, database(t))
		if r.code != 1 || !strings.Contains(r.err, word) || strings.Contains(r.err, "sesame") || strings.Contains(r.err, "ses%ame") {
			t.Errorf("%s: exit %d: %s", address, r.code, r.err)
		}
	}
}

// TestRedial has Redis be looked for once a second while it is away.
func TestRedial(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	away := errors.New("away")
	dials, result := 0, away
	r := &redialer{clock: clock, dial: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, result
	}}
	dial := func(want int, outcome error) {
		t.Helper()
		if _, err := r.Dial(t.Context(), "tcp", "redis:6379"); !errors.Is(err, outcome) || dials != want {
			t.Errorf("after %d dials: %v", dials, err)
		}
	}
	dial(1, away)
	dial(1, away)
	clock.Advance(redialEvery)
	dial(2, away)
	clock.Advance(redialEvery)
	result = nil
	dial(3, nil)
	dial(4, nil) // connections are made as needed while that succeeds
}
