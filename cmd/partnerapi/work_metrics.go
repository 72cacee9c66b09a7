package main

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/mail"
	"partnerapi/platform/report"
	"partnerapi/platform/webhook"
)

// This file has the metrics of the background work.

// newMailTries returns the counter of attempts to send email.
func newMailTries() *prometheus.CounterVec {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "partnerapi_mail_tries_total",
		Help: "Attempts to send an email, by kind and outcome: sent, failed, retried, suppressed or lost.",
	}, []string{"kind", "outcome"})
	for _, kind := range []db.OutboxKind{db.RequestedMail, db.SimulatedMail} { // partners' email counts as requested
		for _, outcome := range []mail.Outcome{mail.Sent, mail.Failed, mail.Retried, mail.Suppressed, mail.Lost} {
			tries.WithLabelValues(string(kind), string(outcome)) // 0 is shown too
		}
	}
	return tries
}

// reportMetrics count and time the attempts to make a report.
type reportMetrics struct {
	tries   *prometheus.CounterVec
	seconds prometheus.Histogram
}

func newReportMetrics() *reportMetrics {
	m := &reportMetrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_report_tries_total",
			Help: "Attempts to create a report, by outcome: made, retried, waiting or failed.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "partnerapi_report_seconds", Help: "Duration of attempts to create a report.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100},
		}),
	}
	for _, outcome := range []report.Outcome{report.Made, report.Retried, report.Waiting, report.Failed} {
		m.tries.WithLabelValues(string(outcome)) // 0 is shown too
	}
	return m
}

// observe adds an attempt to make a report: its outcome and how long it took.
func (m *reportMetrics) observe(outcome report.Outcome, took time.Duration) {
	m.tries.WithLabelValues(string(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}

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
			Name: "partnerapi_sync_seconds", Help: "Time that this process worked on a directory sync, by provider.",
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

// count counts and times the work on a sync. The provider is empty if the client no longer has a directory.
func (m *syncMetrics) count(provider domain.Directory, outcome directory.Outcome, took time.Duration) {
	name := cmp.Or(string(provider), "none")
	m.runs.WithLabelValues(name, string(outcome)).Inc()
	m.seconds.WithLabelValues(name).Observe(took.Seconds())
}

// triedWebhooks bounds how many subscriptions have their own series.
const triedWebhooks = 1000

// deliveryMetrics count and time delivery attempts.
type deliveryMetrics struct {
	tries             *prometheus.CounterVec
	webhooks          *domain.Labels // of tries
	seconds           prometheus.Histogram
	dropped, disabled prometheus.Counter
}

func newDeliveryMetrics() *deliveryMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "partnerapi_webhook_" + name, Help: help})
	}
	m := &deliveryMetrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_webhook_tries_total",
			Help: "Attempts to deliver an event, by webhook and outcome: succeeded, retried, failed or lost.",
		}, []string{"webhook", "outcome"}),
		webhooks: domain.NewLabels(triedWebhooks),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "partnerapi_webhook_seconds", Help: "Response time of webhook endpoints.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		dropped:  counter("dropped_total", "Deliveries dropped because of their webhook or its key."),
		disabled: counter("disabled_total", "Webhooks disabled because their endpoint accepted no events."),
	}
	for _, outcome := range webhook.Outcomes {
		m.tries.WithLabelValues(domain.OtherLabel, string(outcome)) // 0 is shown too
	}
	return m
}

// tried counts and times an attempt to deliver an event. After the first triedWebhooks, webhooks are counted together.
func (m *deliveryMetrics) tried(id domain.WebhookID, outcome webhook.Outcome, took time.Duration) {
	m.tries.WithLabelValues(m.webhooks.Of(id.String()), string(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}
