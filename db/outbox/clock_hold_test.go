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
	w.Clock.Advance(2 * time.Minute) // until processes claim again
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

// TestExpiryByAnUntrustedClock verifies that a subscription whose key has expired by a clock that is not trusted stays
// active, and that its deliveries wait: they are neither made nor dropped. Events are published for it.
func TestExpiryByAnUntrustedClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	client := w.AddClient()
	w.delivery(client)
	follow := func(want int) {
		t.Helper()
		if f, err := outbox.FollowKeys(t.Context(), w.DB); err != nil || len(f.Disabled) != want || len(f.Resumed) != 0 {
			t.Errorf("disabled %v, resumed %v, %v; want %d disabled", f.Disabled, f.Resumed, err, want)
		}
	}
	w.Clock.Step(800 * day)
	w.Clock.Advance(2 * time.Minute) // until processes claim again
	follow(0)
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
	if p, err := outbox.PublishEvents(t.Context(), w.DB, 10, render); err != nil || p.Deliveries != 1 {
		t.Errorf("on an implausible day %d deliveries of an event are inserted, %v", p.Deliveries, err)
	}
	w.Clock.Step(-800 * day)
	if claim := w.claimDeliveries(); claim.Dropped != 0 || len(claim.Leases) != 1 {
		t.Errorf("then %d deliveries are dropped and %d made, want 1 made", claim.Dropped, len(claim.Leases))
	}
	w.Clock.Advance(30 * day)
	w.refreshed()
	if claim := w.claimDeliveries(); claim.Dropped != 0 || len(claim.Leases) != 0 {
		t.Errorf("before the end of the key is noticed %d deliveries are dropped and %d made", claim.Dropped, len(claim.Leases))
	}
	follow(1)
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
	w.Clock.Advance(time.Minute) // until processes claim again
	if n := fail(); n != 0 || w.Number("SELECT count(*) FROM partner_mails") != 0 {
		t.Errorf("%d subscriptions are disabled just after a step of a day", n)
	}
	w.Clock.Advance(time.Minute)
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

// TestWorkPutOffByAWrongClock verifies that work which was queued, put off or leased while the clock was ahead is due when
// the clock is right again, that of the leases only those end which no living process has renewed within a minute, and
// that scheduled simulations keep their time.
func TestWorkPutOffByAWrongClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{
		"implausible": 800 * day, "plausible": 20 * day, "an hour": time.Hour, "ten seconds": 10 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.refreshed()
			client := w.AddClient()
			user := w.AddUser(client, domain.RoleStandard, 0)
			scheduled := w.simulation(client, user, 900*day)
			hook, leased := w.delivery(client)
			w.Exec("UPDATE api_keys SET expires_at = NULL")
			watch := func() {
				t.Helper()
				_, err := w.WatchClock(t.Context())
				w.Must(err)
			}
			watch()
			w.Clock.Advance(5 * time.Minute)

			w.Clock.Step(ahead)
			watch()
			w.Clock.Advance(2 * time.Minute) // until processes claim again
			w.queue(client, 2, 4)
			immediate := w.simulation(client, user, 0)
			leases := w.Claim(3)
			put := leases[0]
			w.Must(outbox.RequeueMail(t.Context(), w.DB, put, outbox.Requeue{At: w.Clock.Now().Add(5 * time.Second), Failed: true}))
			if claim := w.claimDeliveries(); len(claim.Leases) != 1 || claim.Leases[0].ID != leased {
				t.Fatalf("%d deliveries to %s are claimed", len(claim.Leases), hook)
			}
			for range 2 { // one queued, one put off after an attempt
				w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
					VALUES ($1, gen_random_uuid(), $2, 1, $3, gen_random_uuid(), 'user.updated', $4, $4)`, hook, w.Partner, client, w.Clock.Now())
			}
			tried := w.claimDeliveries().Leases[0]
			_, err := outbox.MarkDeliveries(t.Context(), w.DB, []outbox.DeliveryMark{{
				DeliveryLease: tried, Try: &domain.DeliveryTry{At: w.Clock.Now(), StatusCode: 500}, Status: domain.DeliveryWaiting,
				Due: w.Clock.Now().Add(30 * time.Second),
			}})
			w.Must(err)
			w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
				VALUES ($1, gen_random_uuid(), 'risk_overview', 'pdf', 'pending', $2, $2)`, client, w.Clock.Now())

			w.Clock.Step(-ahead)
			watch()
			held := leases[1] // by a living process; that of the other one has died
			w.Must(db.RenewLeases(t.Context(), w.DB, []outbox.Lease{held}, 75*time.Second))
			list, found := w.Claim(10), 0
			for _, l := range list {
				if l.ResultID() == immediate || l.ID == put.ID {
					found++
				}
				if l.ResultID() == scheduled || l.ID == held.ID {
					t.Error("the scheduled simulation is due, or a lease of a living process has ended")
				}
			}
			if len(list) != 3 || found != 2 {
				t.Errorf("%d mails are due, want the 3 that are not leased", len(list))
			}
			if n := len(w.claimDeliveries().Leases) + len(w.claimDeliveries().Leases); n != 2 {
				t.Errorf("%d deliveries are due, want the 2 that are not leased", n)
			}
			made, err := reports.ClaimReports(t.Context(), w.DB, 10, time.Minute)
			if err != nil || len(made) != 1 {
				t.Errorf("%d reports are due, %v; want 1", len(made), err)
			}

			w.Send(list...)
			w.Clock.Advance(70 * time.Second)
			watch()
			w.Must(db.RenewLeases(t.Context(), w.DB, []outbox.Lease{held}, 75*time.Second))
			if list := w.Claim(10); len(list) != 1 || list[0].ID != leases[2].ID {
				t.Errorf("a minute later %d mails are due, want the one whose process died", len(list))
			}
			if n := w.Number("SELECT count(*) FROM webhook_deliveries WHERE id = $1 AND due_at <= $2", leased, w.Clock.Now()); n != 1 {
				t.Error("a minute later the delivery is not due whose process died")
			}
			if n := w.Number("SELECT count(*) FROM outbox WHERE id = $1 AND due_at = $2", scheduled, worldtest.Noon.Add(900*day)); n != 1 {
				t.Error("the scheduled simulation has another time")
			}
		})
	}
}

