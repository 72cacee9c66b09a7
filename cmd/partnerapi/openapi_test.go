package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/platform/site"
)

// TestDocuments wants what the command prints to be what services serve, but for their
// address, and to be valid documents with more operations in each release.
func TestDocuments(t *testing.T) {
	t.Parallel()
	printed := func(args ...string) string {
		return strings.ReplaceAll(must(t, append([]string{"openapi"}, args...)...), site.SampleBase, "")
	}
	operations := func(release string) int {
		text := printed("v2", "--release="+release)
		document, err := openapi3.NewLoader().LoadFromData([]byte(text))
		if err == nil {
			err = document.Validate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "operationId: ")
	}
	if a, b, c, d, e := operations("2.0"), operations("2.1"), operations("2.2"), operations("2.3"), operations("2.4"); a != 3 || a >= b || b >= c || c >= d || d > e {
		t.Errorf("operations per release: %d, %d, %d, %d, %d", a, b, c, d, e)
	}
	latest := printed("v2", "--release=latest")
	if latest != printed("v2") || latest != printed("v2", "--release=2.4") {
		t.Error("without --release another document than the latest is printed")
	}

	r := serving(t, databaseFlag(t), "--release=2.0")
	served := func(path string) string {
		return strings.ReplaceAll(string(r.get(path, "").want(http.StatusOK).body), r.address, "")
	}
	if served("/v2/openapi.yaml") != printed("v2", "--release=2.0") || served("/v2/openapi.json") != printed("v2", "--release=2.0", "--json") {
		t.Error("the command prints another document of v2")
	}
	if !older() {
		r.get("/v1/openapi.yaml", "").want(http.StatusNotFound)
		refused(t, 2, []string{"openapi", "v1"}, `"v1"`, "use v2")
		return
	}
	if v1 := printed("v1"); v1 != served("/v1/openapi.yaml") || strings.Count(v1, "operationId: ") < 6 {
		t.Error("the command prints another document of v1")
	}
	refused(t, 2, []string{"openapi", "v1", "--json"}, "--json")
}
