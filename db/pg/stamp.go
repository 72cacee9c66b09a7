package pg

import (
	"context"
	"errors"
	"sync"
	"time"

	"partnerapi/domain"
)

// The times of changes, and the horizon up to which all changes are visible.
//
// A transaction that changes rows first acquires a mark, a shared advisory lock that names the current time, and then
// takes its stamp from the same clock. So a stamp is never earlier than its mark, and the server releases a mark only
// after the commit is visible. The earliest mark that is held is therefore a horizon: a change that is not yet visible
// has a stamp at or after it. Marks are locks of transactions, so they work through a pooler and end with a crash, and
// every process reads the same ones. They need no privilege. Transactions of other programs do not hold the horizon
// back.

// MarkClass is the first key of the advisory locks that are marks. The second one is a time in milliseconds since 1970,
// modulo 2^32. Locks by name (WithAdvisoryLock) have one key of 64 bits, which PostgreSQL keeps apart.
const MarkClass = 0x6d61726b

// ChangeLimit is the default of WithChangeLimit.
const ChangeLimit = 25 * time.Second

// WithChangeLimit bounds the time that a transaction may be open after its stamp. The server enforces it too, in case
// the process fails.
func WithChangeLimit(limit time.Duration) Option { return func(o *options) { o.changeLimit = limit } }

// maxStepBack is the largest step back of the server's clock during which stamps do not go back.
const maxStepBack = 15 * time.Minute

var errTooLong = errors.New("the change was open for too long, and was rolled back")

// stamps is the newest stamp that this process has taken or read. It is safe for concurrent use.
type stamps struct {
	mu     sync.Mutex
	newest time.Time
}

// read returns the newest stamp, or nil if none is known yet.
func (s *stamps) read() *time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return domain.OrNil(s.newest)
}

// next returns the stamp of a change at the time now. If the clock was set back by at most maxStepBack, that is the
// newest stamp of this process or, if it is later, recorded, the newest one that is known to the database.
func (s *stamps) next(now time.Time, recorded *time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newest
	if recorded != nil && recorded.After(newest) && recorded.Sub(now) <= maxStepBack {
		newest = *recorded
	}
	s.newest = notBefore(newest, now)
	return s.newest
}

// trial returns what next would, for a change that is rolled back: the newest stamp stays. now may be ahead of the time
// by which other processes take their stamps.
func (s *stamps) trial(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return notBefore(s.newest, now)
}

// notBefore returns now or, if that is at most maxStepBack before newest, newest.
func notBefore(newest, now time.Time) time.Time {
	if newest.After(now) && newest.Sub(now) <= maxStepBack {
		return newest
	}
	return now
}

// WithNewestStamp sets a query for the newest stamp in the database, or NULL. It is read with the first stamp of a
// process, and while the clock is behind the newest stamp.
func WithNewestStamp(query string) Option { return func(o *options) { o.newestStamp = query } }

type stampKey struct{}

// stamp is the stamp of a transaction, as known at a level of its savepoints.
type stamp struct {
	at    time.Time // zero until it is taken
	trial bool      // everything is rolled back, so that the change needs no mark
	limit *limit
}

// limit ends a transaction that is open for too long.
type limit struct {
	end   context.CancelCauseFunc
	timer *time.Timer
}

// withLimit returns a context for a transaction that is to have a stamp. stop must be called after the transaction.
func withLimit(ctx context.Context) (bounded context.Context, stop func()) {
	bounded, end := context.WithCancelCause(ctx)
	l := &limit{end: end}
	return context.WithValue(bounded, stampKey{}, &stamp{limit: l}), func() {
		if l.timer != nil {
			l.timer.Stop()
		}
		end(nil)
	}
}

// tooLong returns Unavailable instead of err if the limit has ended the transaction of ctx.
func (d *DB) tooLong(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), errTooLong) {
		return err
	}
	return &domain.Error{
		Code: domain.Unavailable, Message: "the change took too long and was rolled back; try again later",
		RetryAfter: retryUnavailable, Cause: errors.Join(errTooLong, err),
	}
}

// inSavepoint returns a context for a savepoint. The server releases a mark with the savepoint that is rolled back, so
// the stamp is valid for the transaction only after keep, which is called when the savepoint was released.
func inSavepoint(ctx context.Context, trial bool) (inner context.Context, keep func()) {
	outer, ok := ctx.Value(stampKey{}).(*stamp)
	if !ok {
		return ctx, func() {}
	}
	own := *outer
	own.trial = own.trial || trial
	return context.WithValue(ctx, stampKey{}, &own), func() { outer.at = own.at }
}

