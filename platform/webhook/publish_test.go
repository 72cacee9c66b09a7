package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

func newPublisher(h *v2test.Harness, queued func()) *webhook.Publisher {
	return webhook.NewPublisher(h.DB, h.API.RenderEvents, slog.New(slog.DiscardHandler), queued)
}

// follow reads all events from a cursor on, in pages of limit, and returns the next
// cursor.
func follow(ctx context.Context, h *v2test.Harness, cursor string, limit int) (ids []domain.EventID, next string, err error) {
	for {
		in := api.ListEvents.New().(*api.ListEventsInput)
		in.Query.Limit, in.Query.Cursor = limit, cursor
		page, err := op.Call(ctx, &h.API.Set, api.ListEvents, in)
		if err != nil {
			return ids, cursor, err
		}
		for _, e := range page.Data {
			ids = append(ids, e.ID)
		}
		if cursor = page.Page.NextCursor; !page.Page.HasMore {
			return ids, cursor, nil
		}
	}
}

// How many write, change by change, and publish at once.
const writers, changes, publishers = 4, 12, 2

var errUndone = errors.New("undone")

// write makes changes, some of them in transactions that take long or are rolled back,
// and returns the users whose creation was committed.
func write(t *testing.T, h *v2test.Harness, tenant v2test.Partner, client domain.ClientID, n int) (made []string) {
	dice := rand.New(rand.NewPCG(7, uint64(n)))
	for i := range changes {
		several := 1 + dice.IntN(3)
		var ids []string
		long, undone := dice.IntN(4) == 0, dice.IntN(5) == 0
		err := h.DB.Tx(tenant.Ctx, func(ctx context.Context) error {
			for k := range several {
				in := &api.CreateUserInput{}
				in.Path.ClientID = client
				in.Body.Email, in.Body.FirstName = fmt.Sprintf("w%d-%d-%d@example.com", n, i, k), "A"
				u, err := op.Call(ctx, &h.API.Set, api.CreateUser, in)
				if err != nil {
					return err
				}
				ids = append(ids, u.ID.String())
			}
			if long { // others commit meanwhile what they began later
				if _, err := h.DB.Transaction(ctx).Exec(ctx, "SELECT pg_sleep(0.03)"); err != nil {
					return err
				}
			}
			if undone {
				return errUndone
			}
			return nil
		})
		switch {
		case err == nil:
			made = append(made, ids...)
		case !errors.Is(err, errUndone):
			t.Error(err)
		}
	}
	return made
}

// TestPoison: an event that cannot be published, or whose rendering panics, delays no
// other, and is published once it can be. One of a type of a later release waits for it.
func TestPoison(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client")
	poison, panics := h.AddUser(tenant, client.ID, "poison@example.com"), h.AddUser(tenant, client.ID, "panics@example.com")
	for i := range 5 {
		h.AddUser(tenant, client.ID, v2test.Email(i))
	}
	bad := true
	p := webhook.NewPublisher(h.DB, func(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
		for _, e := range events {
			switch {
			case bad && e.User == poison.ID:
				return nil, errors.New("cannot be shown")
			case bad && e.User == panics.ID:
				panic("planted")
			}
		}
		return h.API.RenderEvents(ctx, events)
	}, slog.New(slog.DiscardHandler), func() {})
	publish := func(want int) {
		t.Helper()
		if err := p.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := h.Number("SELECT count(*) FROM published_events"); n != want {
			t.Errorf("%d events are published, not %d", n, want)
		}
	}
	publish(6)
	h.AddUser(tenant, client.ID, "later@example.com")
	publish(7)
	h.Clock.Advance(outbox.PostponeEvent)
	publish(7)
	bad = false
	publish(7)
	h.Clock.Advance(outbox.PostponeEvent)
	publish(9)
	h.AddClient(tenant, "Second")
	h.Exec("UPDATE events SET type = 'client.renamed'")
	h.AddClient(tenant, "Third")
	publish(10)
}

