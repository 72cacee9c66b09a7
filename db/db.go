// Package db keeps the service's objects in PostgreSQL, through Bun. Its
// methods speak the types of domain; rows, SQL and constraint names stay in
// here. A method that is given a context made by Tx works in that transaction.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	bun    *bun.DB
	clock  domain.Clock
	config *pgx.ConnConfig
	// clientByID is the query of Client, by whether the caller reaches all.
	clientByID map[bool]string
}

// Option changes how Open opens a database.
type Option func(*options)

type options struct {
	clock  domain.Clock
	tracer pgx.QueryTracer
	conns  int
}

// WithClock makes the database's methods take the time from clock.
func WithClock(clock domain.Clock) Option { return func(o *options) { o.clock = clock } }

// WithTracer shows every statement to tracer.
func WithTracer(tracer pgx.QueryTracer) Option { return func(o *options) { o.tracer = tracer } }

// WithConns bounds the number of connections; the default is 20.
func WithConns(n int) Option { return func(o *options) { o.conns = n } }

// Open opens the database at a postgres:// URL. It does not connect yet.
func Open(url string, opts ...Option) (*DB, error) {
	o := options{clock: domain.SystemClock{}, conns: 20}
	for _, opt := range opts {
		opt(&o)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	// Bun writes the values into its statements, so nearly every statement is
	// a new text: preparing each would cost a round trip and fill the cache.
	// Those of which that is not so say it themselves (see read).
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.Tracer = o.tracer
	config.ConnectTimeout = 5 * time.Second
	config.RuntimeParams["timezone"] = "UTC"
	// Rows are found by keys on every path of a request; compiling a plan to
	// machine code costs more than it saves there.
	config.RuntimeParams["jit"] = "off"
	// The server learns within a minute that the machine of a connection is
	// gone, and lets go of what its transaction held.
	config.RuntimeParams["tcp_keepalives_idle"] = "30"
	config.RuntimeParams["tcp_keepalives_interval"] = "10"
	config.RuntimeParams["tcp_keepalives_count"] = "3"
	return pool(config, o.conns, o.clock), nil
}

func pool(config *pgx.ConnConfig, conns int, clock domain.Clock) *DB {
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(prepareTypes))
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	d := &DB{bun: bun.NewDB(pool, pgdialect.New()), clock: clock, config: config}
	d.clientByID = map[bool]string{true: clientByID(d.bun, true), false: clientByID(d.bun, false)}
	return d
}

// Beside opens another pool of connections to the same database, for work that
// keeps them longer than the requests that use this one can wait. It is for its
// caller to close.
func (d *DB) Beside(conns int) *DB { return pool(d.config, conns, d.clock) }

// SQL is the handle for packages that keep their own tables beside these.
func (d *DB) SQL() *sql.DB { return d.bun.DB }

// Close closes the pool.
func (d *DB) Close() error { return d.bun.Close() }

// Ping reports Unavailable when the database cannot be reached.
func (d *DB) Ping(ctx context.Context) error {
	return d.bad("reach the database", d.bun.PingContext(ctx))
}

// Now is the time by the database's clock.
func (d *DB) Now() time.Time { return d.clock.Now() }

type txKey struct{}

// transaction is one with the connection that it has.
type transaction struct {
	bun.Tx
	conn bun.Conn
}

// conn is where a statement of ctx runs: its transaction, or the pool.
func (d *DB) conn(ctx context.Context) bun.IDB {
	if tx, ok := ctx.Value(txKey{}).(transaction); ok {
		return tx.Tx
	}
	return d.bun
}

// Tx runs fn in a transaction, which is committed when fn returns nil and else
// rolled back. Within a transaction of an outer Tx, fn joins it.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	if _, inside := ctx.Value(txKey{}).(transaction); inside {
		return fn(ctx)
	}
	conn, err := d.bun.Conn(ctx)
	if err != nil {
		return d.bad("begin a transaction", err)
	}
	defer func() { _ = conn.Close() }() // which gives it back to the pool
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return d.bad("begin a transaction", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := fn(context.WithValue(ctx, txKey{}, transaction{tx, conn})); err != nil {
		return err
	}
	return d.bad("commit", tx.Commit())
}

// NewID returns the id of a new object: a UUID of version 7.
func NewID[K domain.Kind]() domain.ID[K] { return domain.ID[K](uuid.Must(uuid.NewV7())) }

// texts is a list of ids as a PostgreSQL array's values.
func texts[K domain.Kind](ids []domain.ID[K]) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.UUID()
	}
	return list
}

// uuids is a list of ids as a PostgreSQL array that Bun writes.
func uuids[K domain.Kind](ids []domain.ID[K]) any { return pgdialect.Array(texts(ids)) }

// one scans the single row of a query into dest, or into its model; NotFound
// with the noun where there is no row.
func (d *DB) one(ctx context.Context, q *bun.SelectQuery, noun string, dest ...any) error {
	return d.found(q.Scan(ctx, dest...), noun)
}

// found is the error of reading a single row; NotFound with the noun where
// there was no row.
func (d *DB) found(err error, noun string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return domain.ErrNotFound(noun)
	}
	return d.bad("read a "+noun, err)
}

// SQLTx is the transaction of ctx, for packages that enqueue work in it.
func (d *DB) SQLTx(ctx context.Context) (*sql.Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(transaction)
	return tx.Tx.Tx, ok
}

// Alone runs fn while no other process runs an fn of that name: under an
// advisory lock, which a crash releases.
func (d *DB) Alone(ctx context.Context, name string, fn func(context.Context) error) error {
	conn, err := d.bun.Conn(ctx)
	if err != nil {
		return d.bad("reach the database", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtextextended(?, 0))", name); err != nil {
		return d.bad("wait for a turn at "+name, err)
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(hashtextextended(?, 0))", name)
	}()
	return fn(ctx)
}
