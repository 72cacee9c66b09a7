// Package pg accesses PostgreSQL. It has the pool of connections, transactions, queries with bound values (Query),
// lists that are read page by page (Keyset), advisory locks, and the translation of the driver's errors to those of the
// domain. It does not depend on the service's tables.
package pg

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"partnerapi/domain"
)

// DefaultConns is the default maximum number of connections of a process. Two processes stay well below 100, the
// default max_connections of PostgreSQL.
const DefaultConns = 20

// ReservedConns is the number of connections that a pool has in addition to those that requests and background work
// share. They are for advisory locks, readiness and figures.
const ReservedConns = 5

// Listeners is the maximum number of connections of a process outside of the pool, each for a Listen: for emails,
// reports, the numbers of the registry, and the retirement of version 1.
const Listeners = 4

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
	// sessions is a pool of connections that keep their session. It is pool itself, unless WithPooler set the URL of
	// the server behind a pooler.
	sessions *pgxpool.Pool
	pooled   bool // WithPooler
	// prepares is true if Prepared statements are kept by connections.
	prepares bool
	sql      *sql.DB
	clock    domain.Clock
	steps    *domain.Steps // of clock; none if it keeps none
	clashes  map[string]*domain.Error
	gate     *gate
	replica  *replica // nil without WithReplica
	stamps   *stamps
	// newestStamp is the query of WithNewestStamp, and changeLimit the limit of WithChangeLimit.
	newestStamp string
	changeLimit time.Duration
	// traced is true if there is a tracer, which needs the names of statements.
	traced bool
}

// Option is an option of Open.
type Option func(*options)

type options struct {
	clock   domain.Clock
	tracer  pgx.QueryTracer
	conns   int
	clashes map[string]*domain.Error
	slow    *slowLog
	stepLog *slog.Logger
	pooled  bool
	direct  string // the server's URL behind a pooler
	// unprepared is true if the pooler keeps no prepared statements.
	unprepared bool

	newestStamp string
	changeLimit time.Duration

	replica    string
	replicaLog *slog.Logger
}

// WithClock makes Now return the time of clock. The default is the server's clock.
func WithClock(clock domain.Clock) Option { return func(o *options) { o.clock = clock } }

// WithTracer passes every statement to tracer, which may call StatementName.
func WithTracer(tracer pgx.QueryTracer) Option { return func(o *options) { o.tracer = tracer } }

// WithConns sets the maximum number of connections, at least 2. The default is DefaultConns.
func WithConns(n int) Option { return func(o *options) { o.conns = n } }

// WithClashes sets the errors for violations of unique constraints, by the name of the constraint.
func WithClashes(clashes map[string]*domain.Error) Option {
	return func(o *options) { o.clashes = clashes }
}

// WithPooler declares that the URL of Open is that of a pooler, which may give each transaction another connection.
// direct is a URL of the server behind it: Listen, advisory locks of sessions and SQL use it. prepares says whether the
// pooler keeps prepared statements; without, each Prepared query is planned anew. Without a direct URL, what needs a
// session may fail: that is for looking through a pooler only.
func WithPooler(direct string, prepares bool) Option {
	return func(o *options) { o.pooled, o.direct, o.unprepared = true, direct, !prepares }
}

// Open opens the database at a postgres:// URL, with further pools for the direct URL of WithPooler and the standby of
// WithReplica. It does not connect yet.
func Open(url string, opts ...Option) (*DB, error) {
	o := options{conns: DefaultConns, newestStamp: "NULL", changeLimit: ChangeLimit}
	for _, opt := range opts {
		opt(&o)
	}
	conns := max(o.conns, 2)
	d := &DB{
		pooled: o.pooled, prepares: !o.unprepared, clock: o.clock, clashes: o.clashes, gate: newGate(conns),
		stamps: &stamps{}, newestStamp: o.newestStamp, changeLimit: o.changeLimit,
	}
	var server *serverClock
	if o.clock == nil {
		server = newServerClock(domain.SystemClock{}, o.stepLog)
		d.clock = server
	}
	if stepped, ok := d.clock.(interface{ Steps() *domain.Steps }); ok {
		d.steps = stepped.Steps()
	} else {
		d.steps = &domain.Steps{}
	}
	switch {
	case o.slow != nil && o.tracer != nil:
		o.tracer = multitracer.New(o.slow, o.tracer)
	case o.slow != nil:
		o.tracer = o.slow
	}
	d.traced = o.tracer != nil

	var err error
	if d.pool, err = o.open(url, conns+ReservedConns, o.pooled, server); err != nil {
		return nil, err
	}
	d.sessions = d.pool
	if o.direct != "" {
		if d.sessions, err = o.open(o.direct, ReservedConns, false, nil /* not measured */); err != nil {
			d.pool.Close()
			return nil, err
		}
	}
	if o.replica != "" {
		pool, err := o.open(o.replica, ReplicaConns, false, nil /* not measured */)
		if err != nil {
			d.sessions.Close()
			d.pool.Close()
			return nil, fmt.Errorf("the standby: %w", err)
		}
		d.replica = &replica{pool: pool, log: o.replicaLog}
	}
	d.sql = stdlib.OpenDBFromPool(d.sessions)
	return d, nil
}

