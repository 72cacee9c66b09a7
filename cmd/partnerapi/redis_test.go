package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sony/gobreaker/v2"
)

// TestSharedBudgets counts the requests to two services together, while their Redis is there
// and takes writes.
func TestSharedBudgets(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	args := []string{demonstration(t), "--demo", "--release=latest", "--redis-url=redis://" + store.Addr()}
	one, two := serving(t, args...), serving(t, args...)
	id := regexp.MustCompile(`cli_[0-9a-z]+`).FindString(string(one.get("/v2/clients?limit=1", "pk_demo_readonly").body))
	leaves := func(r *running, want int) {
		t.Helper()
		got := r.get("/v2/clients/"+id+"/users?limit=1", "pk_demo_all").want(http.StatusOK)
		if left := got.header.Get("X-RateLimit-Remaining"); left != strconv.Itoa(want) {
			t.Errorf("%s are left, not %d", left, want)
		}
	}
	for i, r := range []*running{one, two, two, one} {
		leaves(r, 599-i)
	}
	store.Close()
	leaves(one, 599) // counted by itself
	says(t, one.logs.String(), "the shared request budgets are unavailable")
	if err := store.Restart(); err != nil {
		t.Fatal(err)
	}
	leaves(two, 595)

	store.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		if (command == "EVALSHA" || command == "EVAL") && args[3] != "0" { // a look at a budget is no write
			c.WriteError(refusing[0])
			return true
		}
		return false
	})
	for i := range 5 {
		leaves(two, 599-i)
		two.get("/v2/clients", "pk_nobody").want(http.StatusUnauthorized)
	}
	says(t, string(two.get("/metrics", "").want(http.StatusOK).body), "\npartnerapi_redis_up 0\n")
	if n := strings.Count(two.logs.String(), "the shared request budgets"); n != 1 { // and none that they can be reached again
		t.Errorf("the log says %d times that budgets are not shared:\n%s", n, two.logs)
	}
	one.finish()
	two.finish()
}

// TestRedisURL reads addresses. What is refused shows no password.
func TestRedisURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redis://": "localhost:6379", "redis://cache": "cache:6379", "redis://[::1]": "[::1]:6379", "redis://cache:": "cache:6379", "rediss://u:s%20t@[::1]:7/2": "[::1]:7",
	} {
		if got, err := redisAddress(text); err != nil || got.Host != want {
			t.Errorf("%s: %s (%v)", text, got, err)
		}
	}
	for _, text := range []string{
		"cache:6379", "http://:sesame@cache", "redis://cache/many", "redis://:sesame@cache?pool_size=4", "redis:sesame@cache",
		"redis://:ses/ame@cache", "redis://ses/ame@cache", "unix:///sesame", "redis://:ses%ame@127.0.0.1/0",
	} {
		if got, err := redisAddress(text); err == nil || strings.Contains(err.Error(), "ses") {
			t.Errorf("%s: %s (%v)", text, got, err)
		}
	}
	flag, locked := databaseFlag(t), miniredis.RunT(t)
	locked.RequireAuth("open")
	for address, words := range map[string][2]string{ // what serve says, and what doctor finds
		"redis://:sesame@127.0.0.1:1": {"Redis", "refused"}, "redis://:sesame@127.0.0.1/many": {"--redis-url", "not a valid URL"},
		"redis://:sesame@" + locked.Addr(): {"Redis", "WRONGPASS"},
	} {
		r := command(t, "serve", "--listen=127.0.0.1:0", "--data-dir="+t.TempDir(), "--redis-url="+address, flag)
		_, written, err := probeRedis(t.Context(), address)
		found := fmt.Sprint(written, err)
		says(t, found, words[1])
		if r.code != 1 || !strings.Contains(r.err, words[0]) || strings.Contains(r.err+found, "sesame") {
			t.Errorf("%s: exit %d: %s, found %s", address, r.code, r.err, found)
		}
	}
}

// TestRedisLogin opens a Redis that asks for a user and a password.
func TestRedisLogin(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	store.RequireUserAuth("ann", "s t")
	client := openedRedis(t, "redis://ann:s%20t@"+store.Addr()+"/2")
	if err := client.do(t.Context(), "SET", "key", "value"); err != nil || !store.DB(2).Exists("key") {
		t.Errorf("database 2 has no key (%v)", err)
	}
}

