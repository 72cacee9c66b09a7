package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// noon is when tests take place.
var noon = worldtest.Noon

// world is a partner with a client and a key, and subscriptions to events.
type world struct {
	*worldtest.World
	client domain.ClientID
	key    domain.KeyID
	events int64
	keys   *seal.Keys
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{World: worldtest.New(t)}
	w.client = w.AddClient()
	_, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: "hooks", Scopes: []domain.Scope{domain.Write}})
	w.Must(err)
	w.keys, err = seal.ParseKeys(seal.NewKey())
	w.Must(err)
	w.Scan("SELECT id FROM api_keys", nil, &w.key)
	return w
}

// sealed is the secret of a subscription as it is stored.
func (w *world) sealed(id domain.WebhookID, secret string) []byte {
	w.T.Helper()
	value, err := w.keys.Seal([]byte(secret), domain.WebhookSecretContext(id))
	w.Must(err)
	return value
}

// webhook adds a subscription.
func (w *world) webhook(url string) domain.WebhookID {
	w.T.Helper()
	id := db.NewID[domain.WebhookKind]()
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		VALUES ($1, $2, $3, $4, '{user.updated}', 'active', $5, $5, $6)`,
		w.Partner, id, w.key, url, w.Clock.Now(), w.sealed(id, secret))
	return id
}

// webhooks adds n subscriptions.
func (w *world) webhooks(n int) (all []domain.WebhookID) {
	w.T.Helper()
	for i := range n {
		all = append(all, w.webhook(fmt.Sprintf("https://hook%d.example/", i)))
	}
	return all
}

// publish adds the given number of events, which wait to be delivered to subscriptions.
func (w *world) publish(n int, to ...domain.WebhookID) {
	w.T.Helper()
	uuids := make([]string, len(to))
	for i, id := range to {
		uuids[i] = id.UUID()
	}
	list, _ := json.Marshal(uuids)
	w.Exec(`WITH made AS (
			INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT $1::uuid, $2::bigint + n, $3::uuid, gen_random_uuid(), 'user.updated', $4::timestamptz, '{"n":' || ($2::bigint + n) || '}'
			FROM generate_series(1, $5::int) AS n RETURNING position, id
		)
		INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
		SELECT h.id::uuid, gen_random_uuid(), $1::uuid, m.position, $3::uuid, m.id, 'user.updated', $4::timestamptz, $4::timestamptz
		FROM made AS m, json_array_elements_text($6::json) AS h (id)`,
		w.Partner, w.events, w.client, w.Clock.Now(), n, string(list))
	w.events += int64(n)
}

// delivered describes the deliveries of a subscription, by position: status, reason,
// and the status codes of the tries.
func (w *world) delivered(id domain.WebhookID) (text string) {
	w.T.Helper()
	w.Scan(`SELECT coalesce(string_agg(concat_ws(' ', status, reason,
			(SELECT string_agg(t ->> 'status_code', ',') FROM jsonb_array_elements(tries) AS t)), '; ' ORDER BY position), '')
		FROM webhook_deliveries WHERE webhook_id = $1`, []any{id}, &text)
	return text
}

// status is that of a subscription.
func (w *world) status(id domain.WebhookID) (status domain.WebhookStatus) {
	w.T.Helper()
	w.Scan("SELECT status FROM webhooks WHERE id = $1", []any{id}, &status)
	return status
}

// dispatcher makes tries by way of to.
func (w *world) dispatcher(to webhook.Poster, observe webhook.Observer) *webhook.Dispatcher {
	return webhook.NewDispatcher(w.DB, to, w.keys, v2.New(w.DB, nil).SignsBodies, slog.New(slog.DiscardHandler), observe)
}

// once makes all tries that are due, and returns how many.
func (w *world) once(d *webhook.Dispatcher) int {
	w.T.Helper()
	n, err := d.Once(w.T.Context())
	w.Must(err)
	return n
}

// script is a Poster whose answers a function says.
type script struct {
	w      *world
	answer func(domain.DeliveryMessage) webhook.Answer

	mu   sync.Mutex
	sent []domain.DeliveryMessage
}

// Post notes the message, and answers at the time of the world.
func (s *script) Post(_ context.Context, m domain.DeliveryMessage) webhook.Answer {
	s.mu.Lock()
	s.sent = append(s.sent, m)
	s.mu.Unlock()
	a := s.answer(m)
	a.At = s.w.Clock.Now()
	return a
}

// count is how many messages were sent.
func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

// always answers with a status.
func always(status int) func(domain.DeliveryMessage) webhook.Answer {
	return func(domain.DeliveryMessage) webhook.Answer { return answered(status) }
}

func answered(status int) (a webhook.Answer) {
	a.StatusCode = status
	return a
}

func TestMain(m *testing.M) { dbtest.Main(m) }
