package pg_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

var errUndo = errors.New("undo")

// openChange begins a transaction with a stamp, after fn. end commits it.
func openChange(t *testing.T, d *pg.DB, fn func(ctx context.Context)) (at time.Time, end func()) {
	t.Helper()
	taken, commit, done := make(chan time.Time), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.Tx(context.Background(), func(ctx context.Context) error {
			fn(ctx)
			at, err := d.Stamp(ctx)
			taken <- at
			<-commit
			return err
		})
	}()
	at = <-taken
	return at, func() {
		close(commit)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func horizon(t *testing.T, d *pg.DB) time.Time {
	t.Helper()
	at, err := d.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// stampOnce commits a change, and returns its stamp.
func stampOnce(t *testing.T, d *pg.DB) (at time.Time) {
	t.Helper()
	err := d.Stamped(t.Context(), func(_ context.Context, now time.Time) error { at = now; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestHorizon verifies that the horizon is not after the stamp of a change in progress, whichever process it is of, and
// that it is after the stamps of all changes once none is in progress. Foreign transactions do not hold it back.
func TestHorizon(t *testing.T) {
	t.Parallel()
	server := dbtest.URL(t, empty)
	direct, pooled := openAt(t, server), openAt(t, startPooler(t, server), pg.WithPooler(server, false))
	foreign, err := direct.SQL().BeginTx(t.Context(), nil)
	if err == nil {
		_, err = foreign.Exec("SELECT pg_current_xact_id()")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Rollback() }()

	for name, before := range map[string]func(d *pg.DB, ctx context.Context){
		"first": func(*pg.DB, context.Context) {},
		"after a savepoint that was rolled back": func(d *pg.DB, ctx context.Context) {
			_ = d.Savepoint(ctx, func(ctx context.Context) error {
				_, err := d.Stamp(ctx)
				return errors.Join(err, errUndo)
			})
		},
		"after a savepoint": func(d *pg.DB, ctx context.Context) {
			_ = d.Savepoint(ctx, func(ctx context.Context) error { _, err := d.Stamp(ctx); return err })
		},
		"after a trial": func(d *pg.DB, ctx context.Context) {
			_ = d.DryRun(ctx, func(ctx context.Context) error { _, err := d.Stamp(ctx); return err })
		},
	} {
		for _, d := range []*pg.DB{direct, pooled} {
			t.Run(fmt.Sprintf("%s, pooled: %t", name, d.Pooled()), func(t *testing.T) {
				slow, commit := openChange(t, d, func(ctx context.Context) { before(d, ctx) })
				var fast time.Time
				for _, other := range []*pg.DB{direct, pooled} {
					fast = stampOnce(t, other)
					if fast.Before(slow) {
						t.Errorf("a later change is stamped %v, and an earlier one %v", fast, slow)
					}
					if got := horizon(t, other); got.After(slow) || slow.Sub(got) > time.Minute {
						t.Errorf("the horizon is %v while a change of %v is in progress", got, slow)
					}
				}
				commit()
				for _, other := range []*pg.DB{direct, pooled} {
					if got := horizon(t, other); !got.After(fast) {
						t.Errorf("the horizon is %v after a change of %v", got, fast)
					}
				}
			})
		}
	}
}

// TestStampOnce verifies that a transaction has one stamp, and that a trial leaves no mark, however long it is.
func TestStampOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	if _, err := d.Stamp(t.Context()); err == nil {
		t.Error("a stamp without a transaction")
	}
	err := d.Stamped(t.Context(), func(ctx context.Context, at time.Time) error {
		return d.Savepoint(ctx, func(ctx context.Context) error {
			return d.Stamped(ctx, func(_ context.Context, again time.Time) error {
				if !again.Equal(at) {
					t.Errorf("stamps %v and %v of one transaction", at, again)
				}
				return nil
			})
		})
	})
	if err != nil {
		t.Error(err)
	}
	err = d.DryRun(t.Context(), func(ctx context.Context) error {
		if _, err := d.Stamp(ctx); err != nil { // by the process's clock, which may be ahead of the server's
			return err
		}
		at, err := pg.One[time.Time](t.Context(), d, "read the server's clock", pg.SQL("SELECT clock_timestamp()"))
		if got := horizon(t, d); !got.After(at) {
			t.Errorf("the horizon is %v during a trial, and was read after %v", got, at)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = d.Snapshot(t.Context(), func(ctx context.Context) error {
		if _, err := d.Horizon(ctx); err == nil {
			t.Error("a horizon in a snapshot")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestChangeLimit verifies that a change that is open for too long is rolled back and returns Unavailable, also if the
// server has to end it, and that a shorter limit of the transaction remains.
func TestChangeLimit(t *testing.T) {
	t.Parallel()
	d := open(t, pg.WithChangeLimit(300*time.Millisecond))
	exec(t, d, "CREATE TABLE rows (n integer)")
	err := d.Stamped(t.Context(), func(ctx context.Context, _ time.Time) error {
		if err := pg.Run(ctx, d, "insert", pg.SQL("INSERT INTO rows VALUES (1)")); err != nil {
			return err
		}
		for { // many short statements
			if err := pg.Run(ctx, d, "sleep", pg.SQL("SELECT pg_sleep(0.01)")); err != nil {
				return err
			}
		}
	})
	if !domain.IsCode(err, domain.Unavailable) {
		t.Errorf("an endless change: %v", err)
	}
	if n, err := pg.One[int](t.Context(), d, "count", pg.SQL("SELECT count(*) FROM rows")); n != 0 || err != nil {
		t.Errorf("it left %d rows, %v", n, err)
	}

	const settings = `SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('statement_timeout')`
	for idle, want := range map[string]string{"0": "300ms 300ms", "100ms": "100ms 300ms", "10min": "300ms 300ms"} {
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			err := pg.Run(ctx, d, "set", pg.SQL("SELECT set_config('idle_in_transaction_session_timeout', ?, true)", idle))
			if err == nil {
				_, err = d.Stamp(ctx)
			}
			if err != nil {
				return err
			}
			got, err := pg.One[string](ctx, d, "read settings", pg.SQL(settings))
			if got != want {
				t.Errorf("with %s: %s, want %s", idle, got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if got, err := pg.One[string](t.Context(), d, "read settings", pg.SQL(settings)); got != "0 0" || err != nil {
		t.Errorf("after the transactions: %s, %v", got, err)
	}
}

// TestStampsStandStill verifies that stamps do not go back with a step of the clock of up to 15 minutes, also in a
// process that starts after it, and that they follow a greater step.
func TestStampsStandStill(t *testing.T) {
	t.Parallel()
	server := dbtest.URL(t, empty)
	start := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	clock := domain.NewManualClock(start)
	const newest = "SELECT max(at) FROM feed"
	d := openAt(t, server, pg.WithClock(clock), pg.WithNewestStamp(newest))
	exec(t, d, "CREATE TABLE feed (at timestamptz)")
	check := func(d *pg.DB, want time.Duration) {
		t.Helper()
		if got := stampOnce(t, d).Sub(start); got != want {
			t.Errorf("at %v the stamp is %v, want %v", clock.Now().Sub(start), got, want)
		}
	}
	check(d, 0)
	clock.Set(start.Add(-15 * time.Minute))
	check(d, 0)
	exec(t, d, "INSERT INTO feed VALUES (?)", start.Add(-time.Second)) // of another process, which follows its own stamps
	check(openAt(t, server, pg.WithClock(clock), pg.WithNewestStamp(newest)), -time.Second)
	exec(t, d, "INSERT INTO feed VALUES (?)", start.Add(-15*time.Minute).Add(time.Second))
	clock.Set(start.Add(-time.Minute))
	exec(t, d, "INSERT INTO feed VALUES (?)", start.Add(time.Second))
	check(d, time.Second)
	clock.Set(start.Add(2 * time.Second))
	check(d, 2*time.Second)
	clock.Set(start.Add(-time.Hour))
	check(d, -time.Hour)
}
