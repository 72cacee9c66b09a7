//go:build scale

package move

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// TestMoveOfManyUsers verifies that a partner of 50,600 users moves while it writes 50 times a second, and that no write
// fails but those that the freeze rejects. It logs how long the move took, and for how long writes were rejected.
func TestMoveOfManyUsers(t *testing.T) {
	w := newWorld(t)
	w.must(seed.Large(t.Context(), w.From, seed.Size{Clients: 506, Users: 50_600}, nil))
	w.catalogues()
	w.must(w.Partner.Scan(value[string](w, w.From, "SELECT id::text FROM partners WHERE name = $1", seed.LargePartner)))
	key, err := w.From.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: "writes", Scopes: []domain.Scope{domain.Write}})
	w.must(err)
	writes := writing{world: w, caller: w.caller(key)}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writes.run(ctx)
	}()
	began := time.Now()
	err = w.Run(t.Context())
	over := time.Now()
	stop()
	<-ended
	w.must(err)
	if writes.done.Load() == 0 || writes.rejected == nil {
		t.Fatalf("%d writes were done, and those of the freeze rejected: %v", writes.done.Load(), writes.rejected != nil)
	}
	t.Logf("moved in %s beside %d writes; writes were rejected for %s", over.Sub(began), writes.done.Load(), over.Sub(*writes.rejected))
	for _, table := range []string{"users", "phishing_results", "assignments"} {
		const rows = " WHERE client_id IN (SELECT id FROM clients WHERE partner_id = $1)"
		count := func(d *db.DB) int { return value[int](w, d, "SELECT count(*) FROM "+table+rows, w.Partner.UUID()) }
		if got, want := count(w.To), count(w.From); got != want || want == 0 {
			t.Errorf("%s: %d rows in the new cell, want %d", table, got, want)
		}
	}
}

// writing is the writes of a partner.
type writing struct {
	*world
	caller   *domain.Caller
	done     atomic.Int64
	rejected *time.Time // when the first was rejected
}

// run changes a random user 50 times a second.
func (w *writing) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / 50)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		err := w.From.Change(domain.WithCaller(w.t.Context(), w.caller), func(ctx context.Context, _ *db.Change) error {
			entry := domain.AuditEntry{Partner: w.Partner, Key: w.caller.Key, Prefix: "writes", Operation: "users.update"}
			if err := w.From.Audit(ctx, entry); err != nil {
				return err
			}
			_, err := pg.Exec(ctx, w.From, "change a user", pg.SQL(`UPDATE users SET department = clock_timestamp()::text
				WHERE id = (SELECT id FROM users WHERE client_id = (SELECT id FROM clients WHERE partner_id = ? ORDER BY random() LIMIT 1) LIMIT 1)`,
				w.Partner))
			return err
		})
		switch {
		case err == nil:
			w.done.Add(1)
		case !domain.IsCode(err, domain.Unavailable):
			w.t.Errorf("a write failed: %v", err)
		case w.rejected == nil:
			now := time.Now()
			w.rejected = &now
		}
	}
}
