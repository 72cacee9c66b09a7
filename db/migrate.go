package db

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"partnerapi/db/pg"
)

// Each migration runs in one transaction with the row that records it, so that
// a crash leaves it whole or not begun.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationsTable records the migrations that were applied.
const migrationsTable = "migrations"

// cursorSecret names the secret that list cursors are authenticated with.
const cursorSecret = "cursor"

// trackingSecret names the secret that the links in simulated mails are made
// with.
const trackingSecret = "tracking"

// Migrate brings the database to this version's tables and returns the names
// of the migrations that it applied. Any number of processes may call it at
// once: they take turns under an advisory lock, which a crash releases.
func (d *DB) Migrate(ctx context.Context) ([]string, error) {
	migrations, err := d.migrations()
	if err != nil {
		return nil, err
	}
	applied, err := migrations.Up(ctx)
	if err != nil {
		return nil, d.bad("migrate", err)
	}
	names := make([]string, len(applied))
	for i, m := range applied {
		names[i] = m.Source.Path
	}
	return names, d.ensureSecrets(ctx)
}

// SchemaVersion returns the version that the tables are at, 0 where there are
// none, and the one that this program needs. It changes nothing.
func (d *DB) SchemaVersion(ctx context.Context) (have, want int64, err error) {
	migrations, err := d.migrations()
	if err != nil {
		return 0, 0, err
	}
	sources := migrations.ListSources()
	want = sources[len(sources)-1].Version

	have, err = d.AppliedVersion(ctx, migrationsTable, "SELECT coalesce(max(version_id), 0) FROM "+migrationsTable)
	return have, want, err
}

// AppliedVersion is the number that a query of a table of migrations returns; 0
// where the table is not there.
func (d *DB) AppliedVersion(ctx context.Context, table, query string) (version int64, err error) {
	var there bool
	err = d.SQL().QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there)
	if err == nil && there {
		err = d.SQL().QueryRowContext(ctx, query).Scan(&version)
	}
	return version, d.bad("read the state of the migrations", err)
}

// Migrated reports an error unless the tables are those of this version.
func (d *DB) Migrated(ctx context.Context) error {
	have, want, err := d.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	return CheckVersion("tables", have, want)
}

// ErrNewer is the error of tables that a newer program has changed.
var ErrNewer = errors.New("a newer version of this program has changed them: use that one")

// CheckVersion reports an error, in words for an operator, unless what is named
// is at the version that this program needs.
func CheckVersion(what string, have, want int64) error {
	switch {
	case have > want:
		return fmt.Errorf("the %s are at version %d and this program knows %d: %w", what, have, want, ErrNewer)
	case have == 0:
		return fmt.Errorf("the %s are not there: run the command migrate first", what)
	case have < want:
		return fmt.Errorf("the %s are at version %d and this program needs %d: run the command migrate first", what, have, want)
	}
	return nil
}

func (d *DB) migrations() (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, d.SQL(), files,
		goose.WithSessionLocker(locker), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
}

// SchemaKey identifies this version's migrations by their contents.
func SchemaKey() string {
	hash := sha256.New()
	err := fs.WalkDir(migrationFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := migrationFiles.ReadFile(path)
		hash.Write([]byte(path))
		hash.Write(text)
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

func (d *DB) ensureSecrets(ctx context.Context) error {
	for _, name := range []string{cursorSecret, trackingSecret} {
		secret := make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, d, "make the "+name+" secret",
			pg.SQL("INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, secret))
		if err != nil {
			return err
		}
	}
	return nil
}

// CursorSecret returns the secret that list cursors are authenticated with. It
// is the same for every process on this database.
func (d *DB) CursorSecret(ctx context.Context) ([]byte, error) { return d.secret(ctx, cursorSecret) }

// TrackingSecret returns the secret that the links in simulated mails are made
// with. It is the same for every process on this database.
func (d *DB) TrackingSecret(ctx context.Context) ([]byte, error) {
	return d.secret(ctx, trackingSecret)
}

func (d *DB) secret(ctx context.Context, name string) ([]byte, error) {
	doing := "read the " + name + " secret"
	secret, err := pg.One[[]byte](ctx, d, doing, pg.SQL("SELECT value FROM secrets WHERE name = ?", name))
	if err == nil && len(secret) == 0 {
		err = errors.New(doing + ": it is empty")
	}
	return secret, err
}
