//go:build slow

package v1compat

import (
	"context"
	"sync"
	"testing"

	"partnerapi/v2/v2test"
)

// TestBehindPooler: behind a pooler all routes answer as without one, and none fails while 16 clients share its
// connections and numbers are watched.
func TestBehindPooler(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Options: v2test.Options{Demo: true, Pooled: true}, cached: 1000})
	e := recordExamples(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { s.registry.Watch(ctx, s.Edge.Log) })
	e.AtOnce(t)
	stop()
	watching.Wait()
}