// TestNothingIsPutBackByARightClock verifies that WatchClock leaves alone what waits by a clock that was not set: pauses
// after attempts, leases and schedules.
func TestNothingIsPutBackByARightClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refreshed()
	client := w.AddClient()
	now := w.Clock.Now()
	user := w.AddUser(client, domain.RoleStandard, 0)
	w.simulation(client, user, day)
	hook, _ := w.delivery(client)
	w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
		VALUES ($1, gen_random_uuid(), $2, 1, $3, gen_random_uuid(), 'user.updated', $4, $4)`, hook, w.Partner, client, now)
	tries := []any{0, 1, 4, 8, 30}
	reminder := db.NewID[domain.MessageKind]()
	w.Exec(`INSERT INTO mail_requests (client_id, id, type, user_id, created_at, due_at) VALUES ($1, $2, 'welcome', $3, $4, $5)`,
		client, reminder, user, now, now.Add(2*day))
	w.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at) VALUES ($1, $2, 'mail', 2, $3)", client, reminder, now.Add(2*day))
	for i, pause := range []time.Duration{3 * time.Second, 5500 * time.Millisecond, 132 * time.Second, 66 * time.Minute, 66 * time.Minute} {
		w.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at, attempts) VALUES ($1, gen_random_uuid(), 'mail', 2, $2, $3)",
			client, now.Add(pause), tries[i])
	}
	w.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at, lease) VALUES ($1, gen_random_uuid(), 'mail', 2, $2, gen_random_uuid())",
		client, now.Add(75*time.Second))
	w.Exec(`UPDATE webhook_deliveries SET due_at = $1, first_try_at = $2, tries = jsonb_build_array(jsonb_build_object('at', $2::timestamptz))`,
		now.Add(2*time.Hour), now)
	w.Exec("UPDATE webhook_deliveries SET due_at = $1, lease = gen_random_uuid() WHERE id = (SELECT max(id::text)::uuid FROM webhook_deliveries)",
		now.Add(40*time.Second))
	w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at, due_at, lease)
		VALUES ($1, gen_random_uuid(), 'risk_overview', 'pdf', 'pending', $2, $2, $3, gen_random_uuid()),
			($1, gen_random_uuid(), 'risk_overview', 'pdf', 'pending', $2, $2, $4, NULL)`, client, now, now.Add(2*time.Minute), now.Add(18*time.Second))
	state := func() (text string) {
		w.Scan(`SELECT string_agg(id || ' ' || due_at || ' ' || coalesce(lease::text, ''), ',' ORDER BY id) FROM (
			SELECT id, due_at, lease FROM outbox UNION ALL SELECT id, due_at, lease FROM webhook_deliveries
			UNION ALL SELECT id, due_at, lease FROM reports) AS x`, nil, &text)
		return text
	}
	before := state()
	for range 6 {
		_, err := w.WatchClock(t.Context())
		w.Must(err)
		w.Clock.Advance(15 * time.Second)
	}
	if after := state(); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
}
