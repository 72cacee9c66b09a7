// Package migrate migrates the tables of a database to this version, and reports their
// version and the locks of migrations.
package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
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

// Each migration runs in one transaction with the row that records it, so that after a
// crash it is applied completely or not at all.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// migrationsTable records the migrations that were applied.
	migrationsTable = "schema_migrations"
	// earlierTable recorded the migrations of versions before 1.0, whose numbers belong to other migrations.
	earlierTable = "migrations"
)

// goStep is a migration in Go, such as one that changes rows in batches.
type goStep struct {
	// Step describes the migration, as the head of an SQL file does.
	Step
	version int64
	run     func(context.Context, *db.DB) error // in its own transactions
}

// chain is a list of migrations, in SQL and in Go.
type chain struct {
	sql  fs.FS
	inGo []goStep
}

// migrations is the chain of this version.
var migrations = chain{sql: files(migrationFiles), inGo: []goStep{keyEmails, settleAudit}}

// keyEmails computes the keys of the addresses that are not in plain ASCII, in batches. The indexes of the keys exist,
// so that it finds keys that several rows of a client have: one claims the key, and the others share it.
var keyEmails = goStep{
	Step: Step{Name: "00005_key_emails.go", Locks: []Lock{
		{Table: "users", Mode: "ROW EXCLUSIVE"}, {Table: "admins", Mode: "ROW EXCLUSIVE"}, {Table: "admin_invites", Mode: "ROW EXCLUSIVE"},
	}},
	version: 5,
	run:     func(ctx context.Context, d *db.DB) error { return d.KeyEmails(ctx) },
}

// settleAudit completes the entries of the audit trail of release 1.0, in batches.
var settleAudit = goStep{
	Step:    Step{Name: "00023_settle_audit.go", Locks: []Lock{{Table: "audit_entries", Mode: "ROW EXCLUSIVE"}}},
	version: 23,
	run:     func(ctx context.Context, d *db.DB) error { return d.SettleAudit(ctx) },
}

// files returns the folder migrations of a file system.
func files(in fs.FS) fs.FS {
	sub, err := fs.Sub(in, "migrations")
	if err != nil {
		panic(err) // the name is valid
	}
	return sub
}

// Up applies the migrations that were not applied yet, and creates missing secrets. It returns the names of the
// migrations that it applied, also with an error. Any number of processes may call it concurrently: they take turns
// with an advisory lock, which the server releases after a crash. A migration that cannot get a lock is retried.
func Up(ctx context.Context, d *db.DB) (applied []string, err error) {
	if applied, err = migrations.up(ctx, d); err != nil {
		return applied, err
	}
	return applied, d.EnsureSecrets(ctx)
}

// up applies the migrations of the chain that were not applied yet, and returns their names.
func (c chain) up(ctx context.Context, d *db.DB) (applied []string, err error) {
	have, _, err := c.version(ctx, d)
	if err != nil { // the tables are of a version before 1.0, for example
		return nil, err
	}
	if have == 0 {
		if err := checkEncoding(ctx, d); err != nil {
			return nil, err
		}
	}
	p, err := c.provider(d)
	if err != nil {
		return nil, err
	}
	for {
		var result *goose.MigrationResult
		err := pg.RetryLocked(ctx, func() (err error) {
			result, err = p.UpByOne(ctx)
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return applied, nil
		}
		if err != nil {
			return applied, d.TranslateError("migrate", err)
		}
		applied = append(applied, cmp.Or(result.Source.Path, c.goStep(result.Source.Version).Name)) // one in Go has no path
	}
}

// Encoding is the only encoding of a database in which the service creates tables.
const Encoding = "UTF8"

// checkEncoding returns an error unless the database, which has no tables yet, can store every character.
func checkEncoding(ctx context.Context, d *db.DB) error {
	found, err := pg.One[string](ctx, d, "read the database's encoding", pg.SQL("SELECT current_setting('server_encoding')"))
	if err == nil && found != Encoding {
		err = fmt.Errorf("the encoding of this empty database is %s and must be %s; drop it and create it again with "+
			"createdb --encoding=UTF8 --template=template0", found, Encoding)
	}
	return err
}

// goStep returns the Step of the migration in Go with a version; the zero Step if that migration is in SQL.
func (c chain) goStep(version int64) Step {
	for _, s := range c.inGo {
		if s.version == version {
			return s.Step
		}
	}
	return Step{}
}

// SchemaVersion returns the version of the tables, 0 without tables, and the version that this program needs. The error
// is ErrEarlier for tables of a version before 1.0. It does not change the database.
func SchemaVersion(ctx context.Context, d *db.DB) (have, want int64, err error) {
	return migrations.version(ctx, d)
}

// version returns the version of the tables, 0 without tables, and that of the chain's last migration. The error is
// ErrEarlier for tables of a version before 1.0.
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
	// An empty earlierTable does not count: a program of a version before 1.0 that was
	// started with the tables of this version created it.
	earlier, err := appliedVersion(ctx, d, earlierTable)
	if err == nil && earlier > 0 {
		err = ErrEarlier
	}
	return 0, want, err
}

