package idmap

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"

	"partnerapi/db/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Script is one of the registry's migrations.
type Script struct {
	Name, Text string
	Applied    bool
}

// allScripts returns the registry's migrations in their order, as if none was applied.
func allScripts() (scripts []Script) {
	files, _ := migrations.ReadDir("migrations") // cannot fail: the files are part of the program
	for _, file := range files {
		text, _ := migrations.ReadFile("migrations/" + file.Name())
		scripts = append(scripts, Script{Name: file.Name(), Text: string(text)})
	}
	return scripts
}

// Scripts returns the registry's migrations in their order. It does not change the database.
func Scripts(ctx context.Context, d *pg.DB) ([]Script, error) {
	have, _, err := SchemaVersion(ctx, d) // the number of those applied, always the first ones
	scripts := allScripts()
	for i := range scripts {
		scripts[i].Applied = int64(i) < have
	}
	return scripts, err
}

// SchemaVersion returns the number of the registry's migrations that were applied, 0 without the table
// idmap_migrations, and the number that this program needs. It does not change the database.
func SchemaVersion(ctx context.Context, d *pg.DB) (have, want int64, err error) {
	const action = "read the state of the registry's migrations"
	want = int64(len(allScripts()))
	exists, err := pg.One[bool](ctx, d, action, pg.SQL("SELECT to_regclass('idmap_migrations') IS NOT NULL"))
	if err == nil && exists {
		have, err = pg.One[int64](ctx, d, action, pg.SQL("SELECT count(*) FROM idmap_migrations"))
	}
	return have, want, err
}

// SchemaKey returns a key that changes with the names and contents of the registry's migrations.
func SchemaKey() string {
	hash := sha256.New()
	for _, s := range allScripts() {
		hash.Write([]byte(s.Name + s.Text))
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Migrate brings the registry's own tables up to date. The tables of the six kinds must exist, and be empty the first
// time: objects get their numbers when they are created. Each migration runs once, in one transaction with its row in
// idmap_migrations, even if several processes call Migrate concurrently. A migration that cannot get a lock is retried.
func Migrate(ctx context.Context, d *pg.DB) error {
	for _, s := range allScripts() {
		err := pg.RetryLocked(ctx, func() error {
			return d.Tx(ctx, func(ctx context.Context) error { return s.apply(ctx, d) })
		})
		if err != nil {
			return fmt.Errorf("migrate the registry, %s: %w", s.Name, err)
		}
	}
	return nil
}

// migrateLock is the key of the advisory lock that each of the registry's migrations takes: "idmap" in ASCII.
const migrateLock = 0x69646d6170

// apply applies the migration in the transaction of ctx, unless it was applied before. Its lock is the transaction's,
// which the server releases, with a rollback, if the process dies.
func (s Script) apply(ctx context.Context, d *pg.DB) error {
	err := pg.Run(ctx, d, "prepare the migration", pg.SQL(fmt.Sprintf(`
		SELECT pg_advisory_xact_lock(%d);
		SET LOCAL lock_timeout = '%s';
		CREATE TABLE IF NOT EXISTS idmap_migrations (
			name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`, migrateLock, pg.LockTimeout)))
	if err != nil {
		return err
	}
	added, err := pg.Exec(ctx, d, "record the migration", pg.SQL(
		"INSERT INTO idmap_migrations (name) VALUES (?) ON CONFLICT DO NOTHING", s.Name))
	if err != nil || added == 0 { // it was applied before
		return err
	}
	// Without arguments the driver sends the whole text at once, which may have several statements.
	return pg.Run(ctx, d, "apply the migration", pg.Raw(s.Text, nil))
}
