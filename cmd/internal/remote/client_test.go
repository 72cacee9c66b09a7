package remote

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
	"partnerapi/domain"
)

// named is a client of a list, whose id has a number.
func named(n byte, name string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q}`, domain.ClientID{n}, name)
}

// TestClientAt: commands that call a service take a client by id, UUID or name, too.
func TestClientAt(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/v2/clients" || r.Header.Get("X-API-Key") != "key" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		all := map[string]string{
			"hill": named(1, "Hill") + "," + named(2, "Hill Bakery"), "twin": named(3, "Twin") + "," + named(4, "twin"),
			"hill b": named(2, "Hill Bakery"),
		}
		fmt.Fprintf(w, `{"data":[%s],"page":{}}`, all[r.URL.Query().Get("q")])
	}))
	t.Cleanup(service.Close)
	id := domain.ClientID{1}
	for text, want := range map[string]string{
		"17": "17", "cli_9": "cli_9", id.UUID(): id.String(), "hill": domain.ClientID{1}.String(),
		"zebra":  `the key can access no client named "zebra"; specify the client's ID, as returned by GET /v2/clients, or its name`,
		"hill b": `the key can access no client named "hill b"; specify the client's ID, as returned by GET /v2/clients, or its name, did you mean "Hill Bakery"?`,
		"twin":   fmt.Sprintf(`2 clients have the name "twin"; specify the ID of one: %s or %s`, domain.ClientID{3}, domain.ClientID{4}),
	} {
		got, err := FindClient(t.Context(), client.Config{URL: service.URL + "/base/", Key: "key"}, text)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
	for key, says := range map[string]string{"key": "no client", "other": "401"} {
		c := Listen{KeyFlag: KeyFlag{Key: key}, URL: service.URL + "/base", Client: "zebra", ForwardTo: "http://127.0.0.1:9"}
		err := c.Run(t.Context(), cli.Env{Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.HasPrefix(err.Error(), "--client: ") || !strings.Contains(err.Error(), says) {
			t.Error(err)
		}
	}
}

// TestMCPIsNotRedirected: neither before nor in the middle of a session, whose requests the SDK sends and not the client.
func TestMCPIsNotRedirected(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	var came atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	t.Cleanup(other.Close)
	for _, before := range []bool{true, false} {
		first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && !before {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		t.Cleanup(first.Close)
		var out, errs bytes.Buffer
		command := MCP{KeyFlag: KeyFlag{Key: "pk_secret"}, URL: first.URL}
		err := command.Run(t.Context(), cli.Env{In: strings.NewReader(hello), Out: &out, Err: &errs})
		if said := fmt.Sprint(&out, &errs, err); came.Load() != 0 || !strings.Contains(said, "not followed") {
			t.Errorf("%d requests to the other host: %s", came.Load(), said)
		}
	}
}

// TestHealth: the command says what a service says, by its URL or the address it listens on.
func TestHealth(t *testing.T) {
	t.Parallel()
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ready") }))
	t.Cleanup(ready.Close)
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready: the service is stopping")
	}))
	t.Cleanup(stopping.Close)
	for _, tt := range []struct {
		command Health
		says    []string
	}{
		{Health{URL: ready.URL}, []string{"ready\n"}}, {Health{Listen: strings.TrimPrefix(ready.URL, "http://")}, []string{"ready\n"}},
		{Health{URL: "http://127.0.0.1:1"}, []string{"refused"}}, {Health{URL: "somewhere"}, []string{"not the URL of a service"}},
		{Health{URL: stopping.URL}, []string{"503", "the service is stopping"}},
	} {
		var out bytes.Buffer
		err := tt.command.Run(t.Context(), cli.Env{Out: &out})
		for _, word := range tt.says {
			if said := out.String() + fmt.Sprint(err); !strings.Contains(said, word) || (err == nil) != (word == "ready\n") {
				t.Errorf("%+v: %s", tt.command, said)
			}
		}
	}
}