// appliedVersion returns the last version in a table of migrations; 0 without that table.
func appliedVersion(ctx context.Context, d *db.DB, table string) (version int64, err error) {
	const action = "read the state of the migrations"
	exists, err := pg.One[bool](ctx, d, action, pg.SQL("SELECT to_regclass(?) IS NOT NULL", table))
	if err != nil || !exists {
		return 0, err
	}
	return pg.One[int64](ctx, d, action, pg.SQL("SELECT coalesce(max(version_id), 0) FROM "+table))
}

// CheckMigrated returns an error unless the tables are at the version that this program needs.
func CheckMigrated(ctx context.Context, d *db.DB) error {
	have, want, err := SchemaVersion(ctx, d)
	if err != nil {
		return err
	}
	return CheckVersion("tables", have, want)
}

// ErrNewer is the error of tables that a newer version of the program has migrated.
var ErrNewer = errors.New("a newer version of this program has changed them; use that version")

// ErrEarlier is the error of a database with the tables of a version before 1.0.
var ErrEarlier = errors.New("the database is from a version before 1.0, which this program does not upgrade; " +
	"run the command export of that version, and import its output into a new database with this version. An export contains no " +
	"keys, webhooks, directory connections, invites, reports, events, audit trail, risk history or email settings; " +
	"docs/versions.md describes what is migrated, step by step")

// CheckVersion returns an error, in words for an operator, unless have is the version
// want, which this program needs. what names the thing with the version, such as tables.
func CheckVersion(what string, have, want int64) error {
	switch {
	case have > want:
		return fmt.Errorf("the %s are at version %d, but this program supports %d: %w", what, have, want, ErrNewer)
	case have == 0:
		return fmt.Errorf("the %s do not exist; run partnerapi migrate first", what)
	case have < want:
		return fmt.Errorf("the %s are at version %d, but this program needs %d; run partnerapi migrate first", what, have, want)
	}
	return nil
}

// provider returns the migrations of the chain as a provider of goose.
func (c chain) provider(d *db.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // each second, up to 5 minutes
	if err != nil {
		return nil, err
	}
	var inGo []*goose.Migration
	for _, s := range c.inGo {
		run := func(ctx context.Context, _ *sql.DB) error { return s.run(ctx, d) }
		inGo = append(inGo, goose.NewGoMigration(s.version, &goose.GoFunc{RunDB: run}, nil /* no way down */))
	}
	return goose.NewProvider(goose.DialectPostgres, d.SQL(), c.sql, goose.WithGoMigrations(inGo...),
		goose.WithSessionLocker(timeoutLocker{locker}), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
}

// SchemaKey returns a key that changes with the paths and contents of the migrations in
// SQL, and with the names of those in Go.
func SchemaKey() string {
	hash := sha256.New()
	for _, s := range migrations.inGo {
		hash.Write([]byte(s.Name))
	}
	paths, _ := fs.Glob(migrationFiles, "migrations/*.sql") // the pattern is valid
	for _, path := range paths {
		text, err := migrationFiles.ReadFile(path)
		if err != nil {
			panic(err) // the files are part of the program
		}
		hash.Write([]byte(path))
		hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
