package db_test

import (
	"testing"
	"time"

	"partnerapi/db"
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
