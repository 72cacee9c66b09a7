package pg

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
)

type txKey struct{}

// transaction is one with the connection that it has.
type transaction struct {
	bun.Tx
	conn bun.Conn
}

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

	conn, err := d.bun.Conn(ctx)
	if err != nil {
		return d.TranslateError("begin a transaction", err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return d.TranslateError("begin a transaction", err)
	}
	defer func() { _ = tx.Rollback() }() // a no-op after a commit
	if err := fn(context.WithValue(ctx, txKey{}, transaction{tx, conn})); err != nil {
		return err
	}
	return d.TranslateError("commit", tx.Commit())
}

// InTx reports whether ctx is in a transaction.
func (d *DB) InTx(ctx context.Context) bool {
	_, ok := ctx.Value(txKey{}).(transaction)
	return ok
}

// run runs fn on the connection of the transaction of ctx, or on one of the
// pool. A connection that turned out to be dead before anything was sent is
// replaced by another, up to twice.
func (d *DB) run(ctx context.Context, fn func(*pgx.Conn) error) error {
	if tx, ok := ctx.Value(txKey{}).(transaction); ok {
		return raw(tx.conn.Conn, fn)
	}
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for tries := 1; ; tries++ {
		conn, err := d.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		err = fn(conn.Conn())
		conn.Release()
		if tries == 3 || err == nil || !pgconn.SafeToRetry(err) {
			return err
		}
	}
}

func raw(conn *sql.Conn, fn func(*pgx.Conn) error) error {
	return conn.Raw(func(driver any) error { return fn(driver.(*stdlib.Conn).Conn()) })
}

// SQLTx is the transaction of ctx for packages that speak database/sql.
func (d *DB) SQLTx(ctx context.Context) (*sql.Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(transaction)
	return tx.Tx.Tx, ok
}

// Conn is where a statement of Bun runs: the transaction of ctx, or the pool.
func (d *DB) Conn(ctx context.Context) bun.IDB {
	if tx, ok := ctx.Value(txKey{}).(transaction); ok {
		return tx.Tx
	}
	return d.bun
}
