// Package migrate brings the tables of a database to this version, tells at which one
// they are, and what a migration locks.
package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// Each migration runs in one transaction with the row that records it, so that
// a crash leaves it whole or not begun.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// migrationsTable records the migrations that were applied.
	migrationsTable = "schema_migrations"
	// earlierTable recorded those of the versions before 1.0, whose numbers mean other
	// migrations.
	earlierTable = "migrations"
)

// goStep is a migration in Go, as one that changes rows in batches.
type goStep struct {
	// Step says what it does to others: SQL files say it in their heads.
	Step
	version int64
	run     *goose.GoFunc
}

// chain is a list of migrations, in SQL and in Go.
type chain struct {
	sql  fs.FS
	inGo []goStep
}

// migrations are those of this version.
var migrations = chain{sql: files(migrationFiles)}

// files is the folder of the migrations in SQL.
func files(in fs.FS) fs.FS {
	sub, err := fs.Sub(in, "migrations")
	if err != nil {
		panic(err) // the name is valid
	}
	return sub
}

// Up brings the database to this version's tables, and returns the names of the
// migrations that were applied. Any number of processes may call it at once: they take
// turns under an advisory lock, which a crash releases. A migration that others keep from
// a lock is tried again.
func Up(ctx context.Context, d *db.DB) (applied []string, err error) {
	if applied, err = migrations.up(ctx, d); err != nil {
		return applied, err
	}
	return applied, d.EnsureSecrets(ctx)
}

func (c chain) up(ctx context.Context, d *db.DB) (applied []string, err error) {
	if _, _, err := c.version(ctx, d); err != nil {
		return nil, err
	}
	p, err := c.provider(d)
	if err != nil {
		return nil, err
	}
	for {
		var one *goose.MigrationResult
		err := pg.RetryLocked(ctx, func() (err error) {
			one, err = p.UpByOne(ctx)
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return applied, nil
		}
		if err != nil {
			return applied, d.TranslateError("migrate", err)
		}
		applied = append(applied, cmp.Or(one.Source.Path, c.goStep(one.Source.Version).Name))
	}
}

// goStep returns the Step of a migration in Go by its version; zero for one in SQL.
func (c chain) goStep(version int64) Step {
	for _, s := range c.inGo {
		if s.version == version {
			return s.Step
		}
	}
	return Step{}
}

// SchemaVersion returns the version that the tables are at, 0 where there are
// none, and the one that this program needs. Tables of before 1.0 are ErrEarlier. It
// changes nothing.
func SchemaVersion(ctx context.Context, d *db.DB) (have, want int64, err error) {
	return migrations.version(ctx, d)
}

func (c chain) version(ctx context.Context, d *db.DB) (have, want int64, err error) {
	p, err := c.provider(d)
	if err != nil {
		return 0, 0, err
	}
	sources := p.ListSources()
	want = sources[len(sources)-1].Version

	have, err = appliedVersion(ctx, d, migrationsTable)
	if err != nil || have > 0 {
		return have, want, err
	}
	// A program from before 1.0 that ran on this one's tables left its own table, empty.
	earlier, err := appliedVersion(ctx, d, earlierTable)
	if err == nil && earlier > 0 {
		err = ErrEarlier
	}
	return 0, want, err
}

// appliedVersion returns the last version in a table of migrations; 0 without that table.
func appliedVersion(ctx context.Context, d *db.DB, table string) (version int64, err error) {
	const doing = "read the state of the migrations"
	there, err := pg.One[bool](ctx, d, doing, pg.SQL("SELECT to_regclass(?) IS NOT NULL", table))
	if err != nil || !there {
		return 0, err
	}
	return pg.One[int64](ctx, d, doing, pg.SQL("SELECT coalesce(max(version_id), 0) FROM "+table))
}

// Migrated reports an error unless the tables are those of this version.
func Migrated(ctx context.Context, d *db.DB) error {
	have, want, err := SchemaVersion(ctx, d)
	if err != nil {
		return err
	}
	return CheckVersion("tables", have, want)
}

// ErrNewer is the error of tables that a newer program has changed.
var ErrNewer = errors.New("a newer version of this program has changed them: use that one")

// ErrEarlier is the error of a database of a version before 1.0.
var ErrEarlier = errors.New("the database is of a version before 1.0, which this program does not upgrade: " +
	"run the command export of that version, and import what it writes into a new database by this one. An export has no " +
	"keys, webhooks, directory connections, invites, reports, events, audit trail, risk history or settings of mail; " +
	"docs/versions.md says step by step what comes along and how")

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

func (c chain) provider(d *db.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	var inGo []*goose.Migration
	for _, s := range c.inGo {
		inGo = append(inGo, goose.NewGoMigration(s.version, s.run, nil))
	}
	return goose.NewProvider(goose.DialectPostgres, d.SQL(), c.sql, goose.WithGoMigrations(inGo...),
		goose.WithSessionLocker(patientLocker{locker}), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
}

// SchemaKey identifies this version's migrations by their contents, and those in
// Go by their names.
func SchemaKey() string {
	hash := sha256.New()
	for _, s := range migrations.inGo {
		hash.Write([]byte(s.Name))
	}
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
