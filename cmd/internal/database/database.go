// Package database opens the database for commands. It also has what commands share for their work on it: migrations,
// the look-up of clients and partners by name, entries of the audit trail, and the encryption key.
package database

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Flags select a command's database: a given one, or the embedded one of a data directory, which it joins or starts.
type Flags struct {
	DatabaseURL string `name:"database-url" placeholder:"URL" group:"database" brief:"PostgreSQL database. Default: the embedded one." help:"PostgreSQL database, as postgres://user:password@host/name. Default: the embedded database in --data-dir."`
	DirectURL   string `name:"direct-database-url" placeholder:"URL" group:"database" brief:"Direct URL, if --database-url is a pooler." help:"Direct URL of PostgreSQL, for LISTEN, session locks and migrations. Required if --database-url leads to a pooler such as PgBouncer."`
	Prepares    bool   `name:"pooler-prepares" group:"database" brief:"Use prepared statements with the pooler." help:"Use prepared statements with the pooler at --database-url, so that frequent queries keep their plans. The pooler must support prepared statements, as PgBouncer 1.21 and later do if max_prepared_statements is above 0."`
	ReplicaURL  string `name:"replica-url" placeholder:"URL" group:"database" brief:"Standby to read reports and exports from." help:"Standby for --database-url. Reports, exports and metrics are read from the standby while it keeps up. Everything else is read from the primary."`
	DataDir     string `name:"data-dir" default:"./data" type:"path" group:"database" brief:"Folder for the embedded database and files." help:"Folder for the embedded database and the service's files."`
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" group:"database" brief:"Folder with PostgreSQL's programs." help:"Folder that contains the PostgreSQL server's programs, if they are not in a standard location."`
}

// With opens the database, runs work, and closes it. It returns an error if the tables are not at the version that this
// program needs, or if the embedded database does not exist: it changes no tables, and creates no database.
func (f Flags) With(ctx context.Context, s cli.Env, work func(*db.DB) error) error {
	if err := f.CheckExists(); err != nil {
		return err
	}
	return f.WithAny(ctx, s, func(d *db.DB) error {
		if err := doctor.CheckTables(ctx, d, s.Tables...); err != nil {
			return err
		}
		return work(d)
	})
}

// WithAny opens the database, with tables of any version, runs work, and closes it. It creates a missing embedded one.
func (f Flags) WithAny(ctx context.Context, s cli.Env, work func(*db.DB) error) (err error) {
	d, shut, err := f.Connect(ctx, s.Err, nil) // nil: for a command
	if err != nil {
		return err
	}
	defer CloseInto(shut, &err)
	return ExplainDenied(d, work(d))
}

// ServeOptions configure the database of a long-running process.
type ServeOptions struct {
	// Log gets slow statements, and restarts of an embedded server that ended.
	Log *slog.Logger
	// Connections is the maximum size of the pool.
	Connections int
	// Tracer is called for every statement; nil means off.
	Tracer pgx.QueryTracer
	// Migrate creates the embedded database if it does not exist, and migrates the tables.
	Migrate bool
}

// slowStatement is the duration from which statements are logged.
const slowStatement = time.Second

// OpenForServe opens the database of a long-running process, and returns a function that closes it. Without Migrate,
// tables of another version are an error.
func (f Flags) OpenForServe(ctx context.Context, s cli.Env, serveOptions ServeOptions) (*db.DB, func() error, error) {
	if !serveOptions.Migrate {
		if err := f.CheckExists(); err != nil {
			return nil, nil, err
		}
	}
	d, shut, err := f.Connect(ctx, s.Err, &serveOptions)
	if err != nil {
		return nil, nil, err
	}
	if serveOptions.Migrate {
		_, err = MigrateAll(ctx, d, s.Tables)
	} else {
		err = doctor.CheckTables(ctx, d, s.Tables...)
	}
	if err == nil {
		err = warnOfEncoding(ctx, d, serveOptions.Log)
	}
	if err != nil {
		return nil, nil, errors.Join(ExplainDenied(d, err), shut())
	}
	return d, shut, nil
}

// EncodingHint explains how to leave an encoding other than UTF8.
const EncodingHint = "restore a dump of the database into one with the encoding UTF8 (docs/operating.md, Encoding)"

