package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"partnerapi/cmd/internal/figures"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestDeliveryMetrics: what the dispatcher tells is counted, beside what waits in the
// database.
func TestDeliveryMetrics(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	id := db.NewID[domain.WebhookKind]()
	registry := figures.NewRegistry(version, figures.Sources{
		Clock: func() time.Time { return now }, PoolStats: func() pg.Stats { return pg.Stats{} },
		Figures: func(context.Context, time.Duration) (doctor.Figures, error) {
			return doctor.Figures{Deliveries: outbox.DeliveryBacklog{
				Waiting: 7, Due: now.Add(-90 * time.Second), Active: 3, Paused: 2, Disabled: 1,
				Failing: []outbox.FailingWebhook{{ID: id, FailingSince: now.Add(-time.Hour)}},
			}}, nil
		},
	})
	m := newDeliveryMetrics()
	m.register(registry)
	m.tried(id, webhook.Succeeded, time.Second)
	m.tried(id, webhook.Retried, 2*time.Second)
	m.dropped.Add(4)
	m.disabled.Inc()
	want := `
# HELP partnerapi_webhook_deliveries_waiting Deliveries that wait for a try, counted up to 100,000.
# TYPE partnerapi_webhook_deliveries_waiting gauge
partnerapi_webhook_deliveries_waiting 7
# HELP partnerapi_webhook_disabled_total Subscriptions that were disabled, for their endpoint took no events.
# TYPE partnerapi_webhook_disabled_total counter
partnerapi_webhook_disabled_total 1
# HELP partnerapi_webhook_dropped_total Deliveries that were given up because of their subscription or its key.
# TYPE partnerapi_webhook_dropped_total counter
partnerapi_webhook_dropped_total 4
# HELP partnerapi_webhook_failing_seconds Since when the deliveries of a subscription fail and none succeeded: the 20 longest.
# TYPE partnerapi_webhook_failing_seconds gauge
partnerapi_webhook_failing_seconds{webhook="ID"} 3600
# HELP partnerapi_webhook_oldest_due_seconds Since when the delivery that is due longest waits for its try; 0 where none does.
# TYPE partnerapi_webhook_oldest_due_seconds gauge
partnerapi_webhook_oldest_due_seconds 90
# HELP partnerapi_webhook_tries_total Tries to deliver an event, by subscription and outcome: succeeded, retried, failed or lost.
# TYPE partnerapi_webhook_tries_total counter
partnerapi_webhook_tries_total{outcome="failed",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="lost",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="retried",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="retried",webhook="ID"} 1
partnerapi_webhook_tries_total{outcome="succeeded",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="succeeded",webhook="ID"} 1
# HELP partnerapi_webhooks Subscriptions by status: active, paused or disabled.
# TYPE partnerapi_webhooks gauge
partnerapi_webhooks{status="active"} 3
partnerapi_webhooks{status="disabled"} 1
partnerapi_webhooks{status="paused"} 2
`
	names := []string{
		"partnerapi_webhook_deliveries_waiting", "partnerapi_webhook_disabled_total", "partnerapi_webhook_dropped_total",
		"partnerapi_webhook_failing_seconds", "partnerapi_webhook_oldest_due_seconds", "partnerapi_webhook_tries_total",
		"partnerapi_webhooks",
	}
	want = strings.ReplaceAll(want, "ID", id.String())
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// TestWebhookCA: a file without certificates is refused with the command line.
func TestWebhookCA(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := command(t, "serve", "--webhook-ca", name)
	if got.code != 2 || !strings.Contains(got.err, "--webhook-ca: ") || !strings.Contains(got.err, "no certificate") {
		t.Errorf("%+v", got)
	}
}
