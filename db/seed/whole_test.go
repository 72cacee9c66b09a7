//go:build slow

package seed

import (
	"testing"
	"time"

	"partnerapi/db/dbtest/worldtest"
)

func TestDemoIsDeterministicAndIdempotent(t *testing.T) {
	t.Parallel()
	a, keys := demo(t)
	b, _ := demoAt(t, worldtest.Schema, noon.Add(9*time.Hour)) // later the same day
	first := contents(t, a)
	wantSame(t, first, contents(t, b))

	again, err := Demo(t.Context(), a)
	if err != nil || again != keys || keys.Client.IsZero() {
		t.Fatalf("the second time: %v, %v, want %v", again, err, keys)
	}
	wantSame(t, first, contents(t, a))
}

// TestDemoStaysConsistent holds on days that are hard on dates.
func TestDemoStaysConsistent(t *testing.T) {
	t.Parallel()
	for _, day := range []string{"2026-11-21", "2027-01-01", "2028-02-29", "2029-02-28", "2029-03-01"} {
		t.Run(day, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := demoAt(t, worldtest.Schema, now)
			wantRecount(t, d)
		})
	}
}
