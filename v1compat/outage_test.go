package v1compat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v2/v2test"
)

// TestOutage: what the service gets wrong is a 500 that shows nothing of it; a
// database that cannot be reached is a 503, until it can (decisions 2.6).
func TestOutage(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	if err := idmaptest.Schema.Apply(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	s := newScene(t, setup{Options: v2test.Options{URL: server.URL(), Log: io.Discard}})
	each := func(fn func(*route, v2test.Response)) {
		t.Helper()
		for _, r := range s.facade.routes {
			good := s.good(r)
			fn(r, s.Do(r.Method, good.path, s.Key, good.body))
		}
	}
	each(func(r *route, got v2test.Response) { got.Want(r.Status) })
	server.Kill()
	for failed := 0; failed < 50; failed++ { // in a row: no process of it answers any more
		if s.DB.Ping(t.Context()) == nil {
			failed = 0
		}
	}
	for range 3 {
		each(func(r *route, got v2test.Response) {
			envelope(t, r.ID, got, 503, domain.Unavailable, "temporarily offline")
		})
	}
	server.Start()
	each(func(r *route, got v2test.Response) { got.Want(r.Status) })
	for _, table := range []string{"partners", "clients", "users", "v1_usage", "v1_rehearsals"} {
		s.Exec("ALTER TABLE " + table + " RENAME TO lost_" + table)
	}
	each(func(r *route, got v2test.Response) {
		envelope(t, r.ID, got, http.StatusInternalServerError, domain.Internal, "something went wrong on our side")
		if strings.Contains(string(got.Body), "lost") || strings.Contains(string(got.Body), "relation") {
			t.Errorf("%s shows %s", r.ID, got.Body)
		}
	})
}
