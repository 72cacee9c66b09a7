package move

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// TestWaitForClock verifies that a handover waits until the new cell's clock has passed the newest change of the old
// cell, and fails if that would take long.
func TestWaitForClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := side{ctx: t.Context(), DB: w.From}
	record := func(at time.Time) {
		w.exec(w.From, `INSERT INTO events (id, client_id, type, created_at)
			SELECT $2, id, 'client.updated', $1 FROM clients LIMIT 1`, at, db.NewID[domain.EventKind]().UUID())
	}
	newest := w.From.Now().Add(200 * time.Millisecond)
	record(newest)
	w.must(w.waitForClock(t.Context(), source))
	if now := w.To.Now(); now.Before(newest) {
		t.Errorf("the new cell serves at %v, before the newest change at %v", now, newest)
	}
	record(w.From.Now().Add(time.Hour))
	if err := w.waitForClock(t.Context(), source); err == nil {
		t.Error("a new cell whose clock is an hour behind serves")
	}
}
