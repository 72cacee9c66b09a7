package usage

import (
	"maps"
	"testing"
	"time"

	"partnerapi/db/pg"
)

// requireRefusals checks how many requests each cause refused.
func requireRefusals(t *testing.T, d *pg.DB, want map[Cause]int64) {
	t.Helper()
	got, err := Refusals(t.Context(), d)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

// TestRefusals verifies that refusals are counted by cause and day, exactly once although flushes fail or their outcome is
// lost, with calls and without.
func TestRefusals(t *testing.T) {
	t.Parallel()
	d := open(t)
	c, f := unreliable(t, d)
	off, brownout := Cause{PhaseCause, 3}, Cause{BrownoutCause, 3}
	requireRefusals(t, d, map[Cause]int64{})
	for _, cause := range []Cause{off, brownout, {}, off} {
		c.CountRefusal(cause)
	}
	f.before.Store(1)
	if err := c.Flush(t.Context()); err == nil {
		t.Error("a flush that failed returned no error")
	}
	c.CountRefusal(brownout)
	f.after.Store(1)
	if err := c.Flush(t.Context()); err == nil {
		t.Error("a flush whose outcome was lost returned no error")
	}
	for range 2 {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	requireRefusals(t, d, map[Cause]int64{off: 2, brownout: 2})
}

// TestOldRefusals verifies that refusals past the retention are deleted.
func TestOldRefusals(t *testing.T) {
	t.Parallel()
	d := open(t)
	exec(t, d, `INSERT INTO v1_refusals (kind, id, day, refused) VALUES ('phase', 1, $1::date, 5), ('phase', 1, $2::date, 7)`,
		noon.AddDate(0, 0, -Days).Format(time.DateOnly), noon.AddDate(0, 0, 1-Days).Format(time.DateOnly))
	c, _ := unreliable(t, d)
	c.Record(t.Context())
	requireRefusals(t, d, map[Cause]int64{{PhaseCause, 1}: 7})
}
