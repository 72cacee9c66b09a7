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
	{"the daily refresh", dailyRefresh},
}

// TestClockSteps: whichever way the clock is set, a revoked key ends, budgets and summaries are renewed after as long as
// ever, an email in progress is sent once, and the daily refresh has run for the day that it is.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v2test.Options{EdgeClock: true, Limits: ginop.Limits{PerKey: 10, PerAddress: 60, PerClientFactor: 1}})
			var during, after []func()
			for _, row := range steppedRows {
				d, a := row.begin(w, step)
				during, after = append(during, d), append(after, a)
			}
			w.Clock.Step(step.by)
			w.Clock.Advance(30 * time.Second)
			for i, check := range during {
				t.Log("during:", steppedRows[i].name)
				check()
			}
			if step.back {
				w.Clock.Step(-step.by)
			}
			w.Clock.Advance(6 * time.Minute)
			for i, check := range after {
				t.Log("after:", steppedRows[i].name)
				check()
			}
		})
	}
}

func revokedKey(w *world, _ clockStep) (during, after func()) {
	key := w.NewKey(w.tenant, []domain.Scope{domain.Read}, nil)
	w.Get("/v2/clients", key).Want(http.StatusOK)
	w.Exec("UPDATE api_keys SET revoked_at = $2 WHERE digest = $1", db.KeyDigest(key), w.Clock.Now())
	ended := func() { w.Get("/v2/clients", key).Want(http.StatusUnauthorized) }
	return ended, ended
}

func usedBudget(w *world, _ clockStep) (during, after func()) {
	key := w.NewKey(w.tenant, []domain.Scope{domain.Read}, nil)
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
