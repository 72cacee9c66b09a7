package db_test

import (
	"context"
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
	if f, err := doctor.CountFigures(t.Context(), w.DB, time.Minute); err != nil || f.Events != 2 || f.OldestEvent.IsZero() {
		t.Errorf("%d events wait, %v", f.Events, err)
	}
}

// BenchmarkChange changes a user's name, with the event that this writes and without.
func BenchmarkChange(b *testing.B) {
	for _, c := range []struct {
		name    string
		options []db.Option
	}{{"with an event", nil}, {"without", []db.Option{db.WithoutEvents()}}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, c.options...)
			client := w.AddClient()
			id := w.AddUser(client, domain.RoleStandard, 750)
			w.Must(w.Rescore(b.Context(), client, []domain.UserID{id}))
			ctx, names := w.As(b.Context()), []string{"Ada", "Grace"}
			n := 0
			for b.Loop() {
				n++
				w.Must(w.Change(ctx, func(ctx context.Context, c2 *db.Change) error {
					if err := c2.ShareAudiencesOf(ctx, id); err != nil {
						return err
					}
					u, err := c2.LockUser(ctx, id)
					if err != nil {
						return err
					}
					after := u.User
					after.FirstName = names[n%2]
					return u.Update(ctx, c2, after)
				}))
			}
		})
	}
}
