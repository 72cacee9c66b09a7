//go:build slow

package v2_test

import (
	"testing"

	"partnerapi/v2/v2test"
)

// TestBehindPooler: behind a pooler all operations answer as without one, and none fails while 16 clients share its
// connections.
func TestBehindPooler(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited, Pooled: true})
	recordExamples(t, h).AtOnce(t)
}
