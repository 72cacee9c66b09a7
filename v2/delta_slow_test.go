//go:build slow

package v2_test

import (
	"fmt"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestTapSlow is TestTap with 6,001 users and more rounds, directly and through poolers.
func TestTapSlow(t *testing.T) {
	t.Parallel()
	for name, pooled := range map[string]bool{"direct": false, "pooled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDeltaWorld(t, 6001, pooled)
			p := &tap{copy: map[domain.UserID]api.User{}}
			w.must(p.poll(w))
			for round := range dbtest.Times(10) {
				n := w.round(p, fmt.Sprint(round))
				t.Logf("round %d: %d of %d users are stale, after %d pages, and a horizon at most %s behind", round, n, len(w.users), p.polls, p.lag)
				if n > 0 {
					t.Fail()
				}
			}
		})
	}
}
