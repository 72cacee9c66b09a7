package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRetirementNotice: once the end of version 1 is announced, the pages that people
// come to say when it is and how to move; no page says so before, or of version 2.
func TestRetirementNotice(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	shows := func(want string) {
		t.Helper()
		s := builtService(t, opened(t, flag), guideBase, resources{}, "serve", "--release=latest")
		for path, noticed := range map[string]bool{
			"/": true, "/docs": true, "/docs/reference/v1": true, "/docs/guide/moving-from-v1": true, "/docs/migrating": true,
			"/docs/reference/v2": false, "/docs/guide/start": false, "/docs/operate": false, "/docs/nothing": false,
		} {
			w := httptest.NewRecorder()
			s.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			page := w.Body.String()
			if got := strings.Contains(page, `role="note"`); got != (noticed && want != "") || got && !strings.Contains(page, want) {
				t.Errorf("%s, where %q is to be seen: %t\n%s", path, want, noticed, page)
			}
		}
	}
	shows("")
	must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2025-03-01")
	shows(`ends on <time datetime="2025-03-01">1 March 2025</time>`)
	must(t, "v1", "end", flag, "--force")
	shows(`Version 1 of the API ended on <time datetime="`)
}
