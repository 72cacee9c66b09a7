package webhook_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
	"partnerapi/v2/v2test"
)

// locked opens the secrets of all subscriptions but one, for which it panics.
type locked struct{ id domain.WebhookID }

func (l locked) Open(sealed, context []byte) ([]byte, error) {
	if string(context) == string(domain.WebhookSecretContext(l.id)) {
		panic("planted in the keys")
	}
	return keys{}.Open(sealed, context)
}

// TestPanics: a try that panics is one that failed, on the schedule of all others; a
// secret whose opening panics has its deliveries wait. Neither stops other deliveries.
func TestPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine, poison, sealed := w.webhook("https://fine.example/"), w.webhook("https://poison.example/"), w.webhook("https://sealed.example/")
	w.publish(1, fine, poison, sealed)
	d := webhook.NewDispatcher(w.DB, &script{w: w, answer: func(m webhook.Message) webhook.Answer {
		if strings.Contains(m.URL, "poison") {
			panic("planted in the endpoint")
		}
		return answered(200)
	}}, locked{sealed}, slog.New(slog.DiscardHandler), webhook.Observer{})

	w.once(d)
	if got := w.delivered(fine); !strings.HasPrefix(got, "succeeded 200") {
		t.Errorf("the fine one: %s", got)
	}
	if n := w.number("SELECT jsonb_array_length(tries) FROM webhook_deliveries WHERE webhook_id = $1 AND lease IS NULL", poison); n != 1 {
		t.Errorf("%d tries of the one that panics: %s", n, w.delivered(poison))
	}
	if n := w.number("SELECT jsonb_array_length(tries) FROM webhook_deliveries WHERE webhook_id = $1 AND lease IS NULL", sealed); n != 0 {
		t.Errorf("%d tries of the one whose secret cannot be opened", n)
	}
	w.clock.Advance(domain.WebhookRetryFor)
	w.once(d)
	if got := w.delivered(poison); !strings.HasPrefix(got, "failed 0") {
		t.Errorf("after a day: %s", got)
	}
}

// TestPublisherPanics: an event whose rendering panics is postponed, and delays no
// other.
func TestPublisherPanics(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.Tenant("Partner")
	client := h.Client(tenant, "Client")
	poison := h.User(tenant, client.ID, "poison@example.com")
	h.User(tenant, client.ID, "fine@example.com")
	p := webhook.NewPublisher(h.DB, func(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
		for _, e := range events {
			if e.User == poison.ID {
				panic("planted")
			}
		}
		return h.API.RenderEvents(ctx, events)
	}, slog.New(slog.DiscardHandler), func() {})
	if err := p.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.Number("SELECT count(*) FROM published_events"); n != 2 {
		t.Errorf("%d events are published", n)
	}
	if n := h.Number("SELECT count(*) FROM events WHERE postponed_until IS NOT NULL"); n != 1 {
		t.Errorf("%d events are postponed", n)
	}
}
