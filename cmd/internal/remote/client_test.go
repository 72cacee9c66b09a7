package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
		"zebra":  `the key reaches no client "zebra": name one by its id, as GET /v2/clients shows it, or its name`,
		"hill b": `the key reaches no client "hill b": name one by its id, as GET /v2/clients shows it, or its name, did you mean "Hill Bakery"?`,
		"twin":   fmt.Sprintf(`2 clients are called "twin": name one by its id, %s or %s`, domain.ClientID{3}, domain.ClientID{4}),
	} {
		got, err := FindClient(t.Context(), service.URL+"/base/", "key", text)
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