// takeStamp acquires a mark, bounds the transaction by ?limit milliseconds, and then reads the clock, which is ?given
// or the server's. newest is the newest stamp in the database, unless the clock is past ?known. A parameter keeps a
// shorter limit. transaction_timeout exists since PostgreSQL 17. Triggers read the clock in the setting partnerapi.clock.
const takeStamp = `
	WITH mark AS MATERIALIZED (
		SELECT pg_advisory_xact_lock_shared(?class::integer, (
			floor(extract(epoch FROM coalesce(?given::timestamptz, clock_timestamp())) * 1000)::bigint::bit(32)::integer))
	), bounds AS MATERIALIZED (
		SELECT count(set_config(name, ?limit::integer::text, true)) AS n
		FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout']) AS name
		WHERE current_setting(name, true) = '0'
			OR nullif(current_setting(name, true), '0')::interval > ?limit::integer * interval '1 millisecond'
	), moment AS MATERIALIZED (
		SELECT coalesce(?given::timestamptz, clock_timestamp()) AS at, n FROM mark CROSS JOIN bounds
	), shown AS MATERIALIZED (
		SELECT at, set_config('partnerapi.clock', at::text, true) FROM moment
	)
	SELECT at, CASE WHEN (at < ?known::timestamptz) IS NOT FALSE THEN (?newest) END AS newest FROM shown`

// Stamp returns the time of the change in the transaction of ctx: of updated_at in all rows that it writes. It is taken
// from the clock of Now when it is first requested, after the transaction has a mark, and is then the same until the
// transaction ends. From then on the transaction may be open for ChangeLimit; it is then rolled back, and Tx returns
// Unavailable. If the clock was set back by at most 15 minutes, stamps stand still until it has caught up.
func (d *DB) Stamp(ctx context.Context) (time.Time, error) {
	s, ok := ctx.Value(stampKey{}).(*stamp)
	switch {
	case !ok:
		return time.Time{}, errors.New("take a stamp without a transaction")
	case !s.at.IsZero():
		return s.at, nil
	case s.trial:
		s.at = d.stamps.trial(d.Now())
		return s.at, nil
	}
	type taken struct {
		At     time.Time
		Newest *time.Time
	}
	t, err := One[taken](ctx, d, "take the time of a change", Prepared(SQL(takeStamp, Named{
		"class": MarkClass, "given": d.givenTime(), "limit": d.changeLimit.Milliseconds(), "known": d.stamps.read(),
		"newest": SQL(d.newestStamp),
	})))
	if err != nil {
		return time.Time{}, err
	}
	if given := d.givenTime(); given != nil { // after the mark
		t.At = *given
	}
	if s.limit.timer == nil {
		s.limit.timer = time.AfterFunc(d.changeLimit, func() { s.limit.end(errTooLong) })
	}
	s.at = d.stamps.next(t.At, t.Newest)
	return s.at, nil
}

// Stamped runs fn in a transaction (Tx) with its stamp.
func (d *DB) Stamped(ctx context.Context, fn func(ctx context.Context, at time.Time) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		at, err := d.Stamp(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, at)
	})
}

// givenTime returns the time of the clock of WithClock, or nil for the server's clock.
func (d *DB) givenTime() *time.Time {
	if _, ok := d.clock.(*serverClock); ok {
		return nil
	}
	return new(d.clock.Now())
}

// Horizon returns the time up to which a later statement sees all changes: a change that it does not see has a stamp at
// or after the horizon. That is the time of the earliest mark or, while no change is in progress, now. Horizon must not
// be called in a snapshot, which is older.
func (d *DB) Horizon(ctx context.Context) (time.Time, error) {
	if d.InSnapshot(ctx) {
		return time.Time{}, errors.New("take a horizon in a snapshot")
	}
	type marks struct {
		Now   time.Time
		Marks []int64
	}
	// Without a mark that was acquired before, a change takes its stamp after statement_timestamp.
	m, err := One[marks](ctx, d, "find changes in progress", Prepared(SQL(`
		SELECT coalesce(?0::timestamptz, statement_timestamp()) AS now, ARRAY(
			SELECT DISTINCT objid::bigint FROM pg_locks
			WHERE locktype = 'advisory' AND classid = ?1::bigint::oid AND objsubid = 2
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		) AS marks`, d.givenTime(), MarkClass)))
	if err != nil {
		return time.Time{}, err
	}
	horizon := m.Now
	for _, mark := range m.Marks {
		// A mark is less than 25 days old, or lies less than 25 days ahead if the clock was set back.
		now := m.Now.UnixMilli()
		age := int64(int32(uint32(now) - uint32(mark)))
		if at := time.UnixMilli(now - age).UTC(); at.Before(horizon) {
			horizon = at
		}
	}
	return horizon, nil
}
