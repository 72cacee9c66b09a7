package db

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Some work is caused by the clock alone, and nothing can undo it: old rows and reports are deleted, courses renewed,
// decayed scores stored, deliveries and subscriptions given up by age, scheduled simulations sent, and events of overdue
// courses and monthly emails written. A clock that shows a wrong time, if only for seconds, must not do that. All such
// work asks ClockTrusted first. Reads need not: they compute their values from dates, and are right again as soon as the
// clock is.

const (
	// leapHoldFor is how long the clock has to run after it was set forward by more than domain.LeapForward.
	leapHoldFor = 2 * time.Minute
	// PlausibleDays is the greatest number of days from the last daily refresh to a plausible day.
	PlausibleDays = 31
	// ClockHoldFor is how long processes wait until they trust a day that is not plausible.
	ClockHoldFor = 24 * time.Hour
)

// ClockHold is the reason why work that only the clock causes waits.
type ClockHold string

// The holds: the clock was set forward a moment ago, or shows a day that is far from the last daily refresh.
const (
	HoldStep ClockHold = "step"
	HoldDay  ClockHold = "day"
)

// ClockHolds lists the holds.
var ClockHolds = []ClockHold{HoldStep, HoldDay}

// ClockState describes the clock and what it is compared with.
type ClockState struct {
	// Now is the time that the clock shows.
	Now time.Time
	// SinceLeap is the time since the clock was set forward (pg.DB.SinceLeap).
	SinceLeap time.Duration
	// LastRefresh is the day of the last daily refresh; zero if there was none.
	LastRefresh domain.Date
	// Seen reports whether a process has found the day implausible, and counts the time until it is trusted.
	Seen bool
	// Waited is that time.
	Waited time.Duration
	// Accepted reports whether an operator accepted the clock.
	Accepted bool
}

// plausible reports whether the day is near the last daily refresh, on either side. A database without one has no day to
// compare with.
func (s *ClockState) plausible() bool {
	return s.LastRefresh.IsZero() || near(s.LastRefresh, domain.DateOf(s.Now))
}

// near reports whether two days are at most PlausibleDays apart.
func near(a, b domain.Date) bool { return max(a.DaysUntil(b), b.DaysUntil(a)) <= PlausibleDays }

// Hold returns why work that only the clock causes waits, or an empty string.
func (s *ClockState) Hold() ClockHold {
	switch {
	case !s.plausible() && !s.Accepted && s.Waited < ClockHoldFor:
		return HoldDay
	case s.SinceLeap < leapHoldFor:
		return HoldStep
	}
	return ""
}

// Until returns when the hold of a day will end by the clock, if a process works until then.
func (s *ClockState) Until() time.Time { return s.Now.Add(ClockHoldFor - s.Waited) }

// clockWatch is what a process remembers of the clock. It is shared by the copies of a DB.
type clockWatch struct {
	accepted bool // see WithAcceptedClock
	// trusted is the last day that was trusted: until the day changes, nothing is read again.
	trusted atomic.Pointer[domain.Date]

	mu sync.Mutex // guards what follows, which WatchClock uses
	// hold is the hold that this process counts for. At the time start, by Elapsed, it had waited for base.
	hold        uuid.UUID
	base, start time.Duration
	// last is the time that the clock showed when it was last read, at lastAt by Elapsed; zero if it was not.
	last   time.Time
	lastAt time.Duration
	// behind is true while work may have to be put back (putBackAfterStep), and leasesAt is when its leases end, by
	// Elapsed; 0 if they need not.
	behind   bool
	leasesAt time.Duration
}

// note notes that the clock shows now. Since the last call it may have been set back; before the first one it may have,
// too, when no process worked.
func (w *clockWatch) note(now time.Time, elapsed time.Duration) {
	expected := w.last.Add(elapsed - w.lastAt)
	w.behind = w.behind || w.last.IsZero() || expected.After(domain.Ahead(now))
	w.last, w.lastAt = now, elapsed
}

// WithAcceptedClock makes ClockTrusted return true whatever the clock shows. It is for tests and benchmarks that set the
// clock months ahead.
func WithAcceptedClock() Option { return func(o *options) { o.acceptedClock = true } }

// ClockTrusted reports whether work may be done that the clock alone causes and that nothing can undo. now is the time
// by which it is done, read before, so that a step in between is noticed. It is false for two minutes after the clock was
// set forward by more than a minute. It is also false while the day is more than PlausibleDays from that of the last daily
// refresh, until processes have waited for ClockHoldFor or an operator has accepted the clock (decisions 2.9). It reads the
// database once for each day.
func (d *DB) ClockTrusted(ctx context.Context, now time.Time) (bool, error) {
	if d.watch.accepted {
		return true, nil
	}
	if !d.steady() {
		return false, nil
	}
	day := domain.DateOf(now)
	if last := d.watch.trusted.Load(); last != nil && *last == day {
		return true, nil
	}
	state, err := d.readClock(ctx, now)
	if err != nil || state.Hold() != "" {
		return false, err
	}
	d.watch.trusted.Store(&day)
	return true, nil
}

// steady reports whether the clock was not set forward a moment ago.
func (d *DB) steady() bool { return d.watch.accepted || d.SinceLeap() >= leapHoldFor }

