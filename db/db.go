// Package db stores the service's objects in PostgreSQL. Its methods take and return types of package domain. A
// client's objects are read and written through a Tenant or a User, which are found only within the caller's reach.
// Transactions that write use a Change.
//
// A method runs in the transaction of its context, if the context has one from Tx.
package db

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// DB is the service's database. It is safe for concurrent use.
type DB struct {
	*pg.DB
	strict   bool // see WithStrictLocks
	onEvents atomic.Pointer[func()]
	watch    *clockWatch
}

// Option is an option of Open.
type Option func(*options)

type options struct {
	pool          []pg.Option
	strict        bool
	acceptedClock bool
}

// WithClock sets the clock of the database's methods.
func WithClock(clock domain.Clock) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithClock(clock)) }
}

// WithTracer traces every statement.
func WithTracer(tracer pgx.QueryTracer) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithTracer(tracer)) }
}

// WithSlowLog logs statements that take at least the duration after. It logs their names, without values.
func WithSlowLog(log *slog.Logger, after time.Duration) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithSlowLog(log, after)) }
}

// WithStepLog logs steps of the server's clock.
func WithStepLog(log *slog.Logger) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithStepLog(log)) }
}

// WithConns bounds the number of connections; the default is pg.DefaultConns.
func WithConns(n int) Option { return func(o *options) { o.pool = append(o.pool, pg.WithConns(n)) } }

// WithPooler declares that the URL is that of a pooler. direct is a URL of the server behind it, and prepares says
// whether the pooler keeps prepared statements.
func WithPooler(direct string, prepares bool) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithPooler(direct, prepares)) }
}

// WithReplica sets the postgres:// URL of a standby from which snapshots may read. log tells when it can be used.
func WithReplica(url string, log *slog.Logger) Option {
	return func(o *options) { o.pool = append(o.pool, pg.WithReplica(url, log)) }
}

// WithStrictLocks makes, in tests, a Change panic if a lock is out of the lock order, or an audience is not locked.
func WithStrictLocks() Option { return func(o *options) { o.strict = true } }

// Open opens the database at a postgres:// URL. It does not connect yet.
func Open(url string, opts ...Option) (*DB, error) {
	o := options{pool: []pg.Option{pg.WithClashes(clashes), pg.WithNewestStamp(newestStamp)}}
	for _, opt := range opts {
		opt(&o)
	}
	pool, err := pg.Open(url, o.pool...)
	if err != nil {
		return nil, err
	}
	return &DB{DB: pool, strict: o.strict, watch: &clockWatch{accepted: o.acceptedClock}}, nil
}

// NewID returns the id of a new object: a UUID of version 7.
func NewID[K domain.Kind]() domain.ID[K] { return pg.NewID[K]() }

// newestStamp is the newest stamp of the event feed and of the events that wait to be published.
const newestStamp = `SELECT greatest((SELECT max(created_at) FROM published_events),
	(SELECT created_at FROM events ORDER BY recorded_at DESC, id DESC LIMIT 1))`

// NewestStamp returns the newest known time of a change: the process's or, if it is later, that of the newest event.
func (d *DB) NewestStamp(ctx context.Context) (time.Time, error) {
	now := d.Now()
	recorded, err := pg.One[*time.Time](ctx, d, "read the newest stamp", pg.SQL(newestStamp))
	return domain.Later(now, domain.OrZero(recorded)), err
}

var (
	userExists = domain.ErrConflict("user", "a user with this email address already exists for this client",
		domain.FieldError{Field: "email", Message: "is in use by another user of this client"})
	adminExists = domain.ErrConflict("admin", "this email address already belongs to an admin of this client",
		domain.FieldError{Field: "email", Message: "is in use by an admin of this client"})
)

// conflicts are the errors that callers get for violated unique constraints, by the name of the constraint.
var clashes = map[string]*domain.Error{
	"partners_name_unique": domain.ErrConflict("partner", "a partner with this name already exists"),
	"clients_name_unique": domain.ErrConflict("client", "a client with this name already exists",
		domain.FieldError{Field: "name", Message: "is in use by another client"}),
	"users_email_unique":     userExists,
	"users_email_key_unique": userExists,
	"collections_name_unique": domain.ErrConflict("collection",
		"a collection with this name already exists for this client",
		domain.FieldError{Field: "name", Message: "is in use by another collection of this client"}),
	"framework_assignments_unique": domain.ErrConflict("framework assignment",
		"this framework is already assigned to this audience",
		domain.FieldError{Field: "framework_id", Message: "is already assigned to this audience"},
		domain.FieldError{Field: "audience", Message: "already has this framework"}),
	"admins_client_email_unique": adminExists,
	"admins_email_key_unique":    adminExists,
	"sync_runs_open":             domain.ErrConflict("sync run", "a sync of this client is already queued or running"),
}

// Snapshot runs fn with the client in a read-only transaction, which holds a connection. All reads through fn's tenant
// see one snapshot, and its Now is constant. The client's summary is refreshed first, so that it agrees with the other
// reads. Snapshot returns NotFound if the client was archived.
func (t *Tenant) Snapshot(ctx context.Context, fn func(ctx context.Context, t *Tenant) error) error {
	_, err := t.db.summarize(ctx, pg.SQL("c.id = ? AND c.archived_at IS NULL", t.ID), t.db.Now(), nil /* refreshUntil */)
	if err != nil {
		return err
	}
	return t.db.Snapshot(ctx, func(ctx context.Context) error {
		tenant, err := t.db.AnyTenant(ctx, t.ID)
		if err != nil {
			return err
		}
		tenant.db = &DB{DB: t.db.At(t.db.Now()), strict: t.db.strict, watch: t.db.watch} // its clock stands still
		return fn(ctx, tenant)
	})
}

// Now returns the time by the clock of the database's methods or, within Snapshot, the time of the snapshot.
func (t *Tenant) Now() time.Time { return t.db.Now() }

// Clash returns the error that callers get for a violated unique constraint, or nil if no error is declared for it.
func Clash(constraint string) *domain.Error { return clashes[constraint] }
