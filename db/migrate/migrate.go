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
	"slices"

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

// migrationsTable records the migrations that were applied.
const migrationsTable = "migrations"

// Migration is what Up did.
type Migration struct {
	// Applied are the names of the migrations that were applied.
	Applied []string
	// Clashes are rows that an operator should look at.
	Clashes []Clash
}

// Up brings the database to this version's tables. Any number of processes
// may call it at once: they take turns under an advisory lock, which a crash
// releases. A migration that others keep from a lock is tried again.
func Up(ctx context.Context, d *db.DB) (done Migration, err error) {
	migrations, err := provider(d)
	if err != nil {
		return Migration{}, err
	}
	for {
		var applied *goose.MigrationResult
		err := pg.RetryLocked(ctx, func() (err error) {
			applied, err = migrations.UpByOne(ctx)
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			break
		}
		if err != nil {
			return done, d.TranslateError("migrate", err)
		}
		done.Applied = append(done.Applied, cmp.Or(applied.Source.Path, goStep(applied.Source.Version).Name))
	}
	if slices.Contains(done.Applied, keysName) {
		if done.Clashes, err = Clashes(ctx, d); err != nil {
			return done, err
		}
	}
	return done, d.EnsureSecrets(ctx)
}

// SchemaVersion returns the version that the tables are at, 0 where there are
// none, and the one that this program needs. It changes nothing.
func SchemaVersion(ctx context.Context, d *db.DB) (have, want int64, err error) {
	migrations, err := provider(d)
	if err != nil {
		return 0, 0, err
	}
	sources := migrations.ListSources()
	want = sources[len(sources)-1].Version

	have, err = AppliedVersion(ctx, d, migrationsTable, "SELECT coalesce(max(version_id), 0) FROM "+migrationsTable)
	return have, want, err
}

// AppliedVersion is the number that a query of a table of migrations returns; 0
// where the table is not there.
func AppliedVersion(ctx context.Context, d *db.DB, table, query string) (version int64, err error) {
	const doing = "read the state of the migrations"
	there, err := pg.One[bool](ctx, d, doing, pg.SQL("SELECT to_regclass(?) IS NOT NULL", table))
	if err != nil || !there {
		return 0, err
	}
	return pg.One[int64](ctx, d, doing, pg.SQL(query))
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

// provider are those of migrations/ and those in Go.
func provider(d *db.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, d.SQL(), files,
		goose.WithSessionLocker(patientLocker{locker}), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(keysMigration(), supersededMigration()))
}

// SchemaKey identifies this version's migrations by their contents, and those in
// Go by their names.
func SchemaKey() string {
	hash := sha256.New()
	hash.Write([]byte(keysName + supersededName))
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
