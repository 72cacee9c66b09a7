package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/domain"
)

// databaseFlags say which database a command works on: one that is there, or
// the embedded one of a data directory, which the command joins or starts.
type databaseFlags struct {
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"A PostgreSQL database, as postgres://user:password@host/name. Without it, the embedded one of --data-dir is used."`
	DataDir     string `name:"data-dir" default:"./data" type:"path" help:"Where the embedded database and the files are kept."`
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" help:"The folder of the PostgreSQL server's programs, where they are not in a usual place."`
}

// open opens a database whose tables are those of this version, and returns what
// closes it again. It changes no tables.
func (f databaseFlags) open(ctx context.Context, progress io.Writer) (*db.DB, func() error, error) {
	if err := f.there(); err != nil {
		return nil, nil, err
	}
	return f.opened(ctx, progress, nil, checkAll)
}

// lasting is how a process that serves until it is stopped uses the
// database.
type lasting struct {
	// log has slow statements, and that an embedded server ended meanwhile: it is
	// started again.
	log *slog.Logger
	// connections bounds those of the pool.
	connections int
	// tracer is shown every statement; nil is off.
	tracer pgx.QueryTracer
	// migrate makes the database where there is none, and brings its tables up to
	// date.
	migrate bool
}

// slowStatement is how long a statement takes that is logged.
const slowStatement = time.Second

// openLasting is open for what serves until it is stopped.
func (f databaseFlags) openLasting(ctx context.Context, progress io.Writer, use lasting) (*db.DB, func() error, error) {
	if use.migrate {
		return f.opened(ctx, progress, &use, func(ctx context.Context, d *db.DB) error {
			done, err := migrateAll(ctx, d)
			for _, clash := range done.Clashes {
				use.log.WarnContext(ctx, "a row clashes with another one", "clash", clash.String())
			}
			return err
		})
	}
	if err := f.there(); err != nil {
		return nil, nil, err
	}
	return f.opened(ctx, progress, &use, checkAll)
}

func (f databaseFlags) opened(
	ctx context.Context, progress io.Writer, use *lasting, prepare func(context.Context, *db.DB) error,
) (*db.DB, func() error, error) {
	d, shut, err := f.connect(ctx, progress, use)
	if err != nil {
		return nil, nil, err
	}
	if err := prepare(ctx, d); err != nil {
		return nil, nil, errors.Join(err, shut())
	}
	return d, shut, nil
}

// there reports an error where the data directory has no embedded database and
// one is asked for.
func (f databaseFlags) there() error {
	if f.DatabaseURL != "" {
		return nil
	}
	switch there, err := embedded.Exists(f.embeddedDir()); {
	case err != nil:
		return fmt.Errorf("look for a database: %w", err)
	case !there:
		return fmt.Errorf("there is no database here (%s): run serve or migrate first, or see --data-dir and "+
			"--database-url", f.DataDir)
	}
	return nil
}

func (f databaseFlags) embeddedDir() string { return filepath.Join(f.DataDir, "postgres") }

// connect opens the database, made where it is not there, without a look at the
// tables. For a lasting use, an embedded server is supervised until it is closed.
func (f databaseFlags) connect(ctx context.Context, progress io.Writer, use *lasting) (*db.DB, func() error, error) {
	url, stop := f.DatabaseURL, func() error { return nil }
	if url == "" {
		server, err := f.embedded(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		url, stop = server.URL(), server.Stop
		if use != nil {
			stop = f.supervise(ctx, server, use.log)
		}
	}
	var options []db.Option
	if use != nil {
		options = append(options, db.WithConns(use.connections))
		if use.log != nil {
			options = append(options, db.WithSlowLog(use.log, slowStatement))
		}
		if use.tracer != nil {
			options = append(options, db.WithTracer(use.tracer))
		}
	}
	d, err := db.Open(url, options...)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	if err := d.Ping(ctx); err != nil {
		return nil, nil, errors.Join(unreachable(err), d.Close(), stop())
	}
	return d, func() error { return errors.Join(d.Close(), stop()) }, nil
}

// unreachable is the error of a database that does not answer, in the words for
// an operator: callers of the API are told less.
func unreachable(err error) error {
	if known := domain.AsError(err); known.Cause != nil {
		err = known.Cause
	}
	return fmt.Errorf("%w\n(is the server running, and are --database-url, its user and its password right?)", err)
}

func (f databaseFlags) embedded(ctx context.Context, progress io.Writer) (*embedded.Server, error) {
	if err := os.MkdirAll(f.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return embedded.Start(ctx, f.server(progress))
}

func (f databaseFlags) server(progress io.Writer) embedded.Config {
	return embedded.Config{Dir: f.embeddedDir(), BinDir: f.PostgresBin, Log: progress}
}

// supervise starts the server again whenever it ends, and returns what stops
// that and gives the server up. It outlasts ctx: requests finish after it.
func (f databaseFlags) supervise(ctx context.Context, server *embedded.Server, log *slog.Logger) (stop func() error) {
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

// schemas are the parts of the program that have tables of their own.
func schemas() []schema {
	list := []schema{
		{"tables", func(ctx context.Context, d *db.DB) (int64, int64, error) { return migrate.SchemaVersion(ctx, d) }},
	}
	for _, e := range extensions {
		list = append(list, schema{e.name + "'s tables", e.version})
	}
	return list
}

// schema is the tables of a part of the program. version returns the one that
// they are at, 0 where there are none, and the one that is needed.
type schema struct {
	name    string
	version func(context.Context, *db.DB) (have, want int64, err error)
}

// outdated says which tables the command migrate has to change; nil where none.
// Tables of a newer version are an error.
func outdated(ctx context.Context, d *db.DB) (missing, err error) {
	for _, s := range schemas() {
		have, want, err := s.version(ctx, d)
		if err != nil {
			return nil, err
		}
		switch wrong := migrate.CheckVersion(s.name, have, want); {
		case errors.Is(wrong, migrate.ErrNewer):
			return nil, wrong
		case missing == nil:
			missing = wrong
		}
	}
	return missing, nil
}

// checkAll reports an error unless all tables are those of this version.
func checkAll(ctx context.Context, d *db.DB) error {
	missing, err := outdated(ctx, d)
	return errors.Join(missing, err)
}

// migrateAll brings the tables of the service and its extensions up to date,
// and returns what was done to the service's. Where nothing is missing it needs
// no right to change tables.
func migrateAll(ctx context.Context, d *db.DB) (done migrate.Migration, err error) {
	missing, err := outdated(ctx, d)
	if err != nil {
		return done, err
	}
	if missing != nil {
		if done, err = migrate.Up(ctx, d); err != nil {
			return done, err
		}
		for _, e := range extensions {
			if err := e.migrate(ctx, d); err != nil {
				return done, err
			}
		}
	}
	// The service's own templates may change without a migration.
	return done, d.LoadTemplates(ctx)
}

// closing closes what a command opened and keeps the first error.
func closing(shut func() error, err *error) {
	if e := shut(); e != nil && *err == nil {
		*err = e
	}
}
