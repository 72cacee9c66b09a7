package v1compat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// each calls each operation with a request that succeeds unless the service fails.
func (s *scene) each(fn func(*route, v2test.Response)) {
	s.T.Helper()
	for _, r := range s.facade.routes {
		good := s.good(r)
		fn(r, s.Do(r.Method, good.path, s.Key, good.body))
	}
}

// TestInternalErrors: a mistake of the service is a 500 that shows nothing of it (decisions 2.6).
func TestInternalErrors(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{Options: v2test.Options{Log: io.Discard}})
	for _, table := range []string{"partners", "clients", "users", "v1_usage", "v1_rehearsals"} {
		s.Exec("ALTER TABLE " + table + " RENAME TO lost_" + table)
	}
	s.each(func(r *route, got v2test.Response) {
		envelope(t, r.ID, got, http.StatusInternalServerError, domain.Internal, "something went wrong on our side; try again, and report the request ID if the problem persists")
		if strings.Contains(string(got.Body), "lost") || strings.Contains(string(got.Body), "relation") {
			t.Errorf("%s shows %s", r.ID, got.Body)
		}
	})
}
