package v2_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// clockStep is a step of the clock by which a service and its background work go.
type clockStep struct {
	by time.Duration
	// back means that the clock is set right again after half a minute.
	back bool
}

var clockSteps = map[string]clockStep{
	"ten minutes back":                     {by: -10 * time.Minute},
	"an hour back":                         {by: -time.Hour},
	"ten minutes forward":                  {by: 10 * time.Minute},
	"over midnight, for half a minute":     {12 * time.Hour, true},
	"over midnight":                        {by: 12 * time.Hour},
	"800 days forward, for half a minute":  {800 * 24 * time.Hour, true},
	"80 seconds forward, all leases' ends": {by: 80 * time.Second},
}

// steppedRow is something that a step of the clock must not change. begin prepares it before the step, and returns what
// checks it half a minute after the step, and then six minutes later, by monotonic time.
type steppedRow struct {
	name  string
	begin func(w *world, step clockStep) (during, after func())
}

// steppedRows are what the steps are tried with, all in one world.
var steppedRows = []steppedRow{
	{"a revoked key", revokedKey},
	{"a budget", usedBudget},
	{"a summary", oldSummary},
	{"an email in progress", emailInProgress},
	{"queued work", queuedWork},
	{"a webhook", func(w *world, _ clockStep) (during, after func()) { return activeWebhook(w, nil) }},
	{"the webhook of a key that expires in 40 days", func(w *world, _ clockStep) (during, after func()) {
		return activeWebhook(w, new(w.Clock.Now().AddDate(0, 0, 40)))
	}},
	{"the webhook of a key that expires in 3 minutes", expiringKey},
	{"what cannot be undone", cannotBeUndone},
	{"the daily refresh", dailyRefresh}, // it ends by setting the clock
}

// TestClockSteps verifies that whichever way the clock is set, a revoked key ends, budgets and summaries are renewed after
// as long as ever, an email in progress is sent once, queued work is due, webhooks receive every event and end with their
// keys, what cannot be undone is not done, and the daily refresh has run for the day that it is.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v2test.Options{EdgeClock: true, Limits: ginop.Limits{PerKey: 10, PerAddress: 60, PerClientFactor: 1}})
			w.Exec("DROP TRIGGER drop_webhooks ON webhooks") // this world has several
			var during, after []func()
			for _, row := range steppedRows {
				d, a := row.begin(w, step)
				during, after = append(during, d), append(after, a)
			}
			w.watchClock()
			w.Clock.Step(step.by)
			w.watchClock()
			w.Clock.Advance(30 * time.Second)
			for i, check := range during {
				t.Log("during:", steppedRows[i].name)
				check()
			}
			if step.back {
				w.Clock.Step(-step.by)
				w.watchClock()
			}
			w.Clock.Advance(6 * time.Minute)
			w.watchClock()
			for i, check := range after {
				t.Log("after:", steppedRows[i].name)
				check()
			}
		})
	}
}

// watchClock reads the clock as background work does.
func (w *world) watchClock() {
	w.T.Helper()
	_, err := w.DB.WatchClock(w.T.Context())
	noError(w.T, err)
}

func revokedKey(w *world, _ clockStep) (during, after func()) {
	key := w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil)
	w.Get("/v2/clients", key).Want(http.StatusOK)
	w.Exec("UPDATE api_keys SET revoked_at = $2 WHERE digest = $1", db.KeyDigest(key), w.Clock.Now())
	ended := func() { w.Get("/v2/clients", key).Want(http.StatusUnauthorized) }
	return ended, ended
}

func usedBudget(w *world, _ clockStep) (during, after func()) {
	key := w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil)
	for range 10 {
		w.Get("/v2/clients", key).Want(http.StatusOK)
	}
	return func() {
			got := w.Get("/v2/clients", key).Want(http.StatusTooManyRequests)
			if wait := got.Header.Get("Retry-After"); wait != "30" {
				w.T.Errorf("Retry-After: %s, want 30", wait)
			}
		}, func() {
			w.Get("/v2/clients", key).Want(http.StatusOK)
		}
}

func oldSummary(w *world, _ clockStep) (during, after func()) {
	rate := func() any { return w.Get(w.clientPath(), w.tenant.Key).Field("phishing.click_rate_90d") }
	before := rate()
	w.Exec("INSERT INTO phishing_days (client_id, day, sent, clicked) VALUES ($1, $2, 4, 1)", w.client.ID, domain.DateOf(w.Clock.Now()))
	return func() { _ = rate() }, func() {
		if got := rate(); before != 0.0 || got != 25.0 {
			w.T.Errorf("the summary shows a click rate of %v, and showed %v", got, before)
		}
	}
}

// heldSender takes emails, and returns when released is closed.
type heldSender struct {
	sent     atomic.Int64
	taken    chan struct{}
	released chan struct{}
}

func (s *heldSender) Send(context.Context, mail.Message) error {
	s.sent.Add(1)
	s.taken <- struct{}{}
	<-s.released
	return nil
}

func (*heldSender) Close() error { return nil }

