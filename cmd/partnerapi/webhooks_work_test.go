package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestDeliveryMetrics: what the dispatcher tells is counted, by subscription.
func TestDeliveryMetrics(t *testing.T) {
	t.Parallel()
	id := db.NewID[domain.WebhookKind]()
	registry := prometheus.NewPedanticRegistry()
	m := newDeliveryMetrics()
	m.register(registry)
	m.tried(id, webhook.Succeeded, time.Second)
	m.tried(id, webhook.Retried, 2*time.Second)
	m.dropped.Add(4)
	m.disabled.Inc()
	want := strings.ReplaceAll(`
# HELP partnerapi_webhook_disabled_total Subscriptions that were disabled, for their endpoint took no events.
# TYPE partnerapi_webhook_disabled_total counter
partnerapi_webhook_disabled_total 1
# HELP partnerapi_webhook_dropped_total Deliveries that were given up because of their subscription or its key.
# TYPE partnerapi_webhook_dropped_total counter
partnerapi_webhook_dropped_total 4
# HELP partnerapi_webhook_tries_total Tries to deliver an event, by subscription and outcome: succeeded, retried, failed or lost.
# TYPE partnerapi_webhook_tries_total counter
partnerapi_webhook_tries_total{outcome="failed",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="lost",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="retried",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="retried",webhook="ID"} 1
partnerapi_webhook_tries_total{outcome="succeeded",webhook="others"} 0
partnerapi_webhook_tries_total{outcome="succeeded",webhook="ID"} 1
`, "ID", id.String())
	names := []string{"partnerapi_webhook_disabled_total", "partnerapi_webhook_dropped_total", "partnerapi_webhook_tries_total"}
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
