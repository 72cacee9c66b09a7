package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/platform/site"
	"partnerapi/v1compat"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// TestAnchorsOfMigration: the migration guide is served where v1's answers lead, and
// has a heading for each operation there, which its table of contents names. What
// leads to operations of v2 leads to those that are served.
func TestAnchorsOfMigration(t *testing.T) {
	t.Parallel()
	api := v2.New(nil, nil)
	config, err := pagesOf(api, op.V2_0)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	site.New(config).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/migrating", nil))
	page := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	for meta := range v1compat.New(api, v1compat.Config{}).Routes() {
		if meta.Additive {
			continue
		}
		anchor := v1compat.Anchor(meta.Method, "/v1"+meta.Path)
		heading := meta.Method + " /v1" + op.Braced(meta.Path)
		for _, part := range []string{`<h2 id="` + anchor + `">` + heading + "</h2>", `<a href="#` + anchor + `">` + heading + "</a>"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page has no %s", part)
			}
		}
	}
	for link, served := range map[string]bool{"/docs/reference/v2/clients#clients-list": true, "/docs/reference/v2/users": false} {
		if strings.Contains(page, `href="`+link) != served {
			t.Errorf("a link to %s is there: %v", link, !served)
		}
	}
}
