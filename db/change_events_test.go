package db_test

import (
	"context"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// TestOnEvents: who publishes is woken after the commit of a change with events, within
// another transaction too, and not by others.
func TestOnEvents(t *testing.T) {
	w := newWorld(t)
	client, woken := w.AddClient(), 0
	w.OnEvents(func() { woken++ })
	write := func(ctx context.Context) error {
		return w.Change(ctx, func(_ context.Context, c *db.Change) error {
			c.ClientEvent(domain.ClientCreated, client)
			return nil
		})
	}
	w.Must(w.Tx(t.Context(), func(ctx context.Context) error {
		err := write(ctx)
		if woken != 0 {
			t.Error("woken before the commit")
		}
		return err
	}))
	w.Must(write(t.Context()))
	w.Must(w.Change(t.Context(), func(context.Context, *db.Change) error { return nil }))
	_ = w.Tx(t.Context(), func(ctx context.Context) error { _ = write(ctx); return context.Canceled })
	if woken != 2 {
		t.Errorf("woken %d times, not twice", woken)
	}
	if got := worldtest.Figures(t, w.DB)["events_waiting"]; got != 2 {
		t.Errorf("got %v events, want 2", got)
	}
}