// plausibleDay returns the condition that a day is plausible, or is trusted nevertheless (ClockState.Hold).
func (d *DB) plausibleDay(day domain.Date) pg.Query {
	if d.watch.accepted {
		return pg.SQL("true")
	}
	return pg.SQL(`(NOT EXISTS (SELECT FROM daily_refreshes)
		OR abs((SELECT max(day) FROM daily_refreshes) - ?day::date) <= ?plausibleDays::integer
		OR EXISTS (SELECT FROM clock_hold WHERE abs(day - ?day::date) <= ?plausibleDays::integer AND (accepted OR waited >= ?holdSeconds::integer)))`,
		pg.Named{"day": day, "plausibleDays": PlausibleDays, "holdSeconds": int(ClockHoldFor / time.Second)})
}

// ReadClock returns the state of the clock. It changes nothing.
func (d *DB) ReadClock(ctx context.Context) (ClockState, error) { return d.readClock(ctx, d.Now()) }

// clockRow is what readClock reads.
type clockRow struct {
	LastRefresh domain.Date `bun:",nullzero"`
	Day         domain.Date `bun:",nullzero"` // of the hold; zero if there is none
	Waited      int
	Accepted    bool
}

// readClock returns the state of the clock at now. A hold of another day counts as none: it is of another step.
func (d *DB) readClock(ctx context.Context, now time.Time) (ClockState, error) {
	row, err := pg.One[clockRow](ctx, d, "look at the day", pg.SQL(`
		SELECT r.last_refresh, h.day, coalesce(h.waited, 0) AS waited, coalesce(h.accepted, false) AS accepted
		FROM (SELECT max(day) AS last_refresh FROM daily_refreshes) AS r LEFT JOIN clock_hold AS h ON true`))
	state := ClockState{Now: now, SinceLeap: d.SinceLeap(), LastRefresh: row.LastRefresh}
	if !row.Day.IsZero() && near(row.Day, domain.DateOf(now)) {
		state.Seen, state.Waited, state.Accepted = true, time.Duration(row.Waited)*time.Second, row.Accepted
	}
	return state, err
}

// WatchClock returns the state of the clock. While the day is not plausible, it stores that, and for how long processes
// have waited; otherwise it forgets an earlier hold. After a hold, after a step back and in its first call it makes work
// due that a clock which was ahead has queued or put off. Processes that do background work call it at their start, after
// each step (pg.DB.Stepped) and several times a minute.
//
// The time of a hold is the greatest that a process has counted: what was stored when the process first saw the hold,
// and the monotonic time since. So neither a step of the clock, nor a restart, nor a second process shortens it.
func (d *DB) WatchClock(ctx context.Context) (ClockState, error) {
	w := d.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	state, err := d.ReadClock(ctx)
	if err != nil {
		return state, err
	}
	elapsed := d.Elapsed()
	w.note(state.Now, elapsed)
	if state.plausible() {
		ended, err := pg.Exec(ctx, d, "forget that the day was not plausible", pg.SQL("DELETE FROM clock_hold"))
		if err != nil {
			return state, err
		}
		w.behind = w.behind || ended > 0
		return state, d.putBackAfterStep(ctx, state.Now, elapsed)
	}
	stored, err := d.storeHold(ctx, state.Now, w.hold, w.base+elapsed-w.start, false /* accepted */)
	if err != nil {
		return state, err
	}
	state.Seen, state.Waited, state.Accepted = true, time.Duration(stored.Waited)*time.Second, stored.Accepted
	if stored.ID != w.hold {
		w.hold, w.base, w.start = stored.ID, state.Waited, elapsed
	}
	return state, nil
}

// storedHold is a row of clock_hold.
type storedHold struct {
	ID       uuid.UUID `bun:"id"`
	Waited   int
	Accepted bool
}

// storeHold stores that the day of now is not plausible, and returns the hold. If the hold of that day has the ID own,
// processes have waited for at least waited. A hold of another day, which is not near, is replaced.
func (d *DB) storeHold(
	ctx context.Context, now time.Time, own uuid.UUID, waited time.Duration, accepted bool,
) (storedHold, error) {
	const same = "abs(h.day - excluded.day) <= ?days"
	return pg.One[storedHold](ctx, d, "store that the day is not plausible", pg.SQL(`
		INSERT INTO clock_hold AS h (id, day, seen_at, waited, accepted) VALUES (?new, ?day, ?now, 0, ?accepted)
		ON CONFLICT (single) DO UPDATE SET
			id = CASE WHEN `+same+` THEN h.id ELSE excluded.id END,
			day = excluded.day,
			seen_at = CASE WHEN `+same+` THEN h.seen_at ELSE excluded.seen_at END,
			waited = CASE WHEN `+same+` THEN greatest(h.waited, CASE WHEN h.id = ?own THEN ?waited::integer END) ELSE 0 END,
			accepted = `+same+` AND h.accepted OR excluded.accepted
		RETURNING id, waited, accepted`, pg.Named{
		"new": uuid.New(), "day": domain.DateOf(now), "now": now, "accepted": accepted, "days": PlausibleDays,
		"own": own, "waited": int(waited / time.Second),
	}))
}

// AcceptClock ends the hold of the day that the clock shows, for all processes, and writes the audit entry. It returns
// false if there is no such hold. It does not accept a day that the clock shows later.
func (d *DB) AcceptClock(ctx context.Context, e domain.AuditEntry) (accepted bool, err error) {
	err = d.Tx(ctx, func(ctx context.Context) error {
		state, err := d.ReadClock(ctx)
		if accepted = err == nil && state.Hold() == HoldDay; !accepted {
			return err
		}
		if _, err := d.storeHold(ctx, state.Now, uuid.Nil, 0, true /* accepted */); err != nil {
			return err
		}
		return d.Audit(ctx, e)
	})
	return accepted && err == nil, err
}
