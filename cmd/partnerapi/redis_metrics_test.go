package main

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
		up := "# HELP partnerapi_redis_up 1 where Redis answered, else 0.\n" +
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
