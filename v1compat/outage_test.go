//go:build slow

package v1compat

import (
	"io"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v2/v2test"
)

// TestOutage: while the database cannot be reached, each operation is a 503 (decisions 2.6).
func TestOutage(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	if err := idmaptest.Schema.Apply(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	s := newScene(t, setup{Options: v2test.Options{URL: server.URL(), Log: io.Discard}})
	s.each(func(r *route, got v2test.Response) { got.Want(r.Status) })
	server.Kill()
	s.AwaitOutage()
	for range 3 {
		s.each(func(r *route, got v2test.Response) {
			envelope(t, r.ID, got, 503, domain.Unavailable, "temporarily offline; try again later")
		})
	}
	server.Start()
	s.each(func(r *route, got v2test.Response) { got.Want(r.Status) })
}
