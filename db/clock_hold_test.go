package db_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// checkTrust verifies whether the clock is trusted.
func (w *world) checkTrust(when string, want bool) {
	w.T.Helper()
	if got, err := w.ClockTrusted(w.T.Context(), w.Clock.Now()); err != nil || got != want {
		w.T.Errorf("%s: the clock is trusted: %v, %v; want %v", when, got, err, want)
	}
}

// watch calls WatchClock in the world's process, and returns how long processes have waited.
func (w *world) watch() time.Duration {
	w.T.Helper()
	state, err := w.WatchClock(w.T.Context())
	w.Must(err)
	return state.Waited
}

// holds returns the number of stored holds.
func (w *world) holds() int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM clock_hold")
}

// second returns another process on the same database, with a clock.
func (w *world) second(clock domain.Clock) *db.DB {
	w.T.Helper()
	d, err := db.Open(w.Pool().Config().ConnString(), db.WithClock(clock))
	w.Must(err)
	w.T.Cleanup(func() { _ = d.Close() })
	return d
}

// TestClockAfterALeap verifies that a step forward of more than a minute holds work back until the clock has run for two
// minutes, and that a shorter step, a step back and time that passes do not.
func TestClockAfterALeap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh(true)
	w.Clock.Advance(20 * day)
	w.checkTrust("after 20 days", true)
	w.Clock.Step(time.Minute)
	w.checkTrust("after a step of a minute", true)
	w.Clock.Step(-12 * time.Hour)
	w.checkTrust("after a step back", true)
	w.Clock.Step(10 * time.Minute)
	w.checkTrust("after a step of ten minutes", false)
	w.Clock.Advance(2*time.Minute - time.Microsecond)
	w.checkTrust("just before two minutes", false)
	w.Clock.Advance(time.Microsecond)
	w.checkTrust("two minutes later", true)
	if n := w.holds(); n != 0 {
		t.Errorf("%d holds are stored", n)
	}
}

// TestClockHold verifies that a service which was off for two months is trusted when processes have worked for a day,
// whatever their clocks do meanwhile, however often they start, and whether they are one or two.
func TestClockHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checkTrust("without a refresh", true)
	w.refresh(true)
	w.Clock.Advance(31 * day)
	w.checkTrust("31 days after the refresh", true)
	w.Clock.Advance(29 * day)
	w.checkTrust("60 days after the refresh", false)
	w.refresh(false)
	w.watch()

	other := w.second(w.Clock)
	for range 23 { // hours, in both processes
		w.Clock.Advance(time.Hour)
		w.watch()
		if _, err := other.WatchClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.checkTrust("within a day", false)
	}
	w.Clock.Step(10 * day)
	if waited := w.watch(); waited != 23*time.Hour {
		t.Errorf("after a step of ten days: waited for %v", waited)
	}
	third := w.second(w.Clock) // a process that starts now
	w.Clock.Advance(59 * time.Minute)
	if state, err := third.WatchClock(t.Context()); err != nil || state.Waited != 23*time.Hour {
		t.Errorf("a new process: waited for %v, %v", state.Waited, err)
	}
	w.watch()
	w.checkTrust("a minute before the end", false)
	w.Clock.Advance(time.Minute)
	if state, err := third.WatchClock(t.Context()); err != nil || state.Waited != 23*time.Hour+59*time.Minute {
		t.Errorf("the new process: waited for %v, %v", state.Waited, err)
	}
	if waited := w.watch(); waited != 24*time.Hour {
		t.Errorf("a day later: waited for %v", waited)
	}
	w.checkTrust("a day later", true)
	w.Clock.Step(740 * day)
	w.Clock.Advance(2 * time.Minute)
	w.checkTrust("after another step, to another year", false)
	w.Clock.Step(-740 * day)
	w.checkTrust("back on that day", true)

	w.refresh(true)
	w.watch()
	if n := w.holds(); n != 0 {
		t.Errorf("%d holds are stored after the refresh", n)
	}
	w.Clock.Advance(day)
	w.refresh(true)
}

// TestClockHoldOfASecondProcess verifies that a hold whose row another process deleted, or that began anew, begins with
// no time waited.
func TestClockHoldOfASecondProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh(true)
	w.Clock.Advance(100 * day)
	w.watch()
	w.Clock.Advance(20 * time.Hour)
	w.watch()
	w.Exec("DELETE FROM clock_hold") // by a process whose clock is right
	w.Clock.Advance(20 * time.Hour)
	if waited := w.watch(); waited != 0 {
		t.Errorf("after the deletion: waited for %v", waited)
	}
	w.Clock.Advance(5 * time.Hour)
	w.watch()
	w.Clock.Step(400 * day) // to another day that is not plausible
	if waited := w.watch(); waited != 0 {
		t.Errorf("on another day: waited for %v", waited)
	}
}