// open opens a pool of connections to a server or, if pooled is true, to a pooler. clock, if not nil, measures the
// server's time on them.
func (o options) open(url string, conns int, pooled bool, clock *serverClock) (*pgxpool.Pool, error) {
	config, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	config.MaxConnIdleTime = 5 * time.Minute
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		prepareTypes(conn)
		if clock == nil {
			return nil
		}
		return clock.afterConnect(ctx, conn)
	}
	if clock != nil {
		config.PrepareConn = clock.prepareConn
	}
	config.ConnConfig.Tracer = o.tracer
	detectDeadServers(config)
	// The mode of statements through database/sql: of migrations and tests. They are planned at each execution. A Query
	// sets its own mode.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	setSession(config.ConnConfig.RuntimeParams, pooled)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return pool, nil
}

// setSession sets the parameters of new sessions. A pooler accepts only the time zone: behind it, jit has to be set for
// the role.
func setSession(params map[string]string, pooled bool) {
	params["timezone"] = "UTC"
	if pooled {
		return
	}
	// Requests find rows by keys: compiling their plans costs more than it saves.
	params["jit"] = "off"
	// The server detects within a minute that the machine of a client has failed, and releases its locks.
	params["tcp_keepalives_idle"] = "30"
	params["tcp_keepalives_interval"] = "10"
	params["tcp_keepalives_count"] = "3"
}

type statementKey struct{}

// withName returns a context from which a tracer reads the name of a statement (StatementName).
func (d *DB) withName(ctx context.Context, action string) context.Context {
	if !d.traced {
		return ctx
	}
	return context.WithValue(ctx, statementKey{}, action)
}

// StatementName returns the name of a traced statement, which is its purpose, as in "claim a sync run". It returns ""
// for a statement that is not of a Query, such as a commit.
func StatementName(ctx context.Context) string {
	name, _ := ctx.Value(statementKey{}).(string)
	return name
}

// Pool returns the pool, which bypasses the gate that shares connections fairly between partners. It is for copying
// rows into a database that is not in use yet, and for reading the database's address. TestGate lists the files that
// may call it.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// SQL returns a database/sql pool that bypasses the gate, and whose connections keep their session. It is for
// migrations. TestGate lists the files that may call it.
func (d *DB) SQL() *sql.DB { return d.sql }

// Pooled reports whether a pooler stands between (WithPooler).
func (d *DB) Pooled() bool { return d.pooled }

// Close closes the pools. It waits for connections in use.
func (d *DB) Close() error {
	err := d.sql.Close()
	d.sessions.Close()
	d.pool.Close()
	if d.replica != nil {
		d.replica.pool.Close()
	}
	return err
}

// Ping returns Unavailable if the database cannot be reached.
func (d *DB) Ping(ctx context.Context) error {
	return d.TranslateError("reach the database", d.pool.Ping(ctx))
}

// Now returns the time by the server's clock or, with WithClock, by that clock. Before the first connection it returns
// the machine's time.
func (d *DB) Now() time.Time { return d.clock.Now() }

// Elapsed returns the monotonic time since the process started: DB is a domain.Clock.
func (d *DB) Elapsed() time.Duration { return d.clock.Elapsed() }

// SinceLeap returns the time that has elapsed since this process saw the clock of Now set forward by more than
// domain.LeapForward, or domain.NoLeap if it has not. Work that the clock alone causes, and that nothing can undo,
// waits for some of it.
func (d *DB) SinceLeap() time.Duration { return d.steps.SinceLeap(d.Elapsed()) }

// SinceJump is SinceLeap for domain.JumpForward. After a jump, leases that processes still work under have ended.
func (d *DB) SinceJump() time.Duration { return d.steps.SinceJump(d.Elapsed()) }

// Stepped returns a channel that is closed when the clock of Now is set next, by more than a second.
func (d *DB) Stepped() <-chan struct{} { return d.steps.Next() }

// At returns the same database with a clock that always returns now.
func (d *DB) At(now time.Time) *DB {
	fixed := *d
	fixed.clock = fixedClock{d, now.UTC().Truncate(time.Microsecond)}
	return &fixed
}

// prepareTypes makes a connection return times in UTC, not the machine's zone, and pass UUIDs to scanners as 16 bytes.
func prepareTypes(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	types.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: plainUUID{}})
}
