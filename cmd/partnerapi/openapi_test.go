package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// operations parses and validates a document and counts what is in it.
func operations(t *testing.T, document []byte) (n int) {
	t.Helper()
	loaded, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(t.Context()); err != nil {
		t.Errorf("the document: %v", err)
	}
	for _, item := range loaded.Paths.Map() {
		n += len(item.Operations())
	}
	return n
}

// TestDocuments wants what the command prints to be what services serve, but for their
// address.
func TestDocuments(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	counts := map[string]int{}
	for _, release := range []string{"2.1", "2.2", "2.3"} {
		counts[release] = operations(t, []byte(must(t, "openapi", "v2", "--release="+release)))
	}
	for _, release := range []string{"2.0", "latest"} {
		r := serving(t, flag, "--release="+release)
		for path, args := range map[string][]string{"/v2/openapi.yaml": nil, "/v2/openapi.json": {"--json"}} {
			printed := must(t, append([]string{"openapi", "v2", "--release=" + release}, args...)...)
			served := r.get(path, "").want(http.StatusOK)
			if !bytes.Equal(bytes.ReplaceAll(served.body, []byte(r.address), nil), []byte(printed)) {
				t.Errorf("release %s: %s is not what the command prints", release, path)
			}
			counts[release] = operations(t, served.body)
		}
		if older() && release == "2.0" {
			served := r.get("/v1/openapi.yaml", "").want(http.StatusOK)
			if printed := must(t, "openapi", "v1"); printed != strings.ReplaceAll(string(served.body), r.address, "") {
				t.Error("v1: the command prints another document")
			}
			if operations(t, served.body) < 6 {
				t.Error("v1: operations are missing")
			}
		}
		if !older() {
			r.get("/v1/openapi.yaml", "").want(http.StatusNotFound)
		}
		r.finish()
	}
	if counts["2.0"] != 3 || counts["2.1"] <= counts["2.0"] || counts["2.2"] <= counts["2.1"] || counts["latest"] != counts["2.3"] {
		t.Errorf("operations per release: %v", counts)
	}
	if !older() {
		refused(t, 2, []string{"openapi", "v1"}, `"v1"`, "use v2")
		return
	}
	refused(t, 2, []string{"openapi", "v1", "--json"}, "--json")
}

// TestDefaultDocument is of the latest release.
func TestDefaultDocument(t *testing.T) {
	t.Parallel()
	if must(t, "openapi", "v2") != must(t, "openapi", "v2", "--release=latest") {
		t.Error("without --release another document is printed")
	}
}
