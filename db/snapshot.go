package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
)

// Snapshot runs fn with the client as it is at one moment: whatever fn reads
// through that tenant agrees, and is of the time of its Now. The client's summary is
// made anew before, so that it agrees with the rest. fn holds a connection, and
// changes nothing. NotFound where the client was archived.
func (t *Tenant) Snapshot(ctx context.Context, fn func(ctx context.Context, t *Tenant) error) error {
	_, err := t.db.summarize(ctx, refresh{of: pg.SQL("c.id = ? AND c.archived_at IS NULL", t.ID), before: t.db.Now()})
	if err != nil {
		return err
	}
	return t.db.Snapshot(ctx, func(ctx context.Context) error {
		still, err := t.db.AnyTenant(ctx, t.ID)
		if err != nil {
			return err
		}
		still.db = &DB{DB: t.db.At(t.db.Now()), strict: t.db.strict}
		return fn(ctx, still)
	})
}

// Now is the time by the database's clock; in a snapshot, when that was taken.
func (t *Tenant) Now() time.Time { return t.db.Now() }
