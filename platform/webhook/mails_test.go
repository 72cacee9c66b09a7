package webhook_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// admin adds an admin of the world's partner, or of its client.
func (w *world) admin(email, role string, client any) {
	w.T.Helper()
	w.Add("admins", fixture.Row{
		"id": db.NewID[domain.AdminKind](), "partner_id": w.Partner, "client_id": client, "email": email, "name": email, "role": role, "created_at": noon,
	})
}

// mails describes the mails to the partner, in the order in which they were asked for.
func (w *world) mails() (text string) {
	w.T.Helper()
	w.Scan("SELECT coalesce(string_agg(kind || ' ' || recipient, '; ' ORDER BY created_at, kind, recipient), '') FROM partner_mails", nil, &text)
	return text
}

// TestFailuresAreMailed: a subscription whose deliveries have failed for 6 hours, and one
// that is disabled, are told once to the partner's owners and admins, and again when it
// fails anew. 410 disables at once, and what waits is given up.
func TestFailuresAreMailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("owner@example.com", "owner", nil)
	w.admin("admin@example.com", "admin", nil)
	w.admin("admin@example.com", "owner", nil) // twice
	w.admin("viewer@example.com", "viewer", nil)
	w.admin("client@example.com", "admin", w.client)
	status := 500
	d := w.dispatcher(&script{w: w, answer: func(domain.DeliveryMessage) webhook.Answer { return answered(status) }}, webhook.Observer{})
	id := w.webhook("https://hook.example/in?token=secret")
	want := func(want string) {
		t.Helper()
		if got := w.mails(); got != want {
			t.Errorf("mails %q, want %q", got, want)
		}
	}
	fail := func(hours int) {
		t.Helper()
		for range hours {
			w.publish(2, id)
			w.once(d)
			w.Clock.Advance(time.Hour)
		}
	}

	fail(6)
	want("")
	const failing = "webhook-failing admin@example.com; webhook-failing owner@example.com"
	fail(3)
	want(failing)
	if n := w.Number("SELECT count(*) FROM outbox AS o JOIN partner_mails AS m ON o.client_id = m.partner_id AND o.id = m.id WHERE o.kind = 'partner'"); n != 2 {
		t.Errorf("%d of the mails wait", n)
	}
	if n := w.Number("SELECT count(*) FROM partner_mails WHERE notice::text LIKE '%(https://hook.example)%'"); n != 2 {
		t.Error("a mail does not name the origin, or more of the address")
	}

	status = 200
	w.publish(1, id)
	w.once(d)
	status = 500
	fail(8)
	want(failing + "; " + failing)
	fail(18)
	const disabled = "; webhook-disabled admin@example.com; webhook-disabled owner@example.com"
	want(failing + "; " + failing + disabled)
	if w.status(id) != domain.WebhookDisabled {
		t.Error("it is not disabled")
	}

	status = 410 // at once, of another subscription
	gone := w.webhook("https://gone.example/")
	w.publish(1, gone)
	w.once(d)
	want(failing + "; " + failing + disabled + disabled)
	w.publish(2, gone)
	w.once(d)
	const dropped = "; dropped the subscription was disabled"
	if got := w.delivered(gone); got != "failed 410"+dropped+dropped || w.status(gone) != domain.WebhookDisabled {
		t.Errorf("%s: %s", w.status(gone), got)
	}
}

// TestFailingSince: of tries that are marked together the first failure after the last
// success counts, whatever the order of the marks.
func TestFailingSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Clock.Advance(2 * time.Minute) // the tries were earlier
	for _, c := range []struct {
		before time.Duration // of the present failing_since, from noon on; 0 for none
		tries  []int         // seconds after noon; negative ones succeeded
		want   time.Duration
	}{
		{tries: []int{-1, 2, 3}, want: 2 * time.Second},
		{tries: []int{3, 2, -1}, want: 2 * time.Second},
		{tries: []int{1, 4, -3}, want: 4 * time.Second},
		{tries: []int{1, 2, -3}},
		{before: -time.Minute, tries: []int{2}, want: -time.Minute},
		{before: -time.Minute, tries: []int{2, -1}, want: 2 * time.Second},
		{before: time.Minute, tries: []int{-1}, want: time.Minute},
		{before: time.Hour, tries: []int{-1}}, // the clock was set back meanwhile
		{before: time.Hour, tries: []int{-1, 2}, want: 2 * time.Second},
	} {
		id := w.webhook("https://hook.example/")
		w.publish(len(c.tries), id)
		w.Exec("UPDATE webhook_deliveries SET lease = gen_random_uuid() WHERE webhook_id = $1", id)
		if c.before != 0 {
			w.Exec("UPDATE webhooks SET failing_since = $2 WHERE id = $1", id, noon.Add(c.before))
		}
		marks := make([]outbox.DeliveryMark, len(c.tries))
		for i, at := range c.tries {
			m := &marks[i]
			m.Webhook, m.Due, m.Status = id, noon.Add(time.Hour), domain.DeliveryWaiting
			if at < 0 {
				at, m.Status = -at, domain.DeliverySucceeded
			}
			m.Try = &domain.DeliveryTry{At: noon.Add(time.Duration(at) * time.Second)}
			w.Scan("SELECT id, lease FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY position OFFSET $2 LIMIT 1", []any{id, i}, &m.ID, &m.Token)
		}
		if _, err := outbox.MarkDeliveries(t.Context(), w.DB, marks); err != nil {
			t.Fatal(err)
		}
		var got *time.Time
		w.Scan("SELECT failing_since FROM webhooks WHERE id = $1", []any{id}, &got)
		if (got == nil) != (c.want == 0) || got != nil && !got.Equal(noon.Add(c.want)) {
			t.Errorf("%+v: failing since %v", c, got)
		}
	}
}

