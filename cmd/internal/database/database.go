// Package database opens and closes the database for commands, and has what else they
// share of it: its migrations, clients and partners by name, entries of the audit trail,
// and the key of its secrets.
package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Flags say which database a command works on: one that is there, or
// the embedded one of a data directory, which the command joins or starts.
type Flags struct {
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"A PostgreSQL database, as postgres://user:password@host/name. Without it, the embedded one of --data-dir is used."`
	DirectURL   string `name:"direct-database-url" placeholder:"URL" help:"PostgreSQL itself, where --database-url leads to a pooler in transaction mode: for LISTEN, locks of a session and migrations."`
	ReplicaURL  string `name:"replica-url" placeholder:"URL" help:"A standby of --database-url. Reports, exports and the figures of metrics are read from it while it keeps up, and everything else from the primary."`
	DataDir     string `name:"data-dir" default:"./data" type:"path" help:"Where the embedded database and the files are kept."`
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" help:"The folder of the PostgreSQL server's programs, where they are not in a usual place."`
}

// With opens a database whose tables are those of this version for the work of a
// command, and closes it after that. It changes no tables.
func (f Flags) With(ctx context.Context, s cli.Env, work func(*db.DB) error) error {
	if err := f.There(); err != nil {
		return err
	}
	return f.WithAny(ctx, s, func(d *db.DB) error {
		if err := checkAll(ctx, d, s.Tables); err != nil {
			return err
		}
		return work(d)
	})
}

// WithAny is With for a database whose tables may be of any version. It makes the
// embedded one where it is not there.
func (f Flags) WithAny(ctx context.Context, s cli.Env, work func(*db.DB) error) (err error) {
	d, shut, err := f.Connect(ctx, s.Err, nil)
	if err != nil {
		return err
	}
	defer Closing(shut, &err)
	return work(d)
}

// Lasting is how a process that serves until it is stopped uses the
// database.
type Lasting struct {
	// Log has slow statements, and that an embedded server ended meanwhile: it is
	// started again.
	Log *slog.Logger
	// Connections bounds those of the pool.
	Connections int
	// Tracer is shown every statement; nil is off.
	Tracer pgx.QueryTracer
	// Migrate makes the database where there is none, and brings its tables up to
	// date.
	Migrate bool
}

// prepare brings the tables up to date.
func (use Lasting) prepare(ctx context.Context, d *db.DB, more []cli.Tables) error {
	done, err := MigrateAll(ctx, d, more)
	for _, clash := range done.Clashes {
		use.Log.WarnContext(ctx, "a row clashes with another one", "clash", clash.String())
	}
	return err
}

// slowStatement is how long a statement takes that is logged.
const slowStatement = time.Second

// OpenLasting opens a database for what serves until it is stopped, and returns what
// closes it.
func (f Flags) OpenLasting(ctx context.Context, s cli.Env, use Lasting) (*db.DB, func() error, error) {
	prepare := use.prepare
	if !use.Migrate {
		if err := f.There(); err != nil {
			return nil, nil, err
		}
		prepare = checkAll
	}
	d, shut, err := f.Connect(ctx, s.Err, &use)
	if err != nil {
		return nil, nil, err
	}
	if err := prepare(ctx, d, s.Tables); err != nil {
		return nil, nil, errors.Join(err, shut())
	}
	return d, shut, nil
}

// There reports an error where the data directory has no embedded database and
// one is asked for.
func (f Flags) There() error {
	if f.DatabaseURL != "" {
		return nil
	}
	switch there, err := embedded.Exists(f.EmbeddedDir()); {
	case err != nil:
		return fmt.Errorf("look for a database: %w", err)
	case !there:
		return fmt.Errorf("there is no database here (%s): run serve or migrate first, or see --data-dir and "+
			"--database-url", f.DataDir)
	}
	return nil
}

// EmbeddedDir is the folder of the embedded database.
func (f Flags) EmbeddedDir() string { return filepath.Join(f.DataDir, "postgres") }

