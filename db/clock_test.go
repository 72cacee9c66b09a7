package db_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// TestNothingIsTakenOverAfterAJump: after the clock jumped forward, a reserved Idempotency-Key and a periodic job are
// another process's for as long as before, by monotonic time.
func TestNothingIsTakenOverAfterAJump(t *testing.T) {
	w := newWorld(t)
	key := db.NewID[domain.KeyKind]()
	w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, created_at)
		VALUES ($1, $2, '', '', '', true, '{}', $3)`, key, w.Partner, noon)
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: w.Partner, Key: key, AllClients: true})
	request := domain.RequestDigest{Exact: []byte("request"), Canonical: []byte("request")}
	taken := func() (reserved, leased bool) {
		t.Helper()
		_, _, err := w.Reserve(ctx, "k", request)
		if err != nil && !domain.IsCode(err, domain.Conflict) {
			t.Fatal(err)
		}
		l, leaseErr := w.ClaimPeriodic(ctx, db.ReportCare, time.Minute)
		w.Must(leaseErr)
		return err == nil, l != nil
	}
	for _, step := range []struct {
		run, set         time.Duration
		reserved, leased bool
	}{
		{0, 0, true, true},
		{time.Second, 2 * time.Minute, false, false},
		{domain.ReservedFor - time.Microsecond, 0, false, false},
		{time.Microsecond, 0, true, false},
		{time.Minute - domain.ReservedFor, 0, true, true},
	} {
		w.Clock.Advance(step.run)
		w.Clock.Step(step.set)
		if reserved, leased := taken(); reserved != step.reserved || leased != step.leased {
			t.Errorf("after %v, and a step by %v: reserved %v, leased %v", step.run, step.set, reserved, leased)
		}
	}
}

// TestQueuesArePutBack verifies that the work of every table with leases is put back after a step of the clock back. A
// periodic job is due when it waits too long (ClaimPeriodic).
func TestQueuesArePutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables, err := pg.All[string](t.Context(), w.DB, "list tables with leases", pg.SQL(
		"SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'lease'"))
	w.Must(err)
	for _, table := range tables {
		if table != "periodic_jobs" && !slices.ContainsFunc(db.PutBack, func(s string) bool { return strings.Contains(s, "UPDATE "+table+" ") }) {
			t.Errorf("nothing puts the work of the table %s back", table)
		}
	}
	if len(tables) < 5 {
		t.Errorf("found only the tables %v", tables)
	}
}

// TestPeriodicJobAfterAStepBack verifies that a periodic job does not wait longer for a step of the clock back.
func TestPeriodicJobAfterAStepBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claim := func() *db.PeriodicLease {
		t.Helper()
		l, err := w.ClaimPeriodic(t.Context(), db.ReportCare, 2*time.Minute)
		w.Must(err)
		return l
	}
	w.Must(w.FinishPeriodic(t.Context(), claim(), w.Clock.Now().Add(5*time.Minute), false))
	if claim() != nil {
		t.Error("the job is due at once")
	}
	w.Clock.Step(-time.Hour)
	if claim() == nil {
		t.Error("the job waits after a step of an hour back")
	}
}

// TestSyncsAfterAStepBack verifies that a scheduled sync and a run whose process died do not wait longer for a step of the
// clock back.
func TestSyncsAfterAStepBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, now := w.AddClient(), w.Clock.Now()
	w.watch()
	w.Exec(`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
		VALUES ($1, 'google', '{}', '', $2, $3, $3)`, client, now.Add(domain.SyncEvery), now)
	w.Exec(`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at, lease, leased_until)
		VALUES ($1, gen_random_uuid(), 'running', 'api', $2, $2, gen_random_uuid(), $3)`, client, now, now.Add(time.Minute))
	waiting := func() [2]int {
		return [2]int{
			w.Number("SELECT count(*) FROM directory_connections WHERE next_run_at > $1", w.Clock.Now()),
			w.Number("SELECT count(*) FROM sync_runs WHERE leased_until > $1", w.Clock.Now()),
		}
	}
	for _, step := range []struct {
		run, set time.Duration
		want     [2]int // scheduled and leased
	}{{0, 0, [2]int{1, 1}}, {0, -time.Hour, [2]int{0, 1}}, {time.Minute, 0, [2]int{0, 0}}} {
		w.Clock.Advance(step.run)
		w.Clock.Step(step.set)
		w.watch()
		if got := waiting(); got != step.want {
			t.Errorf("after %v, and a step by %v: %v wait, want %v", step.run, step.set, got, step.want)
		}
	}
}
