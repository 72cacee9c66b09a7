package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WithAdvisoryLock runs fn while no other process holds the lock of that name.
// It waits for the lock. The lock belongs to a connection of its own, and a crash
// releases it.
func (d *DB) WithAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) error {
	// pg_advisory_lock returns void, which is not scanned.
	_, err := d.locked(ctx, "SELECT pg_advisory_lock(hashtextextended($1::text, 0)) IS NOT NULL", name, fn)
	return err
}

// TryAdvisoryLock is WithAdvisoryLock without waiting. It returns false, and does not
// call fn, if the lock is held.
func (d *DB) TryAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) (bool, error) {
	return d.locked(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))", name, fn)
}

// locked runs fn if a statement locks the name.
func (d *DB) locked(ctx context.Context, lock, name string, fn func(context.Context) error) (got bool, err error) {
	conn, err := d.sessions.Acquire(ctx)
	if err != nil {
		return false, d.TranslateError("lock "+name, err)
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, lock, name).Scan(&got); err != nil || !got {
		return false, d.TranslateError("lock "+name, err)
	}
	defer unlock(ctx, conn.Conn(), name)
	return true, fn(ctx)
}

// unlock releases a lock. A connection that cannot be unlocked is closed, and the lock goes with
// it.
func unlock(ctx context.Context, conn *pgx.Conn, name string) {
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1::text, 0))", name); err != nil {
		_ = conn.Close(ctx)
	}
}
