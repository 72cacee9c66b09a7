package main

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/domain"
	"partnerapi/platform/directory"
)

// syncMetrics count and time the work on directory syncs.
type syncMetrics struct {
	runs    *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newSyncMetrics() *syncMetrics {
	m := &syncMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_sync_runs_total",
			Help: "Directory syncs that this process worked on, by provider and outcome: completed, failed, stopped (by the " +
				"guard against deactivations) or interrupted (to be continued).",
		}, []string{"provider", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "partnerapi_sync_seconds", Help: "How long this process worked on directory syncs, by provider.",
			Buckets: []float64{1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500},
		}, []string{"provider"}),
	}
	for _, provider := range domain.Directory("").Values() {
		for _, outcome := range []directory.Outcome{
			directory.Completed, directory.Failed, directory.Stopped, directory.Interrupted,
		} {
			m.runs.WithLabelValues(provider, string(outcome)) // 0 is shown too
		}
		m.seconds.WithLabelValues(provider)
	}
	return m
}

func (m *syncMetrics) count(provider domain.Directory, outcome directory.Outcome, took time.Duration) {
	name := cmp.Or(string(provider), "none")
	m.runs.WithLabelValues(name, string(outcome)).Inc()
	m.seconds.WithLabelValues(name).Observe(took.Seconds())
}
