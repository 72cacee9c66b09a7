package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// webhookFlags say where events may be delivered.
type webhookFlags struct {
	WebhookAllowPrivate bool   `name:"webhook-allow-private" help:"Deliver events to private, local and special addresses too: for tests and closed networks."`
	WebhookCA           string `name:"webhook-ca" type:"path" placeholder:"FILE" help:"Certificates in PEM of authorities that endpoints of webhooks may have theirs from, beside the machine's."`
}

// endpoints returns how endpoints are reached, by the time of clock.
func (f webhookFlags) endpoints(clock domain.Clock) (*webhook.Endpoints, error) {
	e, err := webhook.NewEndpoints(webhook.Options{
		AllowPrivate: f.WebhookAllowPrivate, CAFile: f.WebhookCA, Version: version, Clock: clock,
	})
	if err != nil {
		return nil, fmt.Errorf("--webhook-ca: %w", err)
	}
	return e, nil
}

// newDeliveries returns what delivers events.
func newDeliveries(d *db.DB, with kept, log *slog.Logger, metrics *deliveryMetrics) *webhook.Dispatcher {
	return webhook.NewDispatcher(d, with.endpoints, with.keys, log, webhook.Observer{
		Tried:    metrics.tried,
		Dropped:  func(n int) { metrics.dropped.Add(float64(n)) },
		Disabled: func(n int) { metrics.disabled.Add(float64(n)) },
	})
}

// triedWebhooks bounds how many subscriptions have a series of their own.
const triedWebhooks = 1000

// deliveryMetrics count and time the tries of deliveries.
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
			Help: "Tries to deliver an event, by subscription and outcome: succeeded, retried, failed or lost.",
		}, []string{"webhook", "outcome"}),
		webhooks: domain.NewLabels(triedWebhooks),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "partnerapi_webhook_seconds", Help: "How long endpoints took to answer tries.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		dropped:  counter("dropped_total", "Deliveries that were given up because of their subscription or its key."),
		disabled: counter("disabled_total", "Subscriptions that were disabled, for their endpoint took no events."),
	}
	for _, outcome := range webhook.Outcomes {
		m.tries.WithLabelValues(domain.OtherLabel, string(outcome)) // 0 is shown too
	}
	return m
}

func (m *deliveryMetrics) tried(id domain.WebhookID, outcome webhook.Outcome, took time.Duration) {
	m.tries.WithLabelValues(m.webhooks.Of(id.String()), string(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}

// register adds the metrics.
func (m *deliveryMetrics) register(r prometheus.Registerer) {
	r.MustRegister(m.tries, m.seconds, m.dropped, m.disabled)
}
