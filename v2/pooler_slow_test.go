//go:build slow

package v2_test

import (
	"testing"

	"partnerapi/db/pg"
	"partnerapi/v2/v2test"
)

// TestBehindPoolers: behind a pooler all operations answer as without one, and none
// fails while 16 clients share its connections.
func TestBehindPoolers(t *testing.T) {
	t.Parallel()
	for _, mode := range []pg.Pooler{pg.SessionPooler, pg.TransactionPooler} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited, Behind: mode})
			recordExamples(t, h).AtOnce(t)
		})
	}
}