func emailInProgress(w *world, _ clockStep) (during, after func()) {
	w.Do("POST", w.clientPath()+"/users", w.tenant.Key, map[string]any{
		"email": "welcome@example.test", "first_name": "Grace", "send_welcome_email": true,
	}).Want(http.StatusCreated)
	sender := &heldSender{taken: make(chan struct{}, 10), released: make(chan struct{})}
	stop := w.sendMails(sender)
	<-sender.taken
	takeOver := func() {
		leases, err := outbox.ClaimMails(w.T.Context(), w.DB, outbox.NewMailTurns(), 10, 75*time.Second)
		if err != nil || len(leases) > 0 {
			w.T.Errorf("another process takes %d emails over (%v)", len(leases), err)
		}
	}
	return takeOver, func() {
		close(sender.released)
		for n := 1; n > 0; {
			n = w.Number("SELECT count(*) FROM outbox WHERE lease IS NOT NULL")
		}
		stop()
		if n := sender.sent.Load(); n != 1 {
			w.T.Errorf("the email was sent %d times", n)
		}
	}
}

// sendMails sends emails as a process does, until the returned function is called.
func (w *world) sendMails(sender mail.Sender) (stop func()) {
	composer, err := mail.NewComposer("https://training.example", "training@example.test")
	noError(w.T, err)
	dispatcher := mail.NewDispatcher(w.DB, sender, 2, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.Requests{DB: w.DB, Composer: composer},
	}, slog.New(slog.DiscardHandler), nil, nil)
	ctx, cancel := context.WithCancel(w.T.Context())
	ended := make(chan error, 1)
	go func() { ended <- dispatcher.Run(ctx) }()
	w.T.Cleanup(cancel)
	return func() { cancel(); noError(w.T, <-ended) }
}

