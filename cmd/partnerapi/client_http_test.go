package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"partnerapi/v2/op/mcp"
)

// redirecting is a service that redirects to another host, which counts what comes.
func redirecting(t *testing.T, good func(http.ResponseWriter, *http.Request) bool) (address string, came *atomic.Int64) {
	t.Helper()
	came = &atomic.Int64{}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if good == nil || !good(w, r) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(first.Close)
	return first.URL, came
}

// TestNoRedirectIsFollowed: no command that calls a service with a key follows it to
// another host, and each says so.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	lines := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(lines, []byte("/v1/clients\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"mcp", "--key=pk_secret", "--url=URL"}, "not followed"},
		{[]string{"health", "URL"}, "not followed"},
		{[]string{"parity", "--key=pk_secret", "--url=URL"}, ""},
		{[]string{"parity", "replay", lines, "--key=pk_secret", "--url=URL"}, ""},
	} {
		if tt.args[0] == "parity" && !older() {
			continue
		}
		address, came := redirecting(t, nil)
		for i := range tt.args {
			tt.args[i] = strings.ReplaceAll(tt.args[i], "URL", address)
		}
		r := command(t, tt.args...)
		if r.code == 0 || came.Load() != 0 || !strings.Contains(r.err, tt.says) {
			t.Errorf("%v: exit %d, %d requests to the other host, %s%s", tt.args, r.code, came.Load(), r.out, r.err)
		}
	}
}

// TestBridgeIsNotRedirected in the middle of a session.
func TestBridgeIsNotRedirected(t *testing.T) {
	t.Parallel()
	address, came := redirecting(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.URL.Path == mcp.Path {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return r.Method == http.MethodGet
	})
	var out, errs bytes.Buffer
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	run(t.Context(), []string{"mcp", "--key=pk_secret", "--url=" + address}, strings.NewReader(in), &out, &errs)
	if came.Load() != 0 || !strings.Contains(out.String()+errs.String(), "not followed") {
		t.Errorf("%d requests to the other host: %s%s", came.Load(), &out, &errs)
	}
}

// TestOneHTTPClient: commands call services by the package client.
func TestOneHTTPClient(t *testing.T) {
	t.Parallel()
	for name, text := range sources(t) {
		for _, own := range []string{"http.Client{", "http.DefaultClient", "http.Get(", "http.Post("} {
			if strings.Contains(text, own) {
				t.Errorf("%s uses %s, not the package client", name, own)
			}
		}
	}
}
