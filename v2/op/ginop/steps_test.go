package ginop_test

import (
	"context"
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
)

// clockSteps are steps of a clock, as by NTP after a suspension, or by a failover to a server whose clock differs.
var clockSteps = []time.Duration{-time.Hour, -10 * time.Minute, 0, 10 * time.Minute, 12 * time.Hour, 800 * 24 * time.Hour}

// TestRevokedKeyEndsWhateverTheClock: a revoked key ends, and a new key begins, within the time that keys are cached, by
// monotonic time.
func TestRevokedKeyEndsWhateverTheClock(t *testing.T) {
	for _, step := range clockSteps {
		t.Run(step.String(), func(t *testing.T) {
			clock, revoked := domain.NewManualClock(noon), false
			var e *edge
			find := func(ctx context.Context, digest []byte) (*domain.Caller, error) {
				if good := sha256.Sum256([]byte("pk_demo_good")); revoked == (good == [sha256.Size]byte(digest)) {
					return nil, &domain.Error{Code: domain.Unauthorized, Message: "unknown"}
				}
				return e.find(ctx, digest)
			}
			e = newEdgeOf(t, func(c *ginop.Config) {
				c.Clock, c.Keys = clock, ginop.NewKeys(find, clock, false)
			}, operations())
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200)
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good1"), 401) // not valid yet
			revoked = true
			clock.Step(step)
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200)
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good1"), 401)
			clock.Advance(ginop.KeyMemory)
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good"), 401)
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good1"), 200)
		})
	}
}

// TestBudgetsWhateverTheClock: a budget that is used up is full again after a minute of monotonic time: a key's, and
// that of an address.
func TestBudgetsWhateverTheClock(t *testing.T) {
	for _, step := range clockSteps {
		t.Run(step.String(), func(t *testing.T) {
			e, clock := clocked(t)
			for range 600 {
				e.do("GET", "/v2/fine", "pk_demo_good")
			}
			for range 60 {
				e.do("GET", "/v2/fine", "")
			}
			clock.Advance(20 * time.Second)
			clock.Step(step)
			for _, key := range []string{"pk_demo_good", ""} {
				w := e.do("GET", "/v2/fine", key)
				wantStatus(t, w, 429)
				reset := strconv.FormatInt(clock.Now().Add(40*time.Second).Unix(), 10)
				if h := w.Header(); h.Get("Retry-After") != "40" || h.Get("X-RateLimit-Reset") != reset {
					t.Errorf("with the key %q: %v, not 40 s, and a reset at %s", key, h, reset)
				}
			}
			clock.Advance(40 * time.Second)
			wantRemaining(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200, 599)
			wantRemaining(t, e.do("GET", "/v2/fine", ""), 401, 59)
		})
	}
}
