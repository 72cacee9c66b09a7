package pg

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// WithAdvisoryLock runs fn while no other process holds the lock of that name.
// It waits for the lock. The lock belongs to a connection of its own, and a crash
// releases it.
func (d *DB) WithAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) error {
	conn, err := d.sessions.Acquire(ctx)
	if err != nil {
		return d.TranslateError("lock "+name, err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1::text, 0))", name); err != nil {
		conn.Release()
		return d.TranslateError("lock "+name, err)
	}
	defer unlock(ctx, conn, name)
	return fn(ctx)
}

// TryAdvisoryLock is WithAdvisoryLock where the lock is free. It reports false,
// and does nothing, where another holds it.
func (d *DB) TryAdvisoryLock(ctx context.Context, name string, fn func(context.Context) error) (bool, error) {
	conn, err := d.sessions.Acquire(ctx)
	if err != nil {
		return false, d.TranslateError("lock "+name, err)
	}
	var locked bool
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))", name).Scan(&locked)
	if err != nil || !locked {
		conn.Release()
		return false, d.TranslateError("lock "+name, err)
	}
	defer unlock(ctx, conn, name)
	return true, fn(ctx)
}

// unlock releases a lock and returns its connection. A connection that cannot be
// unlocked is closed, and the lock goes with it.
func unlock(ctx context.Context, conn *pgxpool.Conn, name string) {
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1::text, 0))", name); err != nil {
		_ = conn.Conn().Close(ctx)
	}
	conn.Release()
}
