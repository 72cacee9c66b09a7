package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
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

// deliveryMetrics count and time the tries of deliveries, and show what waits.
type deliveryMetrics struct {
	tries             *prometheus.CounterVec
	seconds           prometheus.Histogram
	dropped, disabled prometheus.Counter
	waiting           *deliveryFigures
}

func newDeliveryMetrics(waiting *deliveryFigures) *deliveryMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "partnerapi_webhook_" + name, Help: help})
	}
	return &deliveryMetrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_webhook_tries_total",
			Help: "Tries to deliver an event, by outcome: succeeded, retried, failed or lost.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "partnerapi_webhook_seconds", Help: "How long endpoints took to answer tries.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		dropped:  counter("dropped_total", "Deliveries that were given up because of their subscription or its key."),
		disabled: counter("disabled_total", "Subscriptions that were disabled, for their endpoint took no events."),
		waiting:  waiting,
	}
}

func (m *deliveryMetrics) tried(outcome webhook.Outcome, took time.Duration) {
	m.tries.WithLabelValues(string(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}

// register adds the metrics.
func (m *deliveryMetrics) register(r prometheus.Registerer) {
	r.MustRegister(m.tries, m.seconds, m.dropped, m.disabled, m.waiting)
}

var (
	deliveriesDesc = description("webhook_deliveries_waiting", "Deliveries that wait for a try, counted up to 100,000.")
	lateDesc       = description("webhook_oldest_due_seconds",
		"Since when the delivery that is due longest waits for its try; 0 where none does.")
	webhooksDesc = description("webhooks", "Subscriptions by status: active, paused or disabled.", "status")
)

// deliveryFigures collects what waits. While the database is away, nothing is told.
type deliveryFigures struct {
	clock func() time.Time
	read  func(context.Context) (db.DeliveryBacklog, error)

	mu      sync.Mutex
	counted []prometheus.Metric
	at      time.Time
}

// Describe sends the descriptions of all figures.
func (f *deliveryFigures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{deliveriesDesc, lateDesc, webhooksDesc} {
		to <- d
	}
}

// Collect sends the figures, counted again where they are older than figuresAge.
func (f *deliveryFigures) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.clock(); f.at.IsZero() || now.Sub(f.at) >= figuresAge {
		f.counted, f.at = f.count(now), now
	}
	for _, m := range f.counted {
		to <- m
	}
}

func (f *deliveryFigures) count(now time.Time) (list []prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresWithin)
	defer cancel()
	b, err := f.read(ctx)
	if err != nil {
		return nil
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		list = append(list, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	var late time.Duration
	if !b.Due.IsZero() {
		late = max(0, now.Sub(b.Due))
	}
	gauge(deliveriesDesc, float64(b.Waiting))
	gauge(lateDesc, late.Seconds())
	gauge(webhooksDesc, float64(b.Active), string(domain.WebhookActive))
	gauge(webhooksDesc, float64(b.Paused), string(domain.WebhookPaused))
	gauge(webhooksDesc, float64(b.Disabled), string(domain.WebhookDisabled))
	return list
}
