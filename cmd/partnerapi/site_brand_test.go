package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

// TestSiteBrand verifies that the pages show the service's brand, and a change of it once it is read again.
func TestSiteBrand(t *testing.T) {
	t.Parallel()
	d := opened(t, dbtest.URL(t, guideSchema))
	s := builtService(t, d, guideBase, resources{}, "serve", "--release=latest")
	shows := func(want string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/guide/start", nil))
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, want) {
			t.Errorf("got status %d, and no %s in\n%.2000s", w.Code, want, got)
		}
	}
	shows("Partner API</a>")
	execute(t, d, "INSERT INTO brands (id, display_name) VALUES (gen_random_uuid(), 'Fernhill Security')")
	if err := s.readBrand(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows("Fernhill Security</a>")
}
