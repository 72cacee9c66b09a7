package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/domain"
)

// databaseFlags say which database a command works on: one that is there, or
// the embedded one of a data directory, which the command joins or starts.
type databaseFlags struct {
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"A PostgreSQL database, as postgres://user:password@host/name. Without it, the embedded one of --data-dir is used."`
	DataDir     string `name:"data-dir" default:"./data" type:"path" help:"Where the embedded database and the files are kept."`
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" help:"The folder of the PostgreSQL server's programs, where they are not in a usual place."`
}

// open opens the database, its tables brought up to date, and returns what
// closes it again.
func (f databaseFlags) open(ctx context.Context, progress io.Writer) (*db.DB, func() error, error) {
	d, shut, err := f.connect(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	if _, err := migrateAll(ctx, d); err != nil {
		return nil, nil, errors.Join(err, shut())
	}
	return d, shut, nil
}

// connect is open without a look at the tables.
func (f databaseFlags) connect(ctx context.Context, progress io.Writer) (*db.DB, func() error, error) {
	url, stop := f.DatabaseURL, func() error { return nil }
	if url == "" {
		server, err := f.embedded(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		url, stop = server.URL(), server.Stop
	}
	d, err := db.Open(url, db.WithClock(domain.SystemClock{}))
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
	return embedded.Start(ctx, embedded.Config{Dir: filepath.Join(f.DataDir, "postgres"), BinDir: f.PostgresBin, Log: progress})
}

// migrateAll brings the tables of the service and its extensions up to date
// and returns the names of the service's migrations that were applied.
func migrateAll(ctx context.Context, d *db.DB) ([]string, error) {
	applied, err := d.Migrate(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.LoadTemplates(ctx); err != nil {
		return nil, err
	}
	for _, e := range extensions {
		if err := e.migrate(ctx, d); err != nil {
			return nil, err
		}
	}
	return applied, nil
}

type migrateCmd struct {
	databaseFlags
}

// Run applies the migrations that are missing.
func (m migrateCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := m.connect(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	applied, err := migrateAll(ctx, d)
	for _, name := range applied {
		fmt.Fprintln(s.out, "applied", name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(s.out, "nothing to do: the tables are up to date")
	}
	return err
}

// closing closes what a command opened and keeps the first error.
func closing(shut func() error, err *error) {
	if e := shut(); e != nil && *err == nil {
		*err = e
	}
}
