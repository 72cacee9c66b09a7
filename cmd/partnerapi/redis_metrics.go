package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/cmd/internal/figures"
)

// redisProbe is the timeout of a probe of Redis.
const redisProbe = time.Second

// redisMetrics times the calls to Redis, and probes whether it is usable.
type redisMetrics struct {
	client  *redisClient
	seconds *prometheus.HistogramVec

	mu sync.Mutex
	up float64   // the result of the last probe
	at time.Time // of the last probe
}

// newRedisMetrics monitors a client of openRedis, and adds its metrics to r.
func newRedisMetrics(client *redisClient, r prometheus.Registerer) {
	m := &redisMetrics{client: client, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "partnerapi_redis_seconds", Help: "Duration of calls to Redis, by outcome: answered or failed.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	}, []string{"outcome"})}
	for _, outcome := range []string{"answered", "failed"} {
		m.seconds.WithLabelValues(outcome) // 0 is shown too
	}
	client.observe = m.observe
	up := prometheus.GaugeOpts{Name: "partnerapi_redis_up", Help: "1 if Redis responded and accepted a write, otherwise 0."}
	r.MustRegister(prometheus.NewGaugeFunc(up, m.isUp), m.seconds)
}

// isUp returns 1 if Redis answered and took a write when it was last probed, otherwise 0. It probes at most once per
// figures.Age.
func (m *redisMetrics) isUp() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || time.Since(m.at) >= figures.Age {
		ctx, cancel := context.WithTimeout(context.Background(), redisProbe)
		defer cancel()
		m.up = 0
		if m.client.checkWritable(ctx) == nil {
			m.up = 1
		}
		m.at = time.Now()
	}
	return m.up
}

// observe counts and times a call by its outcome. It ignores a call whose caller hung up.
func (m *redisMetrics) observe(took time.Duration, err error) {
	outcome := "answered"
	switch {
	case errors.Is(err, context.Canceled): // the caller hung up
		return
	case err != nil && !isAnswer(err):
		outcome = "failed"
	}
	m.seconds.WithLabelValues(outcome).Observe(took.Seconds())
}
