//go:build slow

package transfer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// TestServerKilled: a batch is applied in whole or not at all, and running the
// command again completes the rest.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	if err := worldtest.Schema.Apply(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	k := &killer{text: "UPDATE policies", kill: server.Kill}
	clock := domain.NewManualClock(noon)
	d, err := db.Open(server.URL(), db.WithClock(clock), db.WithStrictLocks(), db.WithTracer(k))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := worldtest.Of(t, d, clock)
	w.Add("partners", row{"id": w.Partner})
	p := withCatalogue(w)
	o := p.office(0)
	lines := publications(o, 2500)
	k.left.Store(2)
	report, err := transfer.IngestImpatiently(t.Context(), p.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{}, never)
	if err == nil || !strings.Contains(err.Error(), "after line 1000") || report.Taken != 1000 {
		t.Fatalf("%+v, %v", report, err)
	}
	server.Start()
	state := "SELECT version || ' ' || (SELECT count(*) FROM signals) FROM policies WHERE id = $1"
	again, err := newStateReader(t, server.URL(), state, o.policies[0])
	if err != nil || again != "1001 1000" {
		t.Errorf("after the kill: %s, %v", again, err)
	}
	if got := p.ingest(lines...); got.Taken != 1500 || got.Repeated != 1000 {
		t.Errorf("%+v", got)
	}
	if got := p.text(state, o.policies[0]); got != "2501 2500" {
		t.Error(got)
	}
}

// newStateReader reads a value over a connection of its own.
func newStateReader(t *testing.T, url, query string, args ...any) (out string, err error) {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	return out, conn.QueryRow(t.Context(), query, args...).Scan(&out)
}
