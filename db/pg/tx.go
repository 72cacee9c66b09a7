package pg

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

type txKey struct{}

// Tx runs fn in a transaction, which is committed when fn returns nil and else
// rolled back. Within a transaction of an outer Tx, fn joins it.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.InTx(ctx) {
		return fn(ctx)
	}
	return d.tx(ctx, pgx.TxOptions{}, fn)
}

// Snapshot runs fn in a transaction that can change nothing, and in which all
// statements see the database as the first of them did. It is not for use within
// another transaction, and reports an error there.
func (d *DB) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.InTx(ctx) {
		return errors.New("begin a snapshot within a transaction")
	}
	ctx = context.WithValue(ctx, snapshotKey{}, true)
	if conn := d.standby(ctx, replayWithin); conn != nil {
		defer conn.Release()
		return d.txBy(ctx, conn.BeginTx, reading, fn)
	}
	return d.tx(ctx, reading, fn)
}

// reading are the options of a snapshot.
var reading = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

type snapshotKey struct{}

// InSnapshot reports whether ctx is in a transaction of Snapshot.
func (d *DB) InSnapshot(ctx context.Context) bool {
	in, _ := ctx.Value(snapshotKey{}).(bool)
	return in
}

func (d *DB) tx(ctx context.Context, options pgx.TxOptions, fn func(ctx context.Context) error) error {
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return d.TranslateError("wait for a connection", err)
	}
	defer leave()
	return d.txBy(ctx, d.begin, options, fn)
}

// beginTx begins a transaction.
type beginTx func(context.Context, pgx.TxOptions) (pgx.Tx, error)

func (d *DB) txBy(ctx context.Context, begin beginTx, options pgx.TxOptions, fn func(ctx context.Context) error) error {
	tx, err := begin(ctx, options)
	if err != nil {
		return d.TranslateError("begin a transaction", err)
	}
	// A rollback is a no-op after a commit. It is done although ctx may have ended.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var after []func()
	if err := fn(context.WithValue(context.WithValue(ctx, txKey{}, tx), afterKey{}, &after)); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return d.TranslateError("commit", err)
	}
	for _, fn := range after {
		fn()
	}
	return nil
}

type afterKey struct{}

// AfterCommit makes fn run after the outermost transaction of ctx has committed; fn does not
// run if that is rolled back, or if there is no transaction. It may run for work that was
// undone by a DryRun within the transaction.
func (d *DB) AfterCommit(ctx context.Context, fn func()) {
	if after, ok := ctx.Value(afterKey{}).(*[]func()); ok && d.InTx(ctx) {
		*after = append(*after, fn)
	}
}

// ReservedSnapshot runs fn in a read-only transaction in which all statements see the same
// state, on one of the reserved connections: for reads that must not wait for requests, such
// as an operator's figures. within bounds the transaction and, by the server, each statement.
// The wait for a standby (FromReplica) before it may take as long.
func (d *DB) ReservedSnapshot(ctx context.Context, within time.Duration, fn func(ctx context.Context) error) error {
	begin := d.begin
	if conn := d.standby(ctx, min(within, replayWithin)); conn != nil {
		defer conn.Release()
		begin = conn.BeginTx
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tx, err := begin(ctx, reading)
	if err != nil {
		return d.TranslateError("begin to look", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	limit := strconv.FormatInt(max(within.Milliseconds(), 1), 10)
	if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", limit); err != nil {
		return d.TranslateError("begin to look", err)
	}
	return fn(context.WithValue(ctx, txKey{}, tx))
}

// DryRun runs fn in a transaction that is rolled back, or at a savepoint of the outer
// one that is rolled back to, whatever fn returns.
func (d *DB) DryRun(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) (err error) {
		savepoint, err := ctx.Value(txKey{}).(pgx.Tx).Begin(ctx)
		if err != nil {
			return d.TranslateError("begin a trial", err)
		}
		defer func() {
			undone := savepoint.Rollback(context.WithoutCancel(ctx))
			if err == nil {
				err = d.TranslateError("roll a trial back", undone)
			}
		}()
		return fn(context.WithValue(ctx, txKey{}, savepoint))
	})
}

// Savepoint runs fn at a savepoint of the transaction of ctx, so that an error of fn
// undoes only what fn did. Without a transaction it just runs fn.
func (d *DB) Savepoint(ctx context.Context, fn func(ctx context.Context) error) error {
	tx, ok := ctx.Value(txKey{}).(pgx.Tx)
	if !ok {
		return fn(ctx)
	}
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return d.TranslateError("set a savepoint", err)
	}
	// A rollback is a no-op after a commit.
	defer func() { _ = savepoint.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(context.WithValue(ctx, txKey{}, savepoint)); err != nil {
		return err
	}
	return d.TranslateError("release a savepoint", savepoint.Commit(ctx))
}

// begin begins a transaction on a connection of the pool, or on another where that
// one turned out to be dead.
func (d *DB) begin(ctx context.Context, options pgx.TxOptions) (tx pgx.Tx, err error) {
	for try := 1; ; try++ {
		tx, err = d.pool.BeginTx(ctx, options)
		if try == maxTries || err == nil || !pgconn.SafeToRetry(err) {
			return tx, err
		}
	}
}

// maxTries bounds the connections that are tried for one statement: another one is tried if
// one was dead before anything was sent.
const maxTries = 3

// InTx reports whether ctx is in a transaction.
func (d *DB) InTx(ctx context.Context) bool {
	_, ok := ctx.Value(txKey{}).(pgx.Tx)
	return ok
}

// Transaction is the transaction of ctx, for packages that bring their own
// statements; nil where there is none.
func (d *DB) Transaction(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

// onConn runs fn on a connection and releases it, also where fn panics: the pool closes
// one that is in the middle of a statement.
func onConn(conn *pgxpool.Conn, fn func(*pgx.Conn) error) error {
	defer conn.Release()
	return fn(conn.Conn())
}

// run runs fn on the connection of the transaction of ctx, or on one of the pool.
func (d *DB) run(ctx context.Context, fn func(*pgx.Conn) error) error {
	if tx, ok := ctx.Value(txKey{}).(pgx.Tx); ok {
		return fn(tx.Conn())
	}
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()

	for try := 1; ; try++ {
		conn, err := d.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		err = onConn(conn, fn)
		if try == maxTries || err == nil || !pgconn.SafeToRetry(err) {
			return err
		}
	}
}
