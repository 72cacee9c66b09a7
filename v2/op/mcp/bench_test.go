package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// The benchmarks compare a call of a tool with its operation: in process, and
// over HTTP with connections that are kept.

func BenchmarkHTTP(b *testing.B) { bench(b, false) }
func BenchmarkCall(b *testing.B) { bench(b, true) }

func bench(b *testing.B, byTool bool) {
	w := newWorld(b, options{Options: v2test.Options{Limits: v2test.Unlimited}})
	for n := range 200 {
		w.User(w.tenant, w.client.ID, v2test.Email(n))
	}
	client := w.client.ID.String()
	for name, c := range map[string]struct{ method, path, body string }{
		"one":  request(byTool, "/v2/clients/"+client, "clients_get", map[string]any{"client_id": client}),
		"page": request(byTool, "/v2/clients/"+client+"/users", "users_list", map[string]any{"client_id": client}),
	} {
		build := func(address string) *http.Request {
			r, err := http.NewRequestWithContext(context.Background(), c.method, address+c.path, bytes.NewBufferString(c.body))
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("X-API-Key", w.tenant.Key)
			return r
		}
		b.Run("process/"+name, func(b *testing.B) {
			for b.Loop() {
				answer := httptest.NewRecorder()
				if w.Engine.ServeHTTP(answer, build("")); answer.Code != http.StatusOK {
					b.Fatal(answer.Body)
				}
			}
		})
		b.Run("network/"+name, func(b *testing.B) {
			for b.Loop() {
				resp, err := http.DefaultClient.Do(build(w.URL))
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

func request(byTool bool, path, tool string, arguments any) struct{ method, path, body string } {
	if byTool {
		return struct{ method, path, body string }{"POST", mcp.Path, callOf(tool, arguments)}
	}
	return struct{ method, path, body string }{"GET", path, ""}
}
