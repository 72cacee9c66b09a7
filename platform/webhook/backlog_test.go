package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestBacklog: what waits is counted, and how long the delivery waits that is due
// longest; one that waits for its next try is not late. Active subscriptions that fail
// are named.
func TestBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := func(b outbox.DeliveryBacklog) {
		t.Helper()
		got, err := outbox.DeliveryBacklogs(t.Context(), w.DB)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(b) {
			t.Errorf("%+v in place of %+v: %v", got, b, err)
		}
	}
	want(outbox.DeliveryBacklog{})
	one, two := w.webhook("https://one.example/"), w.webhook("https://two.example/")
	w.publish(3, one)
	w.clock.Advance(time.Minute)
	w.publish(2, two)
	want(outbox.DeliveryBacklog{Waiting: 5, Due: noon, Active: 2})
	w.once(w.dispatcher(&script{w: w, answer: func(m webhook.Message) webhook.Answer {
		if m.URL == "https://one.example/" {
			return answered(200)
		}
		return answered(500)
	}}, webhook.Observer{}))
	w.exec("UPDATE webhooks SET status = 'paused' WHERE id = $1", one)
	want(outbox.DeliveryBacklog{
		Waiting: 2, Active: 1, Paused: 1, Failing: []outbox.FailingWebhook{{ID: two, FailingSince: w.clock.Now()}},
	})
	w.exec("UPDATE webhooks SET status = 'disabled' WHERE id = $1", two)
	want(outbox.DeliveryBacklog{Waiting: 2, Paused: 1, Disabled: 1})
}

// TestClaimCost: a claim and its marks read little more than what they claim, however
// much waits.
func TestClaimCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(5000, w.webhook("https://hook.example/"))
	w.exec("ANALYZE webhook_deliveries")
	const read = `SELECT coalesce(sum(pg_stat_get_xact_tuples_fetched(indexrelid) + pg_stat_get_xact_tuples_returned(indexrelid)), 0)
		+ (SELECT pg_stat_get_xact_tuples_returned('webhook_deliveries'::regclass))
		FROM pg_index WHERE indrelid = 'webhook_deliveries'::regclass`
	var rows, claimed int
	err := w.Tx(t.Context(), func(ctx context.Context) error {
		claim, err := outbox.ClaimDeliveries(ctx, w.DB, time.Minute, func(due []outbox.DueWebhook) []outbox.Places {
			return []outbox.Places{{Webhook: due[0].ID, N: 10}}
		})
		if err != nil {
			return err
		}
		var marks []outbox.DeliveryMark
		for _, l := range claim.Leases {
			try := domain.DeliveryTry{At: noon, StatusCode: 200}
			marks = append(marks, outbox.DeliveryMark{DeliveryLease: l, Try: &try, Status: domain.DeliverySucceeded, Due: noon})
		}
		done, err := outbox.MarkDeliveries(ctx, w.DB, marks)
		if err != nil {
			return err
		}
		claimed = len(done.Held)
		return w.Transaction(ctx).QueryRow(ctx, read).Scan(&rows)
	})
	if err != nil || claimed != 10 || rows < 10 || rows > 200 {
		t.Errorf("%d rows were read for %d deliveries: %v", rows, claimed, err)
	}
}

// TestHTTP2: endpoints that speak it are spoken to by it.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := &sink{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Error(r.Proto)
		}
		w.WriteHeader(http.StatusNoContent)
	}))}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	if try := s.endpoints(t).Send(t.Context(), s.URL, "evt_1", []string{secret}, []byte("{}")); try.StatusCode != 204 {
		t.Errorf("%+v", try)
	}
}
