package pg

import (
	"context"
	"time"

	"partnerapi/domain"
)

// Delta selects the rows of a list that changed since a time, up to the list's horizon (decisions 3.8). A row that
// changes later is left to the next reading, on later pages too. So the greatest change time that a caller has seen is
// where the next reading may begin. Rows that are stamped ahead of the clock, which was set back, are in every delta. A
// nil Delta selects all rows.
type Delta struct {
	Since time.Time
	// Horizon is that of the first page.
	Horizon time.Time
	clock   Query // never before the stamp of a visible row
}

// FixHorizon sets the horizon of a window, unless its position has that of the first page. A position of release 1.0
// has none. It must be called before the page is read, and after what changes rows for it.
func FixHorizon(ctx context.Context, d *DB, w *domain.Window) error {
	if w.After != nil {
		w.Horizon = w.After.Horizon
	}
	if w.Horizon != nil {
		return nil
	}
	now := d.Now() // of this process: what becomes due by time is compared with it
	at, err := d.Horizon(ctx)
	if now.Before(at) {
		at = now
	}
	w.Horizon = &at
	return err
}

// DeltaOf returns the delta of a page of a list since a time, or nil if since is nil. It fixes the horizon of w.
func DeltaOf(ctx context.Context, d *DB, since *time.Time, w *domain.Window) (*Delta, error) {
	if since == nil {
		return nil, nil
	}
	if err := FixHorizon(ctx, d, w); err != nil {
		return nil, err
	}
	delta := &Delta{Since: *since, Horizon: *w.Horizon, clock: SQL("clock_timestamp()")}
	if now := d.givenTime(); now != nil {
		delta.clock = SQL("?::timestamptz", *now)
	}
	return delta, nil
}

// Changed adds the condition that a row is in a delta. at is an SQL expression of its change time, with the values of
// args.
func (c *Conditions) Changed(delta *Delta, at string, args ...any) {
	if delta != nil {
		*c = append(*c, delta.From(SQL(at, args...)), delta.Upto(SQL(at, args...)))
	}
}

// Start returns the earliest change time that rows of the delta may have.
func (d *Delta) Start() time.Time {
	if d.Since.After(d.Horizon) {
		return d.Horizon
	}
	return d.Since
}

// From returns the condition that the change time at is not before the delta. An index on at can be used for it.
func (d *Delta) From(at Query) Query {
	return SQL("? >= ?", at, d.Start())
}

// Upto returns the condition that the change time at is not after the delta. A delta that begins after its horizon has
// only rows that are stamped ahead of the clock.
func (d *Delta) Upto(at Query) Query {
	if d.Since.After(d.Horizon) {
		return SQL("? > ?", at, d.clock)
	}
	return SQL("(?at <= ?horizon OR ?at > ?clock)", Named{"at": at, "horizon": d.Horizon, "clock": d.clock})
}
