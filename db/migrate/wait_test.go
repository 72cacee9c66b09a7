package migrate_test

import (
	"context"
	"testing"

	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
)

// TestMigrateWaitsForLocksInTurns: a migration that a reader keeps from its lock gives
// way to those who wait behind it, and is applied once the reader is gone.
func TestMigrateWaitsForLocksInTurns(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	next, err := migrate.NewNext(map[string]string{"99001_nickname.sql": "-- +goose Up\nALTER TABLE clients ADD COLUMN nickname text;\n"})
	w.Must(err)
	tx, err := w.SQL().BeginTx(t.Context(), nil)
	w.Must(err)
	_, err = tx.Exec("SELECT count(*) FROM clients")
	w.Must(err)

	migrated := make(chan error, 1)
	go func() {
		_, err := next.Up(context.WithoutCancel(t.Context()), w.DB)
		migrated <- err
	}()
	// Another reader passes while the first one holds the migration up: nothing else would
	// let it.
	waits := "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'clients'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	for w.Number(waits) == 0 {
	}
	w.Number("SELECT count(*) FROM clients")
	w.Must(tx.Rollback())
	w.Must(<-migrated)
}