// warnOfEncoding logs a warning if the database, which has tables, cannot store every character.
func warnOfEncoding(ctx context.Context, d *db.DB, log *slog.Logger) error {
	server, err := doctor.ReadServer(ctx, d)
	if err == nil && server.Encoding != migrate.Encoding {
		log.WarnContext(ctx, "the database cannot store every character; "+EncodingHint, "encoding", server.Encoding)
	}
	return err
}

// CheckExists returns an error if the flags select the embedded database and it does not exist.
func (f Flags) CheckExists() error {
	if f.DatabaseURL != "" {
		return nil
	}
	switch exists, err := embedded.Exists(f.EmbeddedDir()); {
	case err != nil:
		return fmt.Errorf("look for a database: %w", err)
	case !exists:
		return fmt.Errorf("there is no database in %s; run serve or migrate first, or set --data-dir or "+
			"--database-url", f.DataDir)
	}
	return nil
}

// EmbeddedDir returns the folder of the embedded database.
func (f Flags) EmbeddedDir() string { return filepath.Join(f.DataDir, "postgres") }

// Connect opens the database without checking its tables, and returns a function that closes it. It creates the
// embedded database if that does not exist. serveOptions are nil for a command; otherwise an embedded server is
// restarted whenever it ends.
func (f Flags) Connect(
	ctx context.Context, progress io.Writer, serveOptions *ServeOptions,
) (*db.DB, func() error, error) {
	pooled, err := f.HasPooler(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := f.CheckPooler(ctx, pooled); err != nil {
		return nil, nil, err
	}
	return f.ConnectVia(ctx, pooled, progress, serveOptions)
}

// HasPooler reports whether --database-url leads to a pooler, and not to PostgreSQL itself.
func (f Flags) HasPooler(ctx context.Context) (bool, error) {
	if f.DatabaseURL == "" {
		return false, nil
	}
	pooled, err := pg.HasPooler(ctx, f.DatabaseURL)
	if err != nil {
		err = UnreachableError(fmt.Errorf("connect to the database: %w", err))
	}
	return pooled, err
}

// PoolerHint explains how to use a pooler.
const PoolerHint = "set --direct-database-url to the URL of PostgreSQL itself"

// CheckPooler returns an error if pooled is true, for --database-url, and --direct-database-url is missing. It also
// rejects a --direct-database-url without --database-url, one that cannot be reached, and one that leads to a pooler.
// Its errors about a pooler end with PoolerHint.
func (f Flags) CheckPooler(ctx context.Context, pooled bool) error {
	switch {
	case f.DirectURL == "" && pooled:
		return errors.New("--database-url leads to a pooler: " + PoolerHint)
	case f.DirectURL == "":
		return nil
	case f.DatabaseURL == "":
		return errors.New("--direct-database-url requires --database-url")
	}
	direct, err := pg.HasPooler(ctx, f.DirectURL)
	switch {
	case err != nil:
		return fmt.Errorf("--direct-database-url: %w: %s", err, PoolerHint)
	case direct:
		return errors.New("--direct-database-url leads to a pooler: " + PoolerHint)
	}
	return nil
}

// ConnectVia opens the database, by way of a pooler if pooled is true, and returns a function that closes it. It checks
// neither the pooler nor the tables. That there is a --direct-database-url is enough for a pooler. serveOptions are nil
// for a command.
func (f Flags) ConnectVia(
	ctx context.Context, pooled bool, progress io.Writer, serveOptions *ServeOptions,
) (*db.DB, func() error, error) {
	url, stop := f.DatabaseURL, func() error { return nil }
	if url == "" {
		if f.ReplicaURL != "" {
			return nil, nil, errors.New("--replica-url requires --database-url")
		}
		server, err := f.startEmbedded(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		url, stop = server.URL(), server.Stop
		if serveOptions != nil {
			stop = f.supervise(ctx, server, serveOptions.Log)
		}
	}
	options, log := []db.Option{}, output.NewLog(progress, slog.LevelInfo, "text")
	if pooled || f.DirectURL != "" {
		options = append(options, db.WithPooler(f.DirectURL, f.Prepares))
	}
	if serveOptions != nil {
		log = serveOptions.Log
		options = append(options, db.WithConns(serveOptions.Connections), db.WithSlowLog(log, slowStatement), db.WithStepLog(log))
		if serveOptions.Tracer != nil {
			options = append(options, db.WithTracer(serveOptions.Tracer))
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
		return nil, nil, errors.Join(UnreachableError(err), d.Close(), stop())
	}
	if f.DirectURL != "" {
		if err := checkSameDatabase(ctx, d); err != nil {
			return nil, nil, errors.Join(err, d.Close(), stop())
		}
	}
	return d, func() error { return errors.Join(d.Close(), stop()) }, nil
}

// checkSameDatabase returns an error unless --direct-database-url and --database-url lead to the same database: a lock
// that is held through the first must be visible through the second.
func checkSameDatabase(ctx context.Context, d *db.DB) error {
	name := rand.Text()
	return d.WithAdvisoryLock(ctx, name, func(ctx context.Context) error {
		free, err := pg.One[bool](ctx, d, "compare the databases",
			pg.SQL("SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))", name))
		if err == nil && free {
			err = errors.New("--direct-database-url and --database-url lead to different databases")
		}
		return err
	})
}

// UnreachableError returns an error for operators from the error of a database that cannot be reached: its cause, which
// API callers do not get, and a hint.
func UnreachableError(err error) error {
	if known := domain.AsError(err); known.Cause != nil {
		err = known.Cause
	}
	return fmt.Errorf("%w\n(is the server running, and are --database-url, its user and its password correct?)", pg.DecisiveFailure(err))
}

// startEmbedded starts the embedded server, or joins a running one.
func (f Flags) startEmbedded(ctx context.Context, progress io.Writer) (*embedded.Server, error) {
	if err := os.MkdirAll(f.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("--data-dir: create the data directory: %w", err)
	}
	server, err := embedded.Start(ctx, f.embeddedConfig(progress))
	if fault, ok := errors.AsType[*fs.PathError](err); ok && f.holds(fault.Path) {
		err = fmt.Errorf("--data-dir: %w", err)
	}
	return server, err
}

// holds reports whether a path is below the data directory.
func (f Flags) holds(path string) bool {
	dir, err := filepath.Abs(f.DataDir)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

// embeddedConfig returns the configuration of the embedded server, which prints its start to progress.
func (f Flags) embeddedConfig(progress io.Writer) embedded.Config {
	return embedded.Config{Dir: f.EmbeddedDir(), BinDir: f.PostgresBin, Log: progress}
}

// supervise restarts the server whenever it ends, until the returned function is called, which also stops the server.
// The end of ctx does not end it, as requests are finished afterwards.
func (f Flags) supervise(ctx context.Context, server *embedded.Server, log *slog.Logger) (stop func() error) {
	superviseCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Supervise(superviseCtx, f.embeddedConfig(nil), log) // a restart prints nothing: it is in the log
	}()
	return func() error {
		cancel()
		<-ended
		return server.Stop()
	}
}

// MigrateAll migrates the tables of the service and of others, and loads the built-in templates. It returns the names
// of the migrations that it applied. If none is missing, it needs no right to change tables.
func MigrateAll(ctx context.Context, d *db.DB, others []doctor.Tables) (applied []string, err error) {
	state, err := doctor.ReadTables(ctx, d, others...)
	if err := cmp.Or(err, state.Newer); err != nil {
		return nil, err
	}
	if state.Missing != nil {
		if applied, err = migrate.Up(ctx, d); err != nil {
			return applied, err
		}
		for _, t := range others {
			steps, err := t.Steps(ctx, d) // before Migrate, to see which ones it applies
			if err == nil {
				err = t.Migrate(ctx, d)
			}
			if err != nil {
				return applied, err
			}
			for _, s := range steps {
				if !s.Applied {
					applied = append(applied, s.Name)
				}
			}
		}
	}
	// The service's own templates may change without a migration.
	return applied, d.LoadTemplates(ctx)
}

// CloseInto calls shut, and sets *err to its error unless there is an earlier one.
func CloseInto(shut func() error, err *error) {
	if e := shut(); e != nil && *err == nil {
		*err = e
	}
}

// PrintRecounts prints each stored count that was wrong and is corrected.
func PrintRecounts(to io.Writer, miscounts []doctor.Miscount) {
	for _, m := range miscounts {
		fmt.Fprintf(to, "recounted: %s %s was %s, now %s\n", m.Counter, m.Key, m.Stored, m.Counted)
	}
}
