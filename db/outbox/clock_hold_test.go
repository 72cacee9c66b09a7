package outbox_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

const day = 24 * time.Hour

// refreshed marks the daily refresh of today as done, with which later days are compared.
func (w *world) refreshed() {
	w.T.Helper()
	w.Exec("INSERT INTO daily_refreshes (day, finished_at) VALUES (($1::timestamptz)::date, $1)", w.Clock.Now())
}

// simulation adds a simulation that is created now and due after a time, with its row of the outbox.
func (w *world) simulation(client domain.ClientID, user domain.UserID, after time.Duration) domain.ResultID {
	w.T.Helper()
	now := w.Clock.Now()
	id := w.AddUnsent(client, user, time.Time{} /* not sent */)
	w.Exec("UPDATE phishing_results SET created_at = $2, send_at = $3 WHERE id = $1", id, now, now.Add(after))
	w.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at) VALUES ($1, $2, 'simulation', 2, $3)", client, id, now.Add(after))
	return id
}

// TestScheduledSimulationsWait verifies that simulations that were scheduled for a later time are not sent by a clock
// that is not trusted, and that other mail is, also mail of the same client that is due later than those.
func TestScheduledSimulationsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 0)
	for range 30 { // more than are claimed at a time
		w.simulation(client, user, 300*day)
	}
	w.Clock.Step(800 * day)
	immediate := w.simulation(client, user, 0)
	w.queue(client, 2, 1)
	leases := w.Claim(10)
	if len(leases) != 2 || leases[0].ResultID() != immediate && leases[1].ResultID() != immediate {
		t.Errorf("claimed %d mails on an implausible day, want the 2 that are not scheduled: %v", len(leases), leases)
	}
	w.Send(leases...)
	w.Clock.Step(-800 * day)
	if leases := w.Claim(10); len(leases) != 0 {
		t.Errorf("claimed %d mails before they are due", len(leases))
	}
	w.Clock.Advance(300 * day)
	w.refreshed()
	if leases := w.Claim(10); len(leases) != 10 {
		t.Errorf("claimed %d mails on the day of the schedule, want 10", len(leases))
	}
}

// delivery adds a subscription of a new key that expires in 30 days, and a delivery to it that waits.
func (w *world) delivery(client domain.ClientID) (hook domain.WebhookID, delivery domain.DeliveryID) {
	w.T.Helper()
	expires := w.Clock.Now().Add(30 * day)
	_, err := w.CreateKey(w.T.Context(), db.NewKey{
		Partner: w.Partner, Name: "hooks", Scopes: []domain.Scope{domain.Write}, ExpiresAt: &expires,
	})
	w.Must(err)
	hook, delivery = db.NewID[domain.WebhookKind](), db.NewID[domain.DeliveryKind]()
	now := w.Clock.Now()
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, active_since, created_at, updated_at, secret)
		SELECT $1, $2, id, 'https://hook.example/', '{user.updated}', 'active', $3, $3, $3, '' FROM api_keys`, w.Partner, hook, now)
	w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, queued_at, due_at)
		VALUES ($1, $2, $3, 1, $4, gen_random_uuid(), 'user.updated', $5, $5, $5)`, hook, delivery, w.Partner, client, now)
	return hook, delivery
}

// claimDeliveries claims the due deliveries.
func (w *world) claimDeliveries() outbox.Claim {
	w.T.Helper()
	claim, err := outbox.ClaimDeliveries(w.T.Context(), w.DB, &outbox.DeliveryTurns{}, 10, time.Minute,
		func(due []outbox.DueWebhook) (places []outbox.Places) {
			for _, d := range due {
				places = append(places, outbox.Places{Webhook: d.ID, N: 1})
			}
			return places
		})
	w.Must(err)
	return claim
}

// TestExpiryByAnUntrustedClock verifies that deliveries to a subscription whose key has expired by a clock that is not
// trusted wait: they are neither made nor dropped. Events are published for it.
func TestExpiryByAnUntrustedClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	client := w.AddClient()
	w.delivery(client)
	w.Clock.Step(800 * day)
	if claim := w.claimDeliveries(); claim.Dropped != 0 || len(claim.Leases) != 0 {
		t.Errorf("on an implausible day %d deliveries are dropped and %d made", claim.Dropped, len(claim.Leases))
	}
	w.Exec(`INSERT INTO events (client_id, id, type, user_id, created_at) VALUES ($1, gen_random_uuid(), 'user.updated', gen_random_uuid(), $2)`,
		client, w.Clock.Now())
	render := func(_ context.Context, events []db.OutboxEvent) ([]string, error) {
		bodies := make([]string, len(events))
		for i := range bodies {
			bodies[i] = "{}"
		}
		return bodies, nil
	}
	w.Exec("UPDATE webhooks SET active_since = '2020-01-01'")
	if p, err := outbox.PublishEvents(t.Context(), w.DB, 10, render); err != nil || p.Deliveries != 1 {
		t.Errorf("on an implausible day %d deliveries of an event are inserted, %v", p.Deliveries, err)
	}
	w.Clock.Step(-800 * day)
	if claim := w.claimDeliveries(); claim.Dropped != 0 || len(claim.Leases) != 1 {
		t.Errorf("then %d deliveries are dropped and %d made, want 1 made", claim.Dropped, len(claim.Leases))
	}
	w.Clock.Advance(30 * day)
	w.refreshed()
	if claim := w.claimDeliveries(); claim.Dropped != 2 {
		t.Errorf("after the expiry %d deliveries are dropped, want 2", claim.Dropped)
	}
}

