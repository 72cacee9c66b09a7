package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestDidYouMean: what nothing is called ends with what is likely meant.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	flag := database(t)
	d := opened(t, flag)
	insertClients(t, d, "Acme", "Hill Bakery", "Lighthouse Shipping")
	insertClients(t, d, "Brick & Sons", "Other")
	for _, tt := range []struct {
		code       int
		line, want string
	}{
		{2, "servee", `did you mean "serve"?`},
		{2, "key list", `did you mean "keys"?`},
		{2, "keys lst", `did you mean "list"?`},
		{2, "help keyz", `did you mean "keys"?`},
		{2, "keys list --jsn", `did you mean "--json"?`},
		{1, "mail switches HIL/BAKERY", `or its name, did you mean "Hill Bakery"?`},
		{1, "mail switches lighthouse", `or its name, did you mean "Lighthouse Shipping"?`},
		{1, "directory run hill/bakeri", `did you mean "Hill Bakery"?`},
		{1, "mail switches zebra", "or its name\n"},
		{1, "webhooks list --partner=acmee", `shows them, did you mean "Acme"?`},
		{1, "export --partner=sons", `shows them, did you mean "Brick & Sons"?`},
		{1, "export --partner=zebra", "shows them\n"},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=hill/baker", `--clients: there is no client "hill baker"`},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=usr_01m7y3nn85edyb80dbaa8e2evb", "there is no client \"usr_01m7y3nn85edyb80dbaa8e2evb\""},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=othr", "or its name\n"}, // another partner's
		{2, "reports make hill executive_sumary --out=" + os.DevNull, `did you mean "executive_summary"?`},
	} {
		args := strings.Fields(tt.line)
		for i := range args {
			if !strings.HasPrefix(tt.line, "reports") {
				args[i] = strings.ReplaceAll(args[i], "/", " ")
			}
		}
		if tt.code == 1 {
			args = append(args, flag)
		}
		if r := command(t, args...); r.code != tt.code || !strings.Contains(r.err, tt.want) {
			t.Errorf("%s: exit %d: %s", tt.line, r.code, r.err)
		}
	}
}

// TestNamedByIDOrName: a command takes a client and a partner by id, UUID or name.
func TestNamedByIDOrName(t *testing.T) {
	t.Parallel()
	flag := database(t)
	d := opened(t, flag)
	clients := insertClients(t, d, "Acme", "Hill", "Vale")
	insertClients(t, d, "Brick", "Hill")
	partner := partnerNamed(t, d, "Acme")
	for _, name := range []string{partner.String(), strings.ToUpper(partner.UUID()), "acme"} {
		must(t, "webhooks", "list", "--partner="+name, flag)
		if got := must(t, "export", "--partner="+name, flag); !strings.Contains(got, clients[0].String()) || strings.Contains(got, "Brick") {
			t.Errorf("exported of %s:\n%s", name, got)
		}
	}
	for _, name := range []string{clients[0].String(), clients[0].UUID(), "hill", "Vale, " + clients[0].String()} { // Brick has a Hill too
		key := newKey(t, flag, "--partner="+partner.UUID(), "--name="+name, "--scopes=read", "--clients="+name)
		var reached int
		if err := d.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM api_keys AS k JOIN api_key_clients AS c ON c.key_id = k.id
			WHERE k.prefix = $1 AND c.client_id = $2`, prefix(key), clients[0]).Scan(&reached); err != nil || reached != 1 {
			t.Errorf("the key for %s reaches %d: %v", name, reached, err)
		}
	}
}

// TestClientAt: commands that call a service take a client by id, UUID or name, too.
func TestClientAt(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/v2/clients" || r.Header.Get("X-API-Key") != "key" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		all := map[string]string{
			"hill": `{"id":"cli_1","name":"Hill"},{"id":"cli_2","name":"Hill Bakery"}`, "twin": `{"id":"cli_3","name":"Twin"},{"id":"cli_4","name":"twin"}`,
			"hill b": `{"id":"cli_2","name":"Hill Bakery"}`,
		}
		fmt.Fprintf(w, `{"data":[%s],"page":{}}`, all[r.URL.Query().Get("q")])
	}))
	t.Cleanup(service.Close)
	id := domain.ClientID{1}
	for text, want := range map[string]string{
		"17": "17", "cli_9": "cli_9", id.UUID(): id.String(), "hill": "cli_1",
		"zebra":  `the key reaches no client "zebra": name one by its id, as GET /v2/clients shows it, or its name`,
		"hill b": `the key reaches no client "hill b": name one by its id, as GET /v2/clients shows it, or its name, did you mean "Hill Bakery"?`,
		"twin":   `2 clients are called "twin": name one by its id, cli_3 or cli_4`,
	} {
		got, err := clientAt(t.Context(), service.URL+"/base/", "key", text)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
	for _, key := range []string{"key", "other"} {
		r := command(t, "webhooks", "listen", "--url="+service.URL+"/base", "--key="+key, "--client=zebra", "--forward-to=http://127.0.0.1:9")
		if says := map[string]string{"key": "no client", "other": "401"}[key]; r.code != 1 || !strings.Contains(r.err, "--client: ") || !strings.Contains(r.err, says) {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	}
}