// Connect opens the database, made where it is not there, without a look at the
// tables. For a lasting use, an embedded server is supervised until it is closed.
func (f Flags) Connect(ctx context.Context, progress io.Writer, use *Lasting) (*db.DB, func() error, error) {
	found, err := f.FindPooler(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := f.CheckPooler(ctx, found); err != nil {
		return nil, nil, err
	}
	return f.ConnectBehind(ctx, found, progress, use)
}

// FindPooler says what --database-url leads to.
func (f Flags) FindPooler(ctx context.Context) (pg.Pooler, error) {
	if f.DatabaseURL == "" {
		return pg.NoPooler, nil
	}
	found, err := pg.FindPooler(ctx, f.DatabaseURL)
	if err != nil {
		err = Unreachable(fmt.Errorf("reach the database: %w", err))
	}
	return found, err
}

// PastPooler are the ways to do with a pooler in transaction mode.
const PastPooler = "give the address of PostgreSQL itself by --direct-database-url, or set the pooler to pool_mode = session"

// CheckPooler refuses a pooler in transaction mode without a way past it. Of a
// pooler, what it says ends with PastPooler.
func (f Flags) CheckPooler(ctx context.Context, found pg.Pooler) error {
	if f.DirectURL == "" {
		if found.Shared() {
			return errors.New("--database-url leads to a pooler in transaction mode: " + PastPooler)
		}
		return nil
	}
	if f.DatabaseURL == "" {
		return errors.New("--direct-database-url goes with --database-url")
	}
	direct, err := pg.FindPooler(ctx, f.DirectURL)
	switch {
	case err != nil:
		return fmt.Errorf("--direct-database-url: %w: %s", err, PastPooler)
	case direct.Shared():
		return errors.New("--direct-database-url leads to a pooler in transaction mode: " + PastPooler)
	}
	return nil
}

// ConnectBehind is Connect behind what was found.
func (f Flags) ConnectBehind(
	ctx context.Context, found pg.Pooler, progress io.Writer, use *Lasting,
) (*db.DB, func() error, error) {
	url, stop := f.DatabaseURL, func() error { return nil }
	if url == "" {
		if f.ReplicaURL != "" {
			return nil, nil, errors.New("--replica-url goes with --database-url")
		}
		server, err := f.embedded(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		url, stop = server.URL(), server.Stop
		if use != nil {
			stop = f.supervise(ctx, server, use.Log)
		}
	}
	options, log := []db.Option{db.WithPooler(found, f.DirectURL)}, output.NewLog(progress, slog.LevelInfo, "text")
	if use != nil {
		options = append(options, db.WithConns(use.Connections))
		if use.Log != nil {
			log = use.Log
			options = append(options, db.WithSlowLog(log, slowStatement))
		}
		if use.Tracer != nil {
			options = append(options, db.WithTracer(use.Tracer))
		}
	}
	if f.ReplicaURL != "" {
		options = append(options, db.WithReplica(f.ReplicaURL, log))
	}
	d, err := db.Open(url, options...)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	if err := d.Ping(ctx); err != nil {
		return nil, nil, errors.Join(Unreachable(err), d.Close(), stop())
	}
	if f.DirectURL != "" {
		if err := sameDatabase(ctx, d); err != nil {
			return nil, nil, errors.Join(err, d.Close(), stop())
		}
	}
	return d, func() error { return errors.Join(d.Close(), stop()) }, nil
}

// sameDatabase reports an error unless a lock that is held by way of --direct-database-url
// is seen by way of --database-url.
func sameDatabase(ctx context.Context, d *db.DB) error {
	name := rand.Text()
	return d.WithAdvisoryLock(ctx, name, func(ctx context.Context) error {
		free, err := pg.One[bool](ctx, d, "compare the databases",
			pg.SQL("SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))", name))
		if err == nil && free {
			err = errors.New("--direct-database-url leads to another database than --database-url")
		}
		return err
	})
}

// Unreachable is the error of a database that does not answer, in the words for
// an operator: callers of the API are told less.
func Unreachable(err error) error {
	if known := domain.AsError(err); known.Cause != nil {
		err = known.Cause
	}
	return fmt.Errorf("%w\n(is the server running, and are --database-url, its user and its password right?)", err)
}

func (f Flags) embedded(ctx context.Context, progress io.Writer) (*embedded.Server, error) {
	if err := os.MkdirAll(f.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return embedded.Start(ctx, f.server(progress))
}

func (f Flags) server(progress io.Writer) embedded.Config {
	return embedded.Config{Dir: f.EmbeddedDir(), BinDir: f.PostgresBin, Log: progress}
}

// supervise starts the server again whenever it ends, and returns what stops
// that and gives the server up. It outlasts ctx: requests finish after it.
func (f Flags) supervise(ctx context.Context, server *embedded.Server, log *slog.Logger) (stop func() error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Supervise(watching, f.server(nil), log)
	}()
	return func() error {
		cancel()
		<-ended
		return server.Stop()
	}
}

// Outdated says which tables the command migrate has to change, of the service's own
// and more; nil where none. Tables of a newer version are an error.
func Outdated(ctx context.Context, d *db.DB, more []cli.Tables) (missing, err error) {
	own := cli.Tables{Name: "tables", Version: func(ctx context.Context, d *db.DB) (int64, int64, error) { return migrate.SchemaVersion(ctx, d) }}
	for _, s := range append([]cli.Tables{own}, more...) {
		have, want, err := s.Version(ctx, d)
		if err != nil {
			return nil, err
		}
		switch wrong := migrate.CheckVersion(s.Name, have, want); {
		case errors.Is(wrong, migrate.ErrNewer):
			return nil, wrong
		case missing == nil:
			missing = wrong
		}
	}
	return missing, nil
}

// checkAll reports an error unless all tables are those of this version.
func checkAll(ctx context.Context, d *db.DB, more []cli.Tables) error {
	missing, err := Outdated(ctx, d, more)
	return errors.Join(missing, err)
}

// MigrateAll brings the tables of the service and more up to date, and returns
// what was done to the service's. Where nothing is missing it needs
// no right to change tables.
func MigrateAll(ctx context.Context, d *db.DB, more []cli.Tables) (done migrate.Migration, err error) {
	missing, err := Outdated(ctx, d, more)
	if err != nil {
		return done, err
	}
	if missing != nil {
		if done, err = migrate.Up(ctx, d); err != nil {
			return done, err
		}
		for _, t := range more {
			if err := t.Migrate(ctx, d); err != nil {
				return done, err
			}
		}
	}
	// The service's own templates may change without a migration.
	return done, d.LoadTemplates(ctx)
}

// Closing closes what a command opened and keeps the first error.
func Closing(shut func() error, err *error) {
	if e := shut(); e != nil && *err == nil {
		*err = e
	}
}