// TestDeliveries verifies that a published event has a delivery for each subscription that is active when it is
// published, that wants its type, and whose key reaches its client and is not revoked. If the key has expired, the
// delivery waits for FollowKeys.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant, other := h.AddPartner("Partner"), h.AddPartner("Other")
	first, second := h.AddClient(tenant, "First").ID, h.AddClient(tenant, "Second").ID
	theirs := h.AddClient(other, "Theirs").ID
	h.Publish()
	subscribe := func(t v2test.Partner, key, columns, values string, args ...any) {
		id := db.NewID[domain.WebhookKind]()
		h.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, created_at, updated_at, secret`+columns+`)
			SELECT partner_id, $1, id, 'https://example.com', now(), now(), ''`+values+` FROM api_keys WHERE digest = $2`,
			append([]any{id, db.KeyDigest(key)}, args...)...)
	}
	scopes := []domain.Scope{domain.Read}
	subset, revoked, expired := h.AddKey(tenant, scopes, []domain.ClientID{second}), h.AddKey(tenant, scopes, nil), h.AddKey(tenant, scopes, nil)
	h.Exec("UPDATE api_keys SET revoked_at = now() WHERE digest = $1", db.KeyDigest(revoked))
	h.Exec("UPDATE api_keys SET expires_at = $2 WHERE digest = $1", db.KeyDigest(expired), h.Clock.Now())
	const wants = ", description, status, events, client_ids"
	for name, s := range map[string]struct{ key, values string }{
		"all": {tenant.Key, "'active', '{user.created,client.created}', '{}'"}, "subset": {subset, "'active', '{user.created}', '{}'"},
		"narrowed": {tenant.Key, "'active', '{user.created}', array['" + first.UUID() + "']::uuid[]"},
		"beyond":   {subset, "'active', '{user.created}', array['" + first.UUID() + "']::uuid[]"},
		"type":     {tenant.Key, "'active', '{user.updated}', '{}'"}, "paused": {tenant.Key, "'paused', '{user.created}', '{}'"},
		"disabled": {tenant.Key, "'disabled', '{user.created}', '{}'"}, "revoked": {revoked, "'active', '{user.created}', '{}'"},
		"expired": {expired, "'active', '{user.created}', '{}'"}, "theirs": {other.Key, "'active', '{user.created}', '{}'"},
	} {
		subscribe(tenant, s.key, wants, ", '"+name+"', "+s.values)
	}
	for i, c := range []domain.ClientID{first, second} {
		h.AddUser(tenant, c, v2test.Email(i))
	}
	h.AddUser(other, theirs, v2test.Email(9))
	subscribe(tenant, tenant.Key, wants, ", 'late', 'active', '{user.created}', '{}'")
	told := 0
	p := newPublisher(h, func() { told++ })
	if err := p.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"all": 2, "subset": 1, "narrowed": 1, "beyond": 0, "type": 0, "paused": 0, "disabled": 0, "revoked": 0,
		"expired": 2, "theirs": 1, "late": 2,
	} {
		if n := h.Number(`SELECT count(*) FROM webhook_deliveries AS d JOIN webhooks AS w ON w.id = d.webhook_id
			JOIN published_events AS e ON e.partner_id = d.partner_id AND e.position = d.position AND e.id = d.event_id
				AND e.type = d.type AND e.client_id = d.client_id AND e.partner_id = w.partner_id
			WHERE w.description = $1 AND d.status = 'waiting' AND d.due_at = $2`, name, h.Clock.Now()); n != want {
			t.Errorf("%s: %d deliveries, not %d", name, n, want)
		}
	}
	if told != 1 {
		t.Errorf("was told of deliveries %d times", told)
	}
}

// TestClockSetBack verifies that no event is lost when the clocks of the service and of the database server are set back,
// and that events that were written while a subscription was paused are not delivered to it.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client").ID
	h.Publish()
	path := h.Do("POST", "/v2/webhooks", tenant.Key, map[string]any{
		"url": "https://example.com/hook", "events": []string{"user.created"},
	}).Want(http.StatusCreated).Header.Get("Location")
	users := 0
	write := func() { users++; h.AddUser(tenant, client, v2test.Email(users)) }
	want := func(n int, when string) {
		t.Helper()
		h.Publish()
		if got := h.Number("SELECT count(*) FROM webhook_deliveries"); got != n {
			t.Errorf("%s: %d deliveries, not %d", when, got, n)
		}
	}
	set := func(status string) {
		h.Do("PATCH", path, tenant.Key, map[string]any{"status": status}).Want(http.StatusOK)
	}

	write()
	want(1, "before the step")
	h.Clock.Advance(-10 * time.Minute)
	h.Exec("ALTER TABLE events ALTER COLUMN recorded_at SET DEFAULT clock_timestamp() - interval '10 minutes'")
	write()
	write()
	want(3, "after the step")
	order := "SELECT count(*) FROM (SELECT lag(body) OVER (ORDER BY position) AS last, body FROM published_events) AS e"
	write()
	h.Exec("ALTER TABLE events ALTER COLUMN recorded_at SET DEFAULT clock_timestamp() - interval '20 minutes'")
	write()
	want(5, "between two steps")
	if n := h.Number(order + " WHERE body LIKE '%" + v2test.Email(5) + "%' AND last LIKE '%" + v2test.Email(4) + "%'"); n != 1 {
		t.Error("an event that was written before a step is published after one that was written after it")
	}

	set("paused")
	write()
	set("active")
	want(5, "an event of the pause, published after it")
	write()
	want(6, "after the pause")
}