// queuedWork are a report and a delivery that were queued just before the step, and remain due.
func queuedWork(w *world, _ clockStep) (during, after func()) {
	key, other := w.AddKey(w.tenant, bothScopes, nil), w.AddClient(w.tenant, "Queued") // a key has few requests
	user := w.AddUser(w.tenant, other.ID, "queued@example.test")
	id, now := db.NewID[domain.ReportKind](), w.Clock.Now()
	w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		VALUES ($1, $2, 'policy', 'pdf', 'pending', $3, $3)`, other.ID, id, now)
	path := w.newWebhook(key)
	w.Do("PATCH", "/v2/users/"+user.ID.String(), key, `{"last_name":"Queued"}`).Want(http.StatusOK)
	w.Publish()
	late := func() int {
		return w.Number(`SELECT (SELECT count(*) FROM reports WHERE client_id = $1 AND coalesce(due_at, created_at) > $3)
			+ (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $2 AND status = 'waiting' AND due_at > $3)`,
			other.ID, idOf[domain.WebhookKind](w.T, path), w.Clock.Now())
	}
	check := func() {
		if n := late(); n != 0 {
			w.T.Errorf("%d of a report and a delivery are not due", n)
		}
	}
	return check, func() {
		check()
		w.Do("DELETE", path, key, nil).Want(http.StatusNoContent)
		w.Exec("DELETE FROM reports WHERE id = $1", id)
	}
}

// newWebhook creates a webhook for changes of users, and returns its path.
func (w *world) newWebhook(key string) string {
	w.T.Helper()
	r := w.Do("POST", "/v2/webhooks", key, map[string]any{"url": "https://example.com/hook", "events": []string{"user.updated"}})
	return "/v2/webhooks/" + r.Want(http.StatusCreated).Field("id").(string)
}

// expiringWebhook creates a webhook of a new key that expires at a time, or never.
func (w *world) expiringWebhook(expires *time.Time) string {
	w.T.Helper()
	key := w.AddKey(w.tenant, bothScopes, nil)
	path := w.newWebhook(key)
	w.Exec("UPDATE api_keys SET expires_at = $2 WHERE digest = $1", db.KeyDigest(key), expires)
	return path
}

// deliverDue does what the background work does for webhooks: it checks their keys, publishes, and makes the deliveries
// that are due, which succeed.
func (w *world) deliverDue() {
	w.T.Helper()
	_, err := outbox.FollowKeys(w.T.Context(), w.DB)
	noError(w.T, err)
	w.Publish()
	for claimed := true; claimed; {
		claim, err := outbox.ClaimDeliveries(w.T.Context(), w.DB, outbox.NewDeliveryTurns(), 100, 20*time.Second,
			func(due []outbox.DueWebhook) (places []outbox.Places) {
				for _, d := range due {
					places = append(places, outbox.Places{Webhook: d.ID, N: 10})
				}
				return places
			})
		noError(w.T, err)
		now, marks := w.Clock.Now(), []outbox.DeliveryMark{}
		for _, l := range claim.Leases {
			marks = append(marks, outbox.DeliveryMark{
				DeliveryLease: l, Try: &domain.DeliveryTry{At: now, StatusCode: http.StatusOK}, Status: domain.DeliverySucceeded, Due: now,
			})
		}
		_, err = outbox.MarkDeliveries(w.T.Context(), w.DB, marks)
		noError(w.T, err)
		claimed = len(marks) > 0 || claim.Dropped > 0
	}
}

// activeWebhook is a webhook of a key that expires at a time, which does not come. An event of before the step, one of
// after it and one of the end are all delivered.
func activeWebhook(w *world, expires *time.Time) (during, after func()) {
	key := w.AddKey(w.tenant, bothScopes, nil) // a key has few requests
	path := w.expiringWebhook(expires)
	change := func(name string) {
		w.Do("PATCH", w.userPath(), key, map[string]any{"last_name": name}).Want(http.StatusOK)
	}
	user := w.AddUser(w.tenant, w.client.ID, v2test.Email(int(w.sampled.Add(1))))
	w.Publish()
	at := w.Number("SELECT max(position) FROM published_events")
	change("Before " + user.ID.String())
	return func() {
			w.deliverDue()
			change("During " + user.ID.String())
			w.deliverDue()
			if r := w.Get(path, key).Want(http.StatusOK); r.Field("status") != "active" {
				w.T.Errorf("after the step: %s", r.Body)
			}
		}, func() {
			change("After " + user.ID.String())
			w.deliverDue()
			events := w.Number(`SELECT count(*) FROM published_events WHERE position > $1 AND type = 'user.updated'`, at)
			delivered := w.Number(`SELECT count(DISTINCT event_id) FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'succeeded'
				AND position > $2`, idOf[domain.WebhookKind](w.T, path), at)
			if events < 3 || delivered != events {
				w.T.Errorf("%d of %d events are delivered, want all of at least 3: %s", delivered, events,
					w.Get(path+"/deliveries", key).Body)
			}
		}
}

// expiringKey is a webhook of a key whose expiry comes after some steps: by the clock, once it is trusted.
func expiringKey(w *world, _ clockStep) (during, after func()) {
	expires := w.Clock.Now().Add(3 * time.Minute)
	key, path := w.AddKey(w.tenant, bothScopes, nil), w.expiringWebhook(&expires)
	status := func(want string) {
		w.deliverDue()
		if r := w.Get(path, key).Want(http.StatusOK); r.Field("status") != want {
			w.T.Errorf("got %s, want %s", r.Body, want)
		}
	}
	return func() { status("active") }, func() {
		want := "disabled"
		if expires.After(w.Clock.Now()) { // after a step back
			want = "active"
		}
		status(want)
	}
}

// cannotBeUndone are an old entry of the audit trail, courses that were completed, and simulations that are scheduled
// for the next year. The background work of a clock that is 800 days ahead must leave them alone.
func cannotBeUndone(w *world, _ clockStep) (during, after func()) {
	w.Exec("UPDATE assignments SET completed_at = $1 WHERE completed_at IS NULL", w.Clock.Now())
	w.Exec("UPDATE courses SET renewal_months = 12")
	noError(w.T, w.DB.Audit(w.T.Context(), domain.AuditEntry{Prefix: domain.CommandActor, Operation: "keys create"}))
	state := func() string {
		return w.Text(`SELECT concat_ws(' ', (SELECT count(*) FROM audit_entries), (SELECT count(*) FROM assignments),
			(SELECT count(*) FROM outbox WHERE kind = 'simulation' AND lease IS NULL AND due_at = $1::timestamptz + interval '1 year'))`, v2test.Noon)
	}
	before := state()
	check := func() {
		_, err := w.DB.DailyRefresh(w.T.Context(), domain.DateOf(w.Clock.Now()), nil)
		noError(w.T, err)
		_, err = outbox.ClaimMails(w.T.Context(), w.DB, outbox.NewMailTurns(), 100, 75*time.Second)
		noError(w.T, err)
		if after := state(); after != before {
			w.T.Errorf("entries, courses and scheduled simulations: got %s, want %s", after, before)
		}
	}
	return check, check
}

// dailyRefresh refreshes as the background work does. What a clock that is years ahead causes is not of this row.
func dailyRefresh(w *world, step clockStep) (during, after func()) {
	refresh := func() {
		due, err := w.DB.RefreshDue(w.T.Context())
		noError(w.T, err)
		if due && step.by < 31*24*time.Hour {
			_, err = w.DB.DailyRefresh(w.T.Context(), domain.DateOf(w.Clock.Now()), nil)
			noError(w.T, err)
		}
	}
	refresh()
	return refresh, func() {
		refresh()
		w.Clock.Set(domain.DateOf(w.Clock.Now()).AddDays(1).Time().Add(time.Second)) // the next midnight
		refresh()
		if step.by > 31*24*time.Hour {
			return
		}
		at, err := pg.One[time.Time](w.T.Context(), w.DB, "look when the day was refreshed",
			pg.SQL("SELECT finished_at FROM daily_refreshes WHERE day = ?", domain.DateOf(w.Clock.Now())))
		if err != nil || !at.Equal(w.Clock.Now()) {
			w.T.Errorf("the day was refreshed at %v, and not at its begin (%v)", at, err)
		}
	}
}

// noError fails the test at an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
