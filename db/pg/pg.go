// Package pg is the way to PostgreSQL: the pool of connections, transactions,
// the one way to write a query and bind its values (Query), lists read page by
// page on an index (Keyset), advisory locks, and the translation of the driver's
// errors into the domain's. It knows no table.
package pg

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"partnerapi/domain"
)

// DefaultConns is the maximum number of connections a process opens by
// default: two processes stay well below the 100 that PostgreSQL allows by
// default.
const DefaultConns = 20

// ReservedConns are connections of a pool beyond those that requests and background
// work share: for advisory locks, readiness and figures. Requests never take them.
const ReservedConns = 5

// Listeners is how many connections a process may have beside those of the pool, each
// for a Listen: to mail, to reports, to the numbers of the registry, and to the
// retirement of v1.
const Listeners = 4

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
	// sessions is a pool of connections that keep their session: pool itself, unless WithPooler
	// named the server behind a pooler.
	sessions *pgxpool.Pool
	pooler   Pooler
	sql      *sql.DB
	clock    domain.Clock
	clashes  map[string]*domain.Error
	gate     *gate
	replica  *replica // nil without WithReplica
	// traced says that statements are shown to a tracer, by their names.
	traced bool
}

// Option changes how Open opens a database.
type Option func(*options)

type options struct {
	clock   domain.Clock
	tracer  pgx.QueryTracer
	conns   int
	clashes map[string]*domain.Error
	slow    *slowLog
	pooler  Pooler
	direct  string

	replica    string
	replicaLog *slog.Logger
}

// WithClock makes Now return the time of clock; the default is the server's.
func WithClock(clock domain.Clock) Option { return func(o *options) { o.clock = clock } }

// WithTracer shows every statement to tracer; StatementName returns what a
// statement is for.
func WithTracer(tracer pgx.QueryTracer) Option { return func(o *options) { o.tracer = tracer } }

// WithConns bounds the number of connections, from 2 up; the default is
// DefaultConns.
func WithConns(n int) Option { return func(o *options) { o.conns = n } }

// WithClashes sets the error for a violation of each unique constraint.
func WithClashes(clashes map[string]*domain.Error) Option {
	return func(o *options) { o.clashes = clashes }
}

// WithPooler passes what FindPooler found at the URL of Open. direct, if not empty, is a URL
// of the server behind the pooler: Listen, session advisory locks and SQL use it.
func WithPooler(found Pooler, direct string) Option {
	return func(o *options) { o.pooler, o.direct = found, direct }
}

// Open opens the database at a postgres:// URL. It does not connect yet.
func Open(url string, opts ...Option) (*DB, error) {
	o := options{conns: DefaultConns}
	for _, opt := range opts {
		opt(&o)
	}
	d := &DB{pooler: o.pooler, clock: o.clock, clashes: o.clashes, gate: newGate(max(o.conns, 2))}
	var measure func(context.Context, *pgx.Conn) (bool, error)
	if o.clock == nil {
		server := &serverClock{machine: domain.SystemClock{}}
		d.clock, measure = server, server.prepareConn
	}
	if o.slow != nil {
		o.slow.next, o.tracer = o.tracer, o.slow
	}
	d.traced = o.tracer != nil

	var err error
	if d.pool, err = o.open(url, max(o.conns, 2)+ReservedConns, o.pooler, measure); err != nil {
		return nil, err
	}
	d.sessions = d.pool
	if o.direct != "" {
		if d.sessions, err = o.open(o.direct, ReservedConns, NoPooler, nil); err != nil {
			d.pool.Close()
			return nil, err
		}
	}
	if o.replica != "" {
		pool, err := o.open(o.replica, ReplicaConns, NoPooler, nil)
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

// open opens a pool of connections to a server, or to the pooler in front of it.
func (o options) open(
	url string, conns int, behind Pooler, prepare func(context.Context, *pgx.Conn) (bool, error),
) (*pgxpool.Pool, error) {
	config, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	config.MaxConnIdleTime = 5 * time.Minute
	config.PrepareConn = prepare
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		prepareTypes(conn)
		if behind != SessionPooler {
			return nil
		}
		_, err := conn.Exec(ctx, "SET jit = off")
		return err
	}
	config.ConnConfig.Tracer = o.tracer
	findDead(config)
	// Statements through database/sql, of migrations, the files of v1's ids and tests, are planned
	// for their values; a Query sets its own mode.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	setSession(config.ConnConfig.RuntimeParams, behind)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return pool, nil
}

// setSession sets the parameters of new sessions. A pooler accepts the time zone only: jit is
// set after connecting in session mode, and by the role in transaction mode.
func setSession(params map[string]string, behind Pooler) {
	params["timezone"] = "UTC"
	if behind != NoPooler {
		return
	}
	// Requests find rows by keys; compiling a plan to machine code costs more
	// than it saves there.
	params["jit"] = "off"
	// The server learns within a minute that the machine of a connection is
	// gone, and releases what its transaction locked.
	params["tcp_keepalives_idle"] = "30"
	params["tcp_keepalives_interval"] = "10"
	params["tcp_keepalives_count"] = "3"
}

type statementKey struct{}

// named returns a context from which a tracer reads what a statement is for.
func (d *DB) named(ctx context.Context, doing string) context.Context {
	if !d.traced {
		return ctx
	}
	return context.WithValue(ctx, statementKey{}, doing)
}

// StatementName returns the purpose of the statement that a tracer sees, as in "claim a sync
// run"; empty for one that no Query made, such as a commit.
func StatementName(ctx context.Context) string {
	name, _ := ctx.Value(statementKey{}).(string)
	return name
}

// Pool returns the pool without the gate, which shares connections fairly between partners.
// It is for copying rows into a database that is not in use yet, and for reading the
// database's address. TestGate lists the files that may call it.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// SQL returns a database/sql pool without the gate, whose connections keep their session. It
// is for migrations, and for commands that run in a process of their own. TestGate lists the
// files that may call it.
func (d *DB) SQL() *sql.DB { return d.sql }

// Pooler returns the kind of pooler that WithPooler set.
func (d *DB) Pooler() Pooler { return d.pooler }

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

// Ping reports Unavailable when the database cannot be reached.
func (d *DB) Ping(ctx context.Context) error {
	return d.TranslateError("reach the database", d.pool.Ping(ctx))
}

// Now is the time by the server's clock, or by the one of WithClock. Before the
// first connection it is the machine's.
func (d *DB) Now() time.Time { return d.clock.Now() }

// At is the same database with a clock that stands still.
func (d *DB) At(now time.Time) *DB {
	still := *d
	still.clock = domain.NewManualClock(now)
	return &still
}

// prepareTypes makes a connection read times in UTC, whatever the machine's
// zone, and hand UUIDs to scanners as the 16 bytes that they came in.
func prepareTypes(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	types.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: plainUUID{}})
}
