package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type txKey struct{}

// Tx runs fn in a transaction, which is committed when fn returns nil and else
// rolled back. Within a transaction of an outer Tx, fn joins it.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.InTx(ctx) {
		return fn(ctx)
	}
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return d.TranslateError("wait for a connection", err)
	}
	defer leave()

	tx, err := d.begin(ctx)
	if err != nil {
		return d.TranslateError("begin a transaction", err)
	}
	// A rollback is a no-op after a commit. It is done although ctx may have ended.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(context.WithValue(ctx, txKey{}, tx)); err != nil {
		return err
	}
	return d.TranslateError("commit", tx.Commit(ctx))
}

// begin begins a transaction on a connection of the pool, or on another where that
// one turned out to be dead.
func (d *DB) begin(ctx context.Context) (tx pgx.Tx, err error) {
	for try := 1; ; try++ {
		tx, err = d.pool.Begin(ctx)
		if try == maxTries || err == nil || !pgconn.SafeToRetry(err) {
			return tx, err
		}
	}
}

// maxTries is how many connections are tried for one statement, of which the
// earlier ones turned out to be dead before anything was sent.
const maxTries = 3

// InTx reports whether ctx is in a transaction.
func (d *DB) InTx(ctx context.Context) bool {
	_, ok := ctx.Value(txKey{}).(pgx.Tx)
	return ok
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
		err = fn(conn.Conn())
		conn.Release()
		if try == maxTries || err == nil || !pgconn.SafeToRetry(err) {
			return err
		}
	}
}
