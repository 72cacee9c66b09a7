package webhook_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest/worldtest"
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
	want := func(want string) {
		t.Helper()
		got := worldtest.Figures(t, w.DB)
		maps.DeleteFunc(got, func(name string, n float64) bool {
			return !strings.HasPrefix(name, "webhook") || n == 0 && !strings.Contains(name, "failing")
		})
		if fmt.Sprint(got) != "map["+want+"]" {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	want("")
	one, two := w.webhook("https://one.example/"), w.webhook("https://two.example/")
	w.publish(3, one)
	w.Clock.Advance(time.Minute)
	w.publish(2, two)
	want("webhook_deliveries_waiting:5 webhook_oldest_due_seconds:60 webhooks active:2")
	w.once(w.dispatcher(&script{w: w, answer: func(m domain.DeliveryMessage) webhook.Answer {
		if m.URL == "https://one.example/" {
			return answered(200)
		}
		return answered(500)
	}}, webhook.Observer{}))
	w.Exec("UPDATE webhooks SET status = 'paused' WHERE id = $1", one)
	want("webhook_deliveries_waiting:2 webhook_failing_seconds " + two.String() + ":0 webhooks active:1 webhooks paused:1")
	w.Exec("UPDATE webhooks SET status = 'disabled' WHERE id = $1", two)
	want("webhook_deliveries_waiting:2 webhooks disabled:1 webhooks paused:1")
}

// rowsRead is how many rows the transaction read of deliveries and their subscriptions.
const rowsRead = `SELECT (SELECT coalesce(sum(pg_stat_get_xact_tuples_fetched(indexrelid) + pg_stat_get_xact_tuples_returned(indexrelid)), 0)
		FROM pg_index WHERE indrelid IN ('webhook_deliveries'::regclass, 'webhooks'::regclass))
	+ pg_stat_get_xact_tuples_returned('webhook_deliveries'::regclass) + pg_stat_get_xact_tuples_returned('webhooks'::regclass)`

// TestClaimsGoRound: every subscription with deliveries due is claimed of within one way
// round, beside those whose tries are due later and those that get no place.
func TestClaimsGoRound(t *testing.T) {
	t.Parallel()
	const small, later, n = 100, 1500, 10
	w := newWorld(t)
	full := map[domain.WebhookID]bool{}
	for _, id := range w.webhooks(small) {
		full[id] = true
	}
	all := w.webhooks(later + small)
	w.publish(1, all...)
	w.publish(1, slices.Collect(maps.Keys(full))...)
	for i, id := range all {
		if i%(1+later/small) > 0 {
			w.Exec("UPDATE webhook_deliveries SET due_at = $2 WHERE webhook_id = $1", id, noon.Add(time.Hour))
		}
	}
	turns, served := outbox.NewDeliveryTurns(), map[domain.WebhookID]int{}
	claim := func() outbox.Claim {
		claim, err := outbox.ClaimDeliveries(t.Context(), w.DB, turns, n, time.Minute, func(due []outbox.DueWebhook) (p []outbox.Places) {
			if len(due) > n {
				t.Errorf("%d subscriptions in place of %d", len(due), n)
			}
			for _, d := range due {
				if !full[d.ID] {
					p = append(p, outbox.Places{Webhook: d.ID, N: 1})
				}
			}
			return p
		})
		w.Must(err)
		for _, l := range claim.Leases {
			served[l.Webhook]++
		}
		return claim
	}
	due := w.Number("SELECT count(DISTINCT webhook_id) FROM webhook_deliveries WHERE due_at = $1", noon) - small
	for claims := 0; len(served) < due; claims++ {
		if c := claim(); !c.Left || claims == 2*due { // one that comes to full ones only takes none
			t.Fatalf("%d claims served %d of %d subscriptions: %+v", claims, len(served), due, c)
		}
	}
	var next time.Time
	for range 4 { // once round, and more
		c := claim()
		if len(c.Leases) > 0 || !c.Left {
			t.Errorf("then %+v", c)
		}
		if next.IsZero() || !c.Next.IsZero() && c.Next.Before(next) {
			next = c.Next
		}
	}
	if !next.Equal(noon.Add(time.Minute)) {
		t.Errorf("the next is due at %s", next)
	}
}

// TestManySubscriptions: a dispatcher delivers to more subscriptions than a claim comes
// to, and gives up what waits for those that are paused.
func TestManySubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.webhooks(1500)
	w.publish(2, all...)
	w.Exec("UPDATE webhooks SET status = 'paused' WHERE id = $1", all[700])
	s := &script{w: w, answer: always(200)}
	if n := w.once(w.dispatcher(s, webhook.Observer{})); n != 2*1499 || s.count() != n {
		t.Errorf("%d were claimed, and %d sent", n, s.count())
	}
	if n := w.Number("SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded'"); n != 2*1499 {
		t.Errorf("%d were delivered", n)
	}
	if n := w.Number("SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'dropped'", all[700]); n != 2 {
		t.Errorf("%d were given up", n)
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
	if try := s.endpoints(t).Send(t.Context(), domain.DeliveryMessage{URL: s.URL, ID: "evt_1", Secrets: []string{secret}, Body: []byte("{}")}); try.StatusCode != 204 {
		t.Errorf("%+v", try)
	}
}
