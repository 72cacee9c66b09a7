package db_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
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
	figures, err := doctor.CountFigures(t.Context(), w.DB, time.Minute)
	waiting := slices.IndexFunc(figures, func(f doctor.Figure) bool { return f.Metric == "events_waiting" && f.Value == 2 })
	if err != nil || waiting < 0 {
		t.Errorf("2 events wait, got %v, %v", figures, err)
	}
}
