package main

import (
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
	m := newDeliveryMetrics()
	m.register(prometheus.NewPedanticRegistry())
	m.tried(id, webhook.Succeeded, time.Second)
	m.tried(id, webhook.Retried, 2*time.Second)
	for label, want := range map[[2]string]float64{
		{id.String(), string(webhook.Succeeded)}: 1, {id.String(), string(webhook.Retried)}: 1, {domain.OtherLabel, string(webhook.Lost)}: 0,
	} {
		if got := testutil.ToFloat64(m.tries.WithLabelValues(label[:]...)); got != want {
			t.Errorf("%v: %v, not %v", label, got, want)
		}
	}
	if n := testutil.CollectAndCount(m.tries); n != 2+len(webhook.Outcomes) { // 0 is shown too
		t.Errorf("%d series", n)
	}
}

// TestWebhookCA: a file without certificates is refused with the command line.
func TestWebhookCA(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, name, "none")
	got := command(t, "serve", "--webhook-ca", name)
	if got.code != 2 || !strings.Contains(got.err, "--webhook-ca: ") || !strings.Contains(got.err, "no certificate") {
		t.Errorf("%+v", got)
	}
}
