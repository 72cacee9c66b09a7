package main

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sony/gobreaker/v2"
)

// TestRedisIsWatched: that Redis is away, and how long its calls take, are metrics.
func TestRedisIsWatched(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	client, err := openRedis(t.Context(), "redis://"+store.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, want := range []string{"1", "0"} {
		r := prometheus.NewPedanticRegistry()
		newRedisMetrics(client, r)
		if want == "0" {
			store.Close()
		}
		_ = client.do(t.Context(), "GET", "nothing")
		up := "# HELP partnerapi_redis_up 1 where Redis answered and took a write, else 0.\n" +
			"# TYPE partnerapi_redis_up gauge\npartnerapi_redis_up " + want + "\n"
		if err := testutil.GatherAndCompare(r, strings.NewReader(up), "partnerapi_redis_up"); err != nil {
			t.Error(err)
		}
		outcome := map[string]string{"1": "answered", "0": "failed"}[want]
		if n := sampled(t, r, "partnerapi_redis_seconds", outcome); n < 2 {
			t.Errorf("%d calls %s", n, outcome)
		}
	}
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
// address is connected to anew.
func TestUnwritableRedis(t *testing.T) {
	t.Parallel()
	for _, answer := range refusing {
		store := miniredis.RunT(t)
		client, err := openRedis(t.Context(), "redis://"+store.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.write(t.Context()); err != nil {
			t.Error(err)
		}
		store.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
			if command != "EVALSHA" && command != "EVAL" {
				return false
			}
			c.WriteError(answer)
			return true
		})
		r := prometheus.NewPedanticRegistry()
		newRedisMetrics(client, r)
		up := "# HELP partnerapi_redis_up 1 where Redis answered and took a write, else 0.\n" +
			"# TYPE partnerapi_redis_up gauge\npartnerapi_redis_up 0\n"
		if err := testutil.GatherAndCompare(r, strings.NewReader(up), "partnerapi_redis_up"); err != nil {
			t.Errorf("%s: %v", answer, err)
		}
		if n := sampled(t, r, "partnerapi_redis_seconds", "failed"); n != 1 {
			t.Errorf("%s: %d calls failed", answer, n)
		}
		at, written, err := probeRedis(t.Context(), "redis://"+store.Addr())
		if err != nil || written == nil || at != store.Addr() {
			t.Errorf("%s: doctor finds %s, %v, %v", answer, at, written, err)
		}
		if idle, replica := client.pool.IdleCount(), strings.Contains(answer, "READONLY"); (idle == 0) != replica {
			t.Errorf("%s: %d connections are kept", answer, idle)
		}
		if err := client.do(t.Context(), "GET", "nothing"); err == nil {
			t.Errorf("%s: what only reads goes on", answer)
		}
		for range breakerFailures {
			_ = client.write(t.Context())
		}
		if err := client.write(t.Context()); !errors.Is(err, gobreaker.ErrOpenState) {
			t.Errorf("%s: a further call ends in %v", answer, err)
		}
	}
}

// TestRedisTakesWritesAgain: Redis is there again for reads too once it takes a write.
func TestRedisTakesWritesAgain(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	client, err := openRedis(t.Context(), "redis://"+store.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store.Server().SetPreHook(func(c *server.Peer, _ string, _ ...string) bool {
		c.WriteError(refusing[0])
		return true
	})
	if err := client.write(t.Context()); err == nil {
		t.Error("a replica takes a write")
	}
	store.Server().SetPreHook(nil)
	if err := client.do(t.Context(), "GET", "nothing"); err != nil || client.refuses.Load() {
		t.Errorf("a read ends in %v, and Redis refuses: %t", err, client.refuses.Load())
	}
}

// TestReadOnlyBudgets: while Redis takes no writes, requests are answered, and counted by
// each process.
func TestReadOnlyBudgets(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	one := serving(t, demonstration(t), "--demo", "--release=latest", "--redis-url=redis://"+store.Addr())
	id := regexp.MustCompile(`cli_[0-9a-z]+`).FindString(string(one.get("/v2/clients?limit=1", "pk_demo_readonly").body))
	store.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		if (command == "EVALSHA" || command == "EVAL") && args[3] != "0" { // a look at a budget is no write
			c.WriteError(refusing[0])
			return true
		}
		return false
	})
	for i := range 5 {
		got := one.get("/v2/clients/"+id+"/users?limit=1", "pk_demo_all").want(http.StatusOK)
		if left := got.header.Get("X-RateLimit-Remaining"); left != strconv.Itoa(599-i) {
			t.Errorf("request %d leaves %s", i, left)
		}
		one.get("/v2/clients", "pk_nobody").want(http.StatusUnauthorized)
	}
	if text := string(one.get("/metrics", "").want(http.StatusOK).body); !strings.Contains(text, "\npartnerapi_redis_up 0\n") {
		t.Error("the metric does not say that Redis takes no writes")
	}
	if n := strings.Count(one.logs.String(), "the shared budgets"); n != 1 { // and none that they can be reached again
		t.Errorf("the log says %d times that budgets are not shared:\n%s", n, one.logs)
	}
	one.finish()
}

// sampled is how many values the histogram of a registry has of a label.
func sampled(t *testing.T, r *prometheus.Registry, name, label string) (n uint64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
				n = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}