// TestFailuresByAnUntrustedClock verifies that a subscription is neither disabled nor its partner emailed for failures
// that have lasted long by a clock that is not trusted.
func TestFailuresByAnUntrustedClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	hook, _ := w.delivery(w.AddClient())
	fail := func() (disabled int) {
		t.Helper()
		w.Exec("UPDATE webhook_deliveries SET due_at = $1, lease = NULL", w.Clock.Now())
		leases := w.claimDeliveries().Leases
		if len(leases) != 1 {
			t.Fatalf("%d deliveries are claimed", len(leases))
		}
		now := w.Clock.Now()
		done, err := outbox.MarkDeliveries(t.Context(), w.DB, []outbox.DeliveryMark{{
			DeliveryLease: leases[0], Try: &domain.DeliveryTry{At: now}, Status: domain.DeliveryWaiting, Due: now,
		}})
		w.Must(err)
		return len(done.Disabled)
	}
	w.Exec("UPDATE api_keys SET expires_at = NULL")
	w.Exec("INSERT INTO admins (id, partner_id, email, name, role, created_at) VALUES (gen_random_uuid(), $1, 'a@b.example', 'A', 'owner', $2)", w.Partner, w.Clock.Now())
	fail()
	w.Clock.Step(25 * time.Hour)
	if n := fail(); n != 0 || w.Number("SELECT count(*) FROM partner_mails") != 0 {
		t.Errorf("%d subscriptions are disabled just after a step of a day", n)
	}
	w.Clock.Advance(2 * time.Minute)
	if n := fail(); n != 1 || w.Number("SELECT count(*) FROM partner_mails") != 1 {
		t.Errorf("%d subscriptions are disabled, want %s", n, hook)
	}
}

// TestReportsByAnUntrustedClock verifies that no report expires, and no monthly one is queued, by a clock that is not
// trusted.
func TestReportsByAnUntrustedClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	client := w.AddClient()
	now := w.Clock.Now()
	w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		VALUES ($1, gen_random_uuid(), 'risk_overview', 'pdf', 'ready', $2, $2)`, client, now)
	w.Exec("INSERT INTO mail_switches (client_id, kind, enabled, changed_at) VALUES ($1, 'monthly-report', true, $2)", client, now)
	work := func() (expired, monthly int) {
		t.Helper()
		list, err := w.ExpiredReports(t.Context(), 10)
		w.Must(err)
		monthly, err = reports.QueueMonthlyReports(t.Context(), w.DB)
		w.Must(err)
		return len(list), monthly
	}
	month := time.Date(2028, 9, 1, 6, 0, 0, 0, time.UTC)
	w.Clock.Step(month.Sub(worldtest.Noon))
	if expired, monthly := work(); expired != 0 || monthly != 0 {
		t.Errorf("on an implausible day %d reports expire and %d monthly ones are queued", expired, monthly)
	}
	w.Clock.Advance(2 * time.Minute)
	w.refreshed()
	if expired, monthly := work(); expired != 1 || monthly != 1 {
		t.Errorf("on that day %d reports expire and %d monthly ones are queued, want one each", expired, monthly)
	}
}

// TestWorkPutOffByAWrongClock verifies that work which was put off, leased or requested while the clock was ahead is due
// when the clock is right again, and that scheduled simulations keep their time.
func TestWorkPutOffByAWrongClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"implausible": 800 * day, "plausible": 20 * day} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.refreshed()
			client := w.AddClient()
			user := w.AddUser(client, domain.RoleStandard, 0)
			scheduled := w.simulation(client, user, 900*day)
			hook, _ := w.delivery(client)
			w.Exec("UPDATE api_keys SET expires_at = NULL")
			watch := func() {
				t.Helper()
				_, err := w.WatchClock(t.Context())
				w.Must(err)
			}
			watch()

			w.Clock.Step(ahead)
			watch()
			w.queue(client, 2, 3)
			immediate := w.simulation(client, user, 0)
			leases := w.Claim(3) // two of them remain leased, as their process dies
			w.Must(outbox.RequeueMail(t.Context(), w.DB, leases[0], outbox.Requeue{At: w.Clock.Now().Add(time.Minute), Failed: true}))
			if n := len(w.claimDeliveries().Leases); n != 1 {
				t.Fatalf("%d deliveries to %s are claimed", n, hook)
			}
			w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
				VALUES ($1, gen_random_uuid(), 'risk_overview', 'pdf', 'pending', $2, $2)`, client, w.Clock.Now())

			w.Clock.Step(-ahead)
			watch()
			list := w.Claim(10)
			found := false
			for _, l := range list {
				found = found || l.ResultID() == immediate
				if l.ResultID() == scheduled {
					t.Error("the scheduled simulation is due")
				}
			}
			if len(list) != 4 || !found {
				t.Errorf("%d mails are due, want 4; the immediate simulation: %v", len(list), found)
			}
			if n := len(w.claimDeliveries().Leases); n != 1 {
				t.Errorf("%d deliveries are due, want 1", n)
			}
			made, err := reports.ClaimReports(t.Context(), w.DB, 10, time.Minute)
			if err != nil || len(made) != 1 {
				t.Errorf("%d reports are due, %v; want 1", len(made), err)
			}
			if n := w.Number("SELECT count(*) FROM outbox WHERE id = $1 AND due_at = $2", scheduled, w.Clock.Now().Add(900*day)); n != 1 {
				t.Error("the scheduled simulation has another time")
			}
		})
	}
}
