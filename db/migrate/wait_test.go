package migrate_test

import (
	"context"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/domain"
)

// TestMigrateWaitsForLocksInTurns: a migration that a reader keeps from its lock gives
// way to those who wait behind it, and is applied once the reader is gone.
func TestMigrateWaitsForLocksInTurns(t *testing.T) {
	t.Parallel()
	d, err := db.Open(dbtest.URL(t, noTables), db.WithClock(domain.NewManualClock(worldtest.Noon)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := &worldtest.World{DB: d, T: t}
	w.Must(migrate.UpTo(t.Context(), d, 21)) // the next one locks clients
	tx, err := d.SQL().BeginTx(t.Context(), nil)
	w.Must(err)
	_, err = tx.Exec("SELECT count(*) FROM clients")
	w.Must(err)

	migrated := make(chan error, 1)
	go func() {
		_, err := migrate.Up(context.WithoutCancel(t.Context()), d)
		migrated <- err
	}()
	// Another reader passes while the first one holds the migration up: nothing else would
	// let it.
	waits := "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'clients'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	for n := 0; n == 0; {
		w.Get(waits, nil, &n)
	}
	var clients int
	w.Get("SELECT count(*) FROM clients", nil, &clients)
	w.Must(tx.Rollback())
	w.Must(<-migrated)
}
