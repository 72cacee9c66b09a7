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

// Tx runs fn in a transaction, which it commits if fn returns nil and otherwise rolls back. If ctx already has a
// transaction, fn runs in that one.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.InTx(ctx) {
		return fn(ctx)
	}
	return d.tx(ctx, pgx.TxOptions{}, fn)
}

// Snapshot runs fn in a read-only transaction in which all statements see the state of the first one. If ctx is of
// FromReplica, it runs on the standby, unless that cannot catch up in time. Within a transaction it returns an error.
func (d *DB) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.InTx(ctx) {
		return errors.New("begin a snapshot within a transaction")
	}
	ctx = context.WithValue(ctx, snapshotKey{}, true)
	if conn := d.standby(ctx, replayWithin); conn != nil {
		defer conn.Release()
		return d.txBy(ctx, conn.BeginTx, snapshotOptions, fn)
	}
	return d.tx(ctx, snapshotOptions, fn)
}

// snapshotOptions are the options of the transaction of a snapshot.
var snapshotOptions = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

type snapshotKey struct{}

// InSnapshot reports whether ctx is in a transaction of Snapshot.
func (d *DB) InSnapshot(ctx context.Context) bool {
	in, _ := ctx.Value(snapshotKey{}).(bool)
	return in
}

// tx runs fn in a transaction on a connection of the pool, for which it waits.
func (d *DB) tx(ctx context.Context, options pgx.TxOptions, fn func(ctx context.Context) error) error {
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return d.TranslateError("wait for a connection", err)
	}
	defer leave()
	return d.txBy(ctx, d.begin, options, fn)
}

// beginTx begins a transaction on a connection.
type beginTx func(context.Context, pgx.TxOptions) (pgx.Tx, error)

// txBy runs fn in a transaction of begin, and after the commit the functions of AfterCommit.
func (d *DB) txBy(ctx context.Context, begin beginTx, options pgx.TxOptions, fn func(ctx context.Context) error) error {
	tx, err := begin(ctx, options)
	if err != nil {
		return d.TranslateError("begin a transaction", err)
	}
	// The rollback does nothing after a commit. It must work even if ctx has ended.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	ctx, stop := withLimit(ctx)
	defer stop()
	var after []func()
	if err := fn(context.WithValue(context.WithValue(ctx, txKey{}, tx), afterKey{}, &after)); err != nil {
		return d.tooLong(ctx, err)
	}
	if err := tx.Commit(ctx); err != nil {
		return d.tooLong(ctx, d.TranslateError("commit", err))
	}
	for _, fn := range after {
		fn()
	}
	return nil
}

type afterKey struct{}

// AfterCommit registers fn to run after the commit of the outermost transaction of ctx. fn does not run if that is
// rolled back, or if there is no transaction. It runs even if a DryRun or Savepoint within the transaction rolls the
// caller's work back.
func (d *DB) AfterCommit(ctx context.Context, fn func()) {
	if after, ok := ctx.Value(afterKey{}).(*[]func()); ok { // there is a transaction
		*after = append(*after, fn)
	}
}

// ReservedSnapshot runs fn in a read-only transaction in which all statements see the same state, on one of the
// reserved connections. It is for reads that must not wait for requests, such as an operator's figures. The duration
// within bounds the transaction and, on the server, each statement. Before the transaction, the wait for a standby
// (FromReplica) may take as long again.
func (d *DB) ReservedSnapshot(ctx context.Context, within time.Duration, fn func(ctx context.Context) error) error {
	begin := d.begin
	if conn := d.standby(ctx, min(within, replayWithin)); conn != nil {
		defer conn.Release()
		begin = conn.BeginTx
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return d.txBy(ctx, begin, snapshotOptions, func(ctx context.Context) error {
		limit := strconv.FormatInt(max(within.Milliseconds(), 1), 10)
		if _, err := d.Transaction(ctx).Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", limit); err != nil {
			return d.TranslateError("bound the statements of a transaction", err)
		}
		return fn(ctx)
	})
}

// DryRun runs fn and rolls its work back, whatever fn returns. Within a transaction it rolls back to a savepoint.
func (d *DB) DryRun(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) (err error) {
		savepoint, err := d.Transaction(ctx).Begin(ctx)
		if err != nil {
			return d.TranslateError("begin a trial", err)
		}
		defer func() {
			rollbackErr := savepoint.Rollback(context.WithoutCancel(ctx))
			if err == nil {
				err = d.TranslateError("roll a trial back", rollbackErr)
			}
		}()
		ctx, _ = inSavepoint(ctx, true /* trial */)
		return fn(context.WithValue(ctx, txKey{}, savepoint))
	})
}

// Savepoint runs fn after a savepoint of the transaction of ctx, so that an error of fn rolls back only the work of fn.
// Without a transaction it only runs fn.
func (d *DB) Savepoint(ctx context.Context, fn func(ctx context.Context) error) error {
	tx := d.Transaction(ctx)
	if tx == nil {
		return fn(ctx)
	}
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return d.TranslateError("set a savepoint", err)
	}
	// The rollback does nothing after the savepoint is released.
	defer func() { _ = savepoint.Rollback(context.WithoutCancel(ctx)) }()
	inner, keepStamp := inSavepoint(ctx, false /* no trial */)
	if err := fn(context.WithValue(inner, txKey{}, savepoint)); err != nil {
		return err
	}
	if err := savepoint.Commit(ctx); err != nil {
		return d.TranslateError("release a savepoint", err)
	}
	keepStamp()
	return nil
}

// begin begins a transaction on a connection of the pool. If that was dead, it tries another one, up to maxTries.
func (d *DB) begin(ctx context.Context, options pgx.TxOptions) (tx pgx.Tx, err error) {
	for try := 1; ; try++ {
		tx, err = d.pool.BeginTx(ctx, options)
		if try == maxTries || err == nil || !pgconn.SafeToRetry(err) {
			return tx, err
		}
	}
}

// maxTries bounds the connections that are tried for one statement. Another connection is tried if one failed before
// anything was sent.
const maxTries = 3

// InTx reports whether ctx is in a transaction.
func (d *DB) InTx(ctx context.Context) bool { return d.Transaction(ctx) != nil }

// Transaction returns the transaction of ctx, or nil. It is for packages that use the driver directly.
func (d *DB) Transaction(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

// onConn runs fn on a connection and releases it, even if fn panics. The pool closes it if it is still busy.
func onConn(conn *pgxpool.Conn, fn func(*pgx.Conn) error) error {
	defer conn.Release()
	return fn(conn.Conn())
}

// run runs fn on the connection of the transaction of ctx or, without a transaction, on a connection of the pool, for
// which it waits.
func (d *DB) run(ctx context.Context, fn func(*pgx.Conn) error) error {
	if tx := d.Transaction(ctx); tx != nil {
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
