package idmap

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"partnerapi/db/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateLock is the key of the advisory lock that each of the registry's migrations
// takes: "idmap" in ASCII.
const migrateLock = 0x69646d6170

// Migrate brings the registry's own tables up to date. The tables of the six kinds must
// exist, and be empty the first time: objects get their numbers when they are created.
// Each migration runs once, in one transaction with its row in idmap_migrations, even if
// several processes call Migrate concurrently. A migration that cannot get a lock is
// retried.
func Migrate(ctx context.Context, db *sql.DB) error {
	scripts, err := Scripts(ctx, db)
	if err != nil {
		return err
	}
	for _, s := range scripts {
		if err := pg.RetryLocked(ctx, func() error { return migrateOne(ctx, db, s.Name, s.Text) }); err != nil {
			return fmt.Errorf("migrate the registry, %s: %w", s.Name, err)
		}
	}
	return nil
}

// Script is one of the registry's migrations.
type Script struct {
	Name, Text string
	Applied    bool
}

// Scripts returns the registry's migrations in their order. It does not change the
// database.
func Scripts(ctx context.Context, db *sql.DB) (scripts []Script, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the registry's migrations: %w", err)
	}
	have, _, err := SchemaVersion(ctx, db)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		scripts = append(scripts, Script{Name: name[len("migrations/"):], Text: string(text), Applied: int64(i) < have})
	}
	return scripts, nil
}

// migrateOne applies one migration unless it was applied before. It uses a lock of the
// transaction, which the server releases, with a rollback, if the process dies.
func migrateOne(ctx context.Context, db *sql.DB, name, script string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after a commit
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, int64(migrateLock)); err != nil {
		return err
	}

	if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '"+pg.LockTimeout+"'"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS idmap_migrations (
		name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`); err != nil {
		return err
	}
	var applied bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM idmap_migrations WHERE name = $1)`, name).Scan(&applied)
	if err != nil || applied {
		return err
	}

	// Without arguments the driver sends the whole text at once, which may have several
	// statements.
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO idmap_migrations (name) VALUES ($1)`, name); err != nil {
		return err
	}
	return tx.Commit()
}
