package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// caller is one that reaches all clients of the world's partner.
func (w *world) caller() context.Context {
	return domain.WithCaller(context.Background(), &domain.Caller{Partner: w.partner, AllClients: true, Scopes: []domain.Scope{domain.Read}})
}

// total is how many clients a list of all of them says that there are.
func (w *world) total() int {
	w.t.Helper()
	slice, err := w.Clients(w.caller(), domain.ClientFilter{Sort: "name"}, domain.Window{Limit: 1, Total: true})
	w.must(err)
	return slice.Total
}

// TestClientCount: the partner's counter follows whatever changes its clients,
// and nobody else's.
func TestClientCount(t *testing.T) {
	w := newWorld(t)
	other := db.NewID[domain.PartnerKind]()
	w.exec("INSERT INTO partners (id, name, name_key, created_at) VALUES ($1, 'Other', 'other', $2)", other, noon)
	first, second := w.client(), w.client()
	w.client()
	for _, step := range []struct {
		change string
		args   []any
		total  int
	}{
		{"SELECT $1::uuid", []any{first}, 3},
		{`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at, archived_at)
			SELECT gen_random_uuid(), CASE WHEN n > 4 THEN $1::uuid ELSE $2::uuid END, n::text, n::text, now(), now(), now(),
			CASE WHEN n = 4 THEN now() END FROM generate_series(1, 9) AS n`, []any{other, w.partner}, 6},
		{"UPDATE clients SET archived_at = now() WHERE id = $1", []any{first}, 5},
		{"UPDATE clients SET archived_at = now() + interval '1 hour' WHERE id = $1", []any{first}, 5},
		{"UPDATE clients SET archived_at = NULL WHERE id = $1", []any{first}, 6},
		{"DELETE FROM clients WHERE id = $1", []any{second}, 5},
		{"UPDATE clients SET archived_at = now() WHERE partner_id = $1", []any{other}, 5},
	} {
		w.exec(step.change, step.args...)
		if got := w.total(); got != step.total {
			t.Fatalf("after %s: %d clients, not %d", step.change, got, step.total)
		}
	}
	var rest int
	w.get("SELECT client_count FROM partners WHERE id = $1", []any{other}, &rest)
	if rest != 0 {
		t.Errorf("the other partner has %d clients left of none", rest)
	}
}

// TestReadInTx: a read by key sees what its transaction wrote, times are in
// UTC, and the connection goes back to the pool.
func TestReadInTx(t *testing.T) {
	w := newWorld(t, db.WithConns(1))
	id := w.client()
	failed := errors.New("failed")
	err := w.Tx(w.caller(), func(ctx context.Context) error {
		c, err := w.LockClient(ctx, id)
		w.must(err)
		c.Name = "Renamed"
		w.must(w.UpdateClient(ctx, c))
		seen, err := w.Client(ctx, id)
		w.must(err)
		if seen.Name != "Renamed" || seen.CreatedAt.Location() != time.UTC {
			t.Errorf("the transaction reads %q of %s", seen.Name, seen.CreatedAt)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if seen, err := w.Client(w.caller(), id); err != nil || seen.Name == "Renamed" {
		t.Errorf("after the transaction the client is %q, %v", seen.Name, err)
	}
	if _, err := w.Client(w.caller(), domain.ClientID{1}); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("a client that is not there: %v", err)
	}
}
