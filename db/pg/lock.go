package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WithAdvisoryLock waits for the advisory lock with a name, and runs fn while holding it. The lock belongs to the
// session of a connection that is used for nothing else, and a crash releases it.
func (d *DB) WithAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) error {
	// IS NOT NULL: the function returns void, not a boolean.
	_, err := d.withLock(ctx, "SELECT pg_advisory_lock(hashtextextended($1::text, 0)) IS NOT NULL", name, fn)
	return err
}

// TryAdvisoryLock runs fn while holding the advisory lock with a name, as WithAdvisoryLock does, but does not wait for
// the lock: if another session holds it, TryAdvisoryLock does not run fn and returns false.
func (d *DB) TryAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) (bool, error) {
	return d.withLock(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))", name, fn)
}

// withLock runs the statement lock, which returns whether it has locked name. If so, withLock runs fn and unlocks name.
func (d *DB) withLock(ctx context.Context, lock, name string, fn func(context.Context) error) (ok bool, err error) {
	conn, err := d.sessions.Acquire(ctx)
	if err != nil {
		return false, d.TranslateError("lock "+name, err)
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, lock, name).Scan(&ok); err != nil || !ok {
		return false, d.TranslateError("lock "+name, err)
	}
	defer unlock(ctx, conn.Conn(), name)
	return true, fn(ctx)
}

// unlock releases a lock. If that fails it closes the connection, which also releases the lock.
func unlock(ctx context.Context, conn *pgx.Conn, name string) {
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1::text, 0))", name); err != nil {
		_ = conn.Close(ctx)
	}
}
