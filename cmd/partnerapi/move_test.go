package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/platform/seal"
)

// cellFlags are the flags of an empty database that is one of 16 cells.
func cellFlag(t *testing.T, code string) string {
	t.Helper()
	flag := databaseFlag(t)
	must(t, "migrate", flag, "--cell="+code, "--cell-count=16")
	return flag
}

// cellPair are two empty cells of 16: their flags, what names the second to move, and both
// opened.
func cellPair(t *testing.T) (from, to, target string, old, now *db.DB) {
	t.Helper()
	from, to = cellFlag(t, "00"), cellFlag(t, "01")
	return from, to, "--to=" + strings.TrimPrefix(to, "--database-url="), opened(t, from), opened(t, to)
}

// started has a process record its key, as at its start.
func started(t *testing.T, d *db.DB, keys *seal.Keys) {
	t.Helper()
	used, err := d.AnySealed(t.Context(), db.SealedColumns)
	if err == nil {
		err = database.CheckKeys(t.Context(), d, keys, used)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStuckMoves: the log names each partner whose move is stuck, once for a step at which
// it is.
func TestStuckMoves(t *testing.T) {
	t.Parallel()
	d := opened(t, cellFlag(t, "00"))
	insertClients(t, d, "Acme", "Hill")
	acme := partnerNamed(t, d, "Acme").UUID()
	var said bytes.Buffer
	m := &stuckMoves{log: slog.New(slog.NewTextHandler(&said, nil))}
	for _, step := range []struct {
		set  string // of the move
		logs int
	}{
		{"step = 'copying', cell = '01', began_at = now() - interval '1 hour'", 0},
		{"step = 'handing', held_until = now() - interval '1 minute'", 0},
		{"held_until = now() - interval '3 minutes'", 1},
		{"cell = '01'", 0}, // no change
		{"held_until = now() + interval '10 seconds'", 0},
		{"held_until = now() - interval '3 minutes'", 1},
		{"step = 'gone', began_at = now() - interval '2 days'", 0},
		{"step = 'copying'", 1},
		{"step = 'holding'", 1},
		{"cell = '01'", 0},
	} {
		execute(t, d, `INSERT INTO moves (partner_id, step, cell) VALUES ($1, 'copying', '01') ON CONFLICT DO NOTHING`, acme)
		execute(t, d, "UPDATE moves SET "+step.set)
		said.Reset()
		if err := m.logNew(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(said.String(), "partner=Acme "); n != step.logs || strings.Count(said.String(), "\n") != n {
			t.Errorf("after %s it logs %s", step.set, &said)
		}
	}
}