func openedRedis(t *testing.T, url string) *redisClient {
	t.Helper()
	client, err := openRedis(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// startRedis starts a Redis, and opens a client of it, until the test ends.
func startRedis(t *testing.T) (*miniredis.Miniredis, *redisClient) {
	t.Helper()
	store := miniredis.RunT(t)
	return store, openedRedis(t, "redis://"+store.Addr())
}

// wantUp wants the metric of Redis to be 1 or 0, and returns how many calls had an outcome
// while it was asked for.
func wantUp(t *testing.T, client *redisClient, up, outcome string) (calls uint64) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	newRedisMetrics(client, r)
	want := "# HELP partnerapi_redis_up 1 if Redis responded and accepted a write, otherwise 0.\n" +
		"# TYPE partnerapi_redis_up gauge\npartnerapi_redis_up " + up + "\n"
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "partnerapi_redis_up"); err != nil {
		t.Error(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "partnerapi_redis_seconds" && m.GetLabel()[0].GetValue() == outcome {
				calls = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return calls
}

// refusing are the answers of a Redis that takes no writes: of scripts of version 7, and of
// 6 and older.
var refusing = []string{
	"READONLY You can't write against a read only replica. script: 1f, on @user_script:6.",
	"ERR Error running script (call to f_1f): @user_script:6: @user_script: 6: -READONLY You can't write against a read only replica.",
	"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:6.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"NOREPLICAS Not enough good replicas to write.",
	"LOADING Redis is loading the dataset in memory",
}

// TestUnwritableRedis: a Redis that answers and takes no writes is as good as away: its
// metric is 0, doctor says so, each process counts for itself, and after a failover the
// address is connected to anew. It is there again for reads too once it takes a write.
func TestUnwritableRedis(t *testing.T) {
	t.Parallel()
	for _, answer := range refusing {
		store, client := startRedis(t)
		if wantUp(t, client, "1", "answered") == 0 {
			t.Error("no call was answered")
		}
		store.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
			if command != "EVALSHA" && command != "EVAL" {
				return false
			}
			c.WriteError(answer)
			return true
		})
		if wantUp(t, client, "0", "failed") == 0 {
			t.Errorf("%s: no call failed", answer)
		}
		at, written, err := probeRedis(t.Context(), "redis://"+store.Addr())
		if err != nil || written == nil || at != store.Addr() {
			t.Errorf("%s: doctor finds %s, %v, %v", answer, at, written, err)
		}
		if idle, replica := client.pool.IdleCount(), strings.Contains(answer, "READONLY"); (idle == 0) != replica {
			t.Errorf("%s: %d connections are kept", answer, idle)
		}
		reader := openedRedis(t, "redis://"+store.Addr())
		if err := errors.Join(reader.checkWritable(t.Context()), reader.do(t.Context(), "GET", "nothing")); err == nil || !reader.rejectsWrites.Load() {
			t.Errorf("%s: what only reads goes on", answer)
		}
		store.Server().SetPreHook(nil)
		if err := reader.do(t.Context(), "GET", "nothing"); err != nil || reader.rejectsWrites.Load() {
			t.Errorf("a read ends in %v, and Redis refuses: %t", err, reader.rejectsWrites.Load())
		}
	}
}

// TestRedisRestarts has Redis close all connections of the pool: the next call is made
// over a new one. That it is away is a metric.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	store, client := startRedis(t)
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
	store.Close()
	if wantUp(t, client, "0", "failed") == 0 {
		t.Error("no call failed")
	}
}

// TestSilentRedis has a Redis that accepts and never answers cost the first
// calls their wait, and the others nothing.
func TestSilentRedis(t *testing.T) {
	t.Parallel()
	store, client := startRedis(t)
	budgets := redisBudgets{client}
	if n, _, err := budgets.Add(t.Context(), "x", 1, time.Minute); err != nil || n != 1 {
		t.Fatalf("counts %d (%v)", n, err)
	}

	ended := make(chan struct{})
	defer close(ended)
	store.Server().SetPreHook(func(*server.Peer, string, ...string) bool { <-ended; return true })
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
// while succeeds. An answer, and a caller who hung up, are no failures; one that takes no writes is.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type step struct {
			result error
			times  int
			open   bool // from then on
		}
		silent := errors.New("i/o timeout")
		steps := []step{
			{redis.ErrNil, 5, false}, {context.Canceled, 5, false}, {silent, breakerFailures, true}, {silent, 1, true}, {nil, 2, false},
		}
		for _, answer := range refusing {
			steps = append(steps, step{redis.Error(answer), breakerFailures, true}, step{nil, 1, false})
		}
		b := newBreaker()
		for i, step := range steps {
			for range step.times {
				if _, err := b.Execute(func() (struct{}, error) { return struct{}{}, step.result }); !errors.Is(err, step.result) {
					t.Fatalf("a call of step %d ends in %v", i, err)
				}
			}
			if step.open {
				_, err := b.Execute(func() (struct{}, error) { return struct{}{}, nil })
				if !errors.Is(err, gobreaker.ErrOpenState) {
					t.Fatalf("after step %d a call ends in %v", i, err)
				}
				time.Sleep(breakerOpen + 1)
			}
		}
	})
}

// TestRedisBudgets counts in windows that begin with their first request and
// end for a request at their end.
func TestRedisBudgets(t *testing.T) {
	t.Parallel()
	store, client := startRedis(t)
	budgets := redisBudgets{client}
	for i, step := range []struct {
		after   time.Duration
		n, want int64
		left    time.Duration
	}{
		{0, 0, 0, time.Minute}, {0, -1, 0, time.Minute}, {0, 1, 1, time.Minute},
		{1500 * time.Millisecond, 1, 2, 58500 * time.Millisecond}, {0, 0, 2, 58500 * time.Millisecond}, {0, -1, 1, 58500 * time.Millisecond},
		{58499 * time.Millisecond, 1, 2, time.Millisecond}, {time.Millisecond, 0, 0, time.Minute}, {0, 1, 1, time.Minute},
	} {
		store.FastForward(step.after)
		count, left, err := budgets.Add(t.Context(), "key/x", step.n, time.Minute)
		if err != nil || count != step.want || left != step.left+time.Millisecond {
			t.Errorf("step %d counts %d, with %v left (%v)", i, count, left, err)
		}
	}
}
