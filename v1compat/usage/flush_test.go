package usage

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

var errLost = errors.New("the connection was lost")

// flaky fails statements before they are sent, or loses the answers to them.
type flaky struct {
	before, after atomic.Int64 // how many statements
}

// exec fails, or runs the statement and then may lose the answer.
func (f *flaky) exec(ctx context.Context, on pg.Runner, doing string, q pg.Query) (int, error) {
	if f.before.Add(-1) >= 0 {
		return 0, errLost
	}
	n, err := pg.Exec(ctx, on, doing, q)
	if f.after.Add(-1) >= 0 {
		return 0, errors.Join(errLost, err)
	}
	return n, err
}

// unreliable is a Counter whose statements can fail.
func unreliable(t *testing.T, d *pg.DB) (*Counter, *flaky) {
	t.Helper()
	c, f := counter(t, d, domain.NewManualClock(noon)), &flaky{}
	c.exec = f.exec
	return c, f
}

// TestFailedFlush: a flush that fails is kept, and one whose answer is lost is
// counted once, whatever is counted meanwhile.
func TestFailedFlush(t *testing.T) {
	t.Parallel()
	d := open(t)
	c, f := unreliable(t, d)
	total := int64(0)
	count := func(n int) {
		for range n {
			c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: http.StatusOK, UserAgent: "a/1"})
		}
		total += int64(n)
	}
	for i, step := range []struct {
		calls         int
		before, after int64
		fails         bool
		written       int64
	}{
		{3, 0, 0, false, 3},
		{4, 1, 0, true, 3},   // it was not sent
		{5, 1, 0, true, 3},   // nor was it again
		{1, 0, 0, false, 13}, // it was, and what came since then
		{2, 0, 1, true, 15},  // its answer was lost
		{0, 0, 1, true, 15},  // and that of the repetition
		{6, 0, 0, false, 21}, // it is known to be there
		{0, 0, 0, false, 21},
		{2, 0, 1, true, 23},
		{2, 1, 0, true, 23},
		{2, 0, 1, true, 23}, // the answer to the repetition
		{0, 0, 0, false, 27},
	} {
		count(step.calls)
		f.before.Store(step.before)
		f.after.Store(step.after)
		if err := c.Flush(t.Context()); (err != nil) != step.fails {
			t.Fatalf("flush %d: %v", i+1, err)
		}
		if n := calls(all(t, d), key(1)); n != step.written {
			t.Errorf("after flush %d: %d calls, not %d of %d", i+1, n, step.written, total)
		}
	}
	if n := calls(all(t, d), key(1)); n != total {
		t.Errorf("%d calls of %d", n, total)
	}
}

// TestRepetitionWaits: a flush that is sent again while its first attempt is still
// in progress is counted once.
func TestRepetitionWaits(t *testing.T) {
	t.Parallel()
	d := open(t)
	c := counter(t, d, domain.NewManualClock(noon))
	c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200})
	flush(t, c)
	c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200})

	// The first attempt is a transaction that has not ended.
	first, err := d.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback()
	b := c.drain(t.Context())
	c.sequence++
	b.sequence = c.sequence
	_, err = first.ExecContext(t.Context(), addStatement, b.args(c.replica)...)
	if err != nil {
		t.Fatal(err)
	}
	c.pending = b
	ended := make(chan error, 1)
	go func() { ended <- c.Flush(t.Context()) }()
	for waiting := false; !waiting; { // until the repetition waits for the first
		err := d.SQL().QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := calls(all(t, d), key(1)); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestRecord: a flush that fails is logged, and the next one adds what it could not.
func TestRecord(t *testing.T) {
	t.Parallel()
	d := open(t)
	c, f := unreliable(t, d)
	c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200})
	f.before.Store(1)
	for want := range 2 {
		c.Record(t.Context())
		if n := len(all(t, d)); n != want {
			t.Errorf("%d rows, not %d", n, want)
		}
	}
}

// TestRetention: what is older than 400 days goes once a day, in batches, and
// nothing else.
func TestRetention(t *testing.T) {
	t.Parallel()
	d := open(t)
	clock := domain.NewManualClock(noon)
	exec(t, d, `INSERT INTO v1_usage SELECT gen_random_uuid(), '2026-06-15'::date - n, 'v1', 'GET /' || m, 1, 0, now(), now(), '{}'
		FROM generate_series(395, 405) n, generate_series(1, 1500) m`)
	exec(t, d, `INSERT INTO v1_usage_flushes VALUES (gen_random_uuid(), 7, '2026-05-01'), (gen_random_uuid(), 7, '2026-06-01')`)
	days := func() (n int) {
		t.Helper()
		if err := d.SQL().QueryRowContext(t.Context(), `SELECT count(DISTINCT day) FROM v1_usage`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	held := counter(t, d, clock)
	held.PruneIf(func(context.Context, time.Time) (bool, error) { return false, nil })
	held.Record(t.Context())
	if n := days(); n != 11 {
		t.Errorf("%d days are left by a clock that is not trusted, want all 11", n)
	}
	one, two := counter(t, d, clock), counter(t, d, clock)
	one.Record(t.Context())
	if n := days(); n != 5 { // 395 to 399 days ago: today is the 400th
		t.Errorf("%d days", n)
	}
	clock.Advance(time.Hour)
	one.Record(t.Context())
	two.Record(t.Context())
	if n := days(); n != 5 {
		t.Errorf("%d days, the same day", n)
	}
	clock.Advance(24 * time.Hour)
	one.Record(t.Context())
	if n := days(); n != 4 {
		t.Errorf("%d days, a day later", n)
	}
	var replicas int
	if err := d.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM v1_usage_flushes`).Scan(&replicas); err != nil || replicas != 1 {
		t.Errorf("%d replicas are remembered (%v)", replicas, err)
	}
}