// TestAcceptClock verifies that an operator ends a hold for all processes, for the day that the clock shows, and that the
// audit trail has an entry of it.
func TestAcceptClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh(true)
	entries := func() int { return w.Number("SELECT count(*) FROM audit_entries WHERE operation = 'work'") }
	accept := func(want bool) {
		t.Helper()
		got, err := w.AcceptClock(t.Context(), domain.AuditEntry{Prefix: domain.CommandActor, Operation: "work"})
		if err != nil || got != want {
			t.Errorf("accepted: %v, %v; want %v", got, err, want)
		}
	}
	accept(false)
	w.Clock.Advance(60 * day)
	w.watch()
	accept(true)
	accept(false)
	if n := entries(); n != 1 {
		t.Errorf("%d entries in the audit trail, want 1", n)
	}
	w.checkTrust("accepted", true)
	if trusted, err := w.second(w.Clock).ClockTrusted(t.Context(), w.Clock.Now()); err != nil || !trusted {
		t.Errorf("in another process: %v, %v", trusted, err)
	}
	w.Clock.Advance(800 * day)
	w.checkTrust("800 days later", false)
	w.watch()
	w.Clock.Advance(-800 * day)
	w.watch()
	if trusted, err := w.second(w.Clock).ClockTrusted(t.Context(), w.Clock.Now()); err != nil || trusted {
		t.Errorf("after another day was seen: %v, %v", trusted, err)
	}
	accept(true)
	w.refresh(true)
}

// clockTraces are queries of what a clock that is wrong for a moment must not change.
var clockTraces = map[string]string{
	"audit entries":   "SELECT count(*) FROM audit_entries",
	"reports":         "SELECT count(*) FROM reports",
	"courses":         "SELECT count(*) FROM assignments",
	"superseded":      "SELECT count(*) FROM assignments WHERE superseded",
	"overdue events":  "SELECT count(*) FROM events WHERE type = 'training.assignment.overdue'",
	"scores":          "SELECT sum(score) FROM users",
	"history":         "SELECT count(*) FROM risk_history",
	"refreshes":       "SELECT count(*) FROM daily_refreshes",
	"monthly reports": "SELECT count(*) FROM monthly_mailings WHERE month > '2026-07-01'",
	"holds":           "SELECT count(*) FROM clock_hold",
}

// TestImplausibleClock verifies that a clock which is 800 days off for half a minute while a process starts changes
// nothing: before, it deleted the audit trail, renewed courses and marked them as overdue.
func TestImplausibleClock(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"ahead": 800 * day, "behind": -800 * day, "at the epoch": -20619 * day} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			client := w.AddClient()
			user := w.AddUser(client, domain.RoleStandard, 0)
			w.AddRound(client, user, 1, -80, 90) // completed
			w.AddRound(client, user, 2, 20, -1)  // open
			w.Must(w.Audit(t.Context(), domain.AuditEntry{Prefix: domain.CommandActor, Operation: "keys create"}))
			w.refresh(true)
			w.Clock.Advance(day)
			w.refresh(true)
			before := map[string]int{}
			for name, query := range clockTraces {
				before[name] = w.Number(query)
			}

			clock := domain.NewManualClock(w.Clock.Now().Add(step)) // of a process that starts now, and has seen no step
			started := w.second(clock)
			for range 2 {
				if _, err := started.WatchClock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if ran, err := started.DailyRefresh(t.Context(), domain.DateOf(clock.Now()), nil); err != nil || ran {
					t.Errorf("refreshed: %v, %v", ran, err)
				}
				if n, _, err := started.NoteOverdue(t.Context()); err != nil || n != 0 {
					t.Errorf("%d overdue, %v", n, err)
				}
				if err := started.ForceSummaries(t.Context()); err != nil { // as a read does
					t.Fatal(err)
				}
				clock.Advance(15 * time.Second)
			}
			clock.Step(-step)
			if _, err := started.WatchClock(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name, query := range clockTraces {
				if n := w.Number(query); n != before[name] {
					t.Errorf("%s: %d, want %d", name, n, before[name])
				}
			}
			w.Clock.Advance(day)
			w.refresh(true)
		})
	}
}

// TestRefreshOfAPastDay verifies that the refresh of a day before the last one makes that one due again: the clock was
// ahead then, or is behind now.
func TestRefreshOfAPastDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh(true)
	w.Clock.Advance(20 * day)
	w.refresh(true)
	w.Clock.Advance(-20 * day)
	w.refresh(false) // is done
	w.Clock.Advance(day)
	w.refresh(true)
	w.Clock.Advance(19 * day)
	w.refresh(true)
	w.refresh(false)
}