// TestKeyEnds verifies that a subscription whose key is revoked or expires is disabled with the reason, that the owners
// and admins receive one email for each end, and that an expiry that turns out to lie ahead resumes the subscription
// without losing what was published before it was disabled.
func TestKeyEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("owner@example.com", "owner", nil)
	to := &script{w: w, answer: always(200)}
	disabled := 0
	d := w.dispatcher(to, webhook.Observer{Disabled: func(n int) { disabled += n }})
	active, paused := w.webhook("https://hook.example/in?token=secret"), w.webhook("https://paused.example/")
	w.Exec("UPDATE webhooks SET status = 'paused' WHERE id = $1", paused)
	want := func(when, want string, mails int) {
		t.Helper()
		_, err := w.WatchClock(t.Context())
		w.Must(err)
		w.Must(d.FollowKeysOnce(t.Context()))
		w.once(d)
		var got string
		w.Scan(`SELECT string_agg(concat_ws(' ', status, disabled_reason), ', ' ORDER BY url) FROM webhooks`, nil, &got)
		if n := w.Number("SELECT count(*) FROM partner_mails WHERE kind = 'webhook-disabled'"); got != want || n != mails {
			t.Errorf("%s: %s, %d emails", when, got, n)
		}
	}
	want("in use", "active, paused", 0)

	w.Exec("UPDATE api_keys SET expires_at = $1", noon.Add(time.Hour))
	w.Clock.Advance(800 * 24 * time.Hour) // the clock is wrong
	w.publish(1, active)
	w.once(d)
	if got := w.delivered(active); got != "waiting" || to.count() != 0 {
		t.Errorf("of a key that has expired: %s", got)
	}
	w.Clock.Advance(-800 * 24 * time.Hour)
	want("set back before it was noticed", "active, paused", 0)
	if got := w.delivered(active); got != "succeeded 200" {
		t.Errorf("published while the clock was wrong: %s", got)
	}
	w.Clock.Advance(2 * time.Hour)
	want("expired", "disabled key_expired, disabled key_expired", 2)
	w.Clock.Advance(-2 * time.Hour)
	want("set back", "active, paused", 2)
	w.Clock.Advance(2 * time.Hour)
	want("expired again", "disabled key_expired, disabled key_expired", 2)
	w.Exec("UPDATE api_keys SET expires_at = $1", noon.Add(3*time.Hour))
	want("with a later expiry", "active, paused", 2)
	w.publish(1, active)
	w.once(d)
	if got := w.delivered(active); got != "succeeded 200; succeeded 200" {
		t.Errorf("resumed: %s", got)
	}

	w.Exec("UPDATE api_keys SET revoked_at = $1", w.Clock.Now())
	w.publish(1, active)
	want("revoked", "disabled key_revoked, disabled key_revoked", 4)
	w.Exec("UPDATE api_keys SET expires_at = NULL")
	want("revoked for good", "disabled key_revoked, disabled key_revoked", 4)
	if got := w.delivered(active); got != "succeeded 200; succeeded 200; dropped the API key of the subscription was revoked" {
		t.Errorf("delivered %s", got)
	}
	if n := w.Number("SELECT count(*) FROM partner_mails WHERE notice::text LIKE '%(https://hook.example)%' AND notice::text LIKE '%PATCH%'"); n != 2 || disabled != 6 {
		t.Errorf("%d emails name the origin and what to do; %d are counted as disabled", n, disabled)
	}
}
