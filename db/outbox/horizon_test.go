package outbox_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// TestHorizon verifies that an event of the caller's partner that is not published holds the feed's horizon back, also
// while it is postponed, and that another partner's does not.
func TestHorizon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: w.Partner, AllClients: true})
	check := func(want time.Time) {
		t.Helper()
		if got, err := outbox.Horizon(ctx, w.DB); err != nil || !got.Equal(want) {
			t.Errorf("the horizon is %v, %v, want %v", got, err, want)
		}
	}
	check(noon)
	changed := noon.Add(time.Minute)
	w.Clock.Set(changed)
	w.Must(w.Change(t.Context(), func(_ context.Context, c *db.Change) error {
		c.ClientEvent(domain.ClientCreated, client)
		return nil
	}))
	w.Clock.Set(changed.Add(time.Hour))
	check(changed)
	w.Exec("UPDATE events SET postponed_until = 'infinity'")
	check(changed)
	ctx = domain.WithCaller(t.Context(), &domain.Caller{Partner: db.NewID[domain.PartnerKind](), AllClients: true})
	check(w.Clock.Now())
}
