package mcp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// TestOneClient verifies that a session with a client has the access of a key with exactly that client: it is shown the
// same, and finds nothing of another client.
func TestOneClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	both := []domain.Scope{domain.Read, domain.Write}
	other := w.AddClient(w.tenant, "Other")
	stranger := w.AddUser(w.tenant, other.ID, "second@example.com")
	exact := w.AddKey(w.tenant, both, []domain.ClientID{w.client.ID})
	pair := w.AddKey(w.tenant, both, []domain.ClientID{w.client.ID, other.ID})
	for _, clients := range [][]domain.ClientID{{}, {w.client.ID}, {other.ID}, {w.client.ID, other.ID}} {
		for _, key := range []string{w.tenant.Key, pair} {
			w.Do("POST", "/v2/webhooks", key, map[string]any{
				"url": "https://example.com/hook", "events": []string{"user.created"}, "client_ids": clients,
			}).Want(http.StatusCreated)
		}
	}

	id := w.client.ID.String()
	usual := w.connect(exact, everything)
	for name, key := range map[string]string{"all clients": w.tenant.Key, "two clients": pair, "one client": exact} {
		session := w.connect(key, everything+"&client_id="+id)
		tools, shown := w.toolsOf(usual), w.toolsOf(session)
		if len(tools) != len(shown) || shown["clients_create"] != nil {
			t.Errorf("%s: %d tools are shown, not %d", name, len(shown), len(tools))
		}
		for tool, arguments := range map[string]map[string]any{
			"clients_list": {}, "users_find": {"email": "second@example.com"}, "events_list": {}, "webhooks_list": {}, "partner_get": {},
			"users_list": {"client_id": id},
		} {
			want, got := parameterText(w.call(usual, tool, arguments)), parameterText(w.call(session, tool, arguments))
			if tool == "events_list" { // the cursors are encrypted
				want, _, _ = strings.Cut(want, `"page"`)
				got, _, _ = strings.Cut(got, `"page"`)
			}
			if got != want {
				t.Errorf("%s: %s is %s, not %s", name, tool, got, want)
			}
		}
		var own api.Key
		if err := json.Unmarshal([]byte(parameterText(w.call(session, "key_get", nil))), &own); err != nil || own.AllClients || !slices.Equal(own.ClientIDs, []domain.ClientID{w.client.ID}) {
			t.Errorf("%s: %v %+v", name, err, own)
		}
		w.findsNothing(t, name, session, other.ID, stranger.ID)
		if _, err := session.ReadResource(t.Context(), read("partner://clients/"+other.ID.String())); err == nil {
			t.Errorf("%s: the other client is a resource", name)
		}
		if _, err := session.ReadResource(t.Context(), read("partner://clients/"+id)); err != nil {
			t.Errorf("%s: the client: %v", name, err)
		}
	}
}

// TestWebhooksOfOneClient verifies that a session with a client creates and changes webhooks of that client only, and that
// one that it takes over does not become wider.
func TestWebhooksOfOneClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	both := []domain.Scope{domain.Read, domain.Write}
	other := w.AddClient(w.tenant, "Other")
	session := w.connect(w.tenant.Key, everything+"&client_id="+w.client.ID.String())
	webhook := map[string]any{"url": "https://example.com/hook", "events": []string{"user.created"}}
	hookOf := func(tool string, arguments map[string]any) (hook api.Webhook) {
		t.Helper()
		out := w.call(session, tool, arguments)
		if err := json.Unmarshal([]byte(parameterText(out)), &hook); err != nil || out.IsError || !slices.Equal(hook.ClientIDs, []domain.ClientID{w.client.ID}) {
			t.Fatalf("%s: %v %s", tool, err, parameterText(out))
		}
		return hook
	}
	made := hookOf("webhooks_create", webhook)
	for _, clients := range [][]domain.ClientID{{}, {other.ID}} {
		out := w.call(session, "webhooks_update", map[string]any{"webhook_id": made.ID, "client_ids": clients})
		if codeOf(out) != domain.InvalidRequest || !strings.Contains(parameterText(out), "client_ids") {
			t.Errorf("with the clients %v: %s", clients, parameterText(out))
		}
	}
	hookOf("webhooks_update", map[string]any{"webhook_id": made.ID, "description": "x"})
	if out := w.call(session, "webhooks_create", map[string]any{"url": "https://example.com/hook", "events": []string{"user.created"}, "client_ids": []domain.ClientID{other.ID}}); codeOf(out) != domain.InvalidRequest {
		t.Errorf("of another client: %s", parameterText(out))
	}

	old := w.AddKey(w.tenant, both, []domain.ClientID{w.client.ID})
	left := w.Do("POST", "/v2/webhooks", old, webhook).Want(http.StatusCreated)
	w.Exec("UPDATE api_keys SET revoked_at = $1 WHERE NOT all_clients", w.Clock.Now())
	hookOf("webhooks_update", map[string]any{"webhook_id": left.Field("id"), "status": "active"})
}

// TestClientStays verifies that a session keeps its client, whatever later messages name, and that a message without a
// session has the client that it names.
func TestClientStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	other := w.AddClient(w.tenant, "Other")
	listed := func(query string, headers ...string) string {
		t.Helper()
		call := callOf("clients_list", map[string]any{"fields": []string{"name"}, "sort": "name"})
		a := w.sendTo(mcp.Path+query, "POST", call, append(headers, "X-API-Key", w.tenant.Key)...)
		names := strings.Split(a.reply(t).text(t), "\n")
		return strings.Join(names[1:len(names)-1], " ")
	}
	begin := func(query string) []string {
		a := w.sendTo(mcp.Path+query, "POST", hello, "X-API-Key", w.tenant.Key)
		return []string{"Mcp-Session-Id", a.Header.Get("Mcp-Session-Id")}
	}
	narrow, wide := begin("?client_id="+w.client.ID.String()), begin("")
	for _, c := range []struct {
		query   string
		headers []string
		want    string
	}{
		{"", narrow, "Client"},
		{"?client_id=" + other.ID.String(), narrow, "Client"},
		{"?client_id=", narrow, "Client"},
		{"", wide, "Client Other"},
		{"?client_id=" + other.ID.String(), wide, "Other"},
		{"?client_id=" + other.ID.String(), nil, "Other"},
		{"", nil, "Client Other"},
	} {
		if got := listed(c.query, c.headers...); got != c.want {
			t.Errorf("%s %v lists %s, not %s", c.query, c.headers, got, c.want)
		}
	}
	newest, headers := newestMessage("tools/call", "clients_list", `"name":"clients_list","arguments":{"fields":["name"]},`)
	a := w.sendTo(mcp.Path+"?client_id="+other.ID.String(), "POST", newest, append(headers, "X-API-Key", w.tenant.Key)...)
	if text := a.reply(t).text(t); text != "name\nOther\n1 rows, no more" {
		t.Errorf("the newest version lists %s", text)
	}

	w.Exec("UPDATE clients SET archived_at = $1 WHERE id = $2", w.Clock.Now(), w.client.ID)
	a = w.send("POST", listTools, append(narrow, "X-API-Key", w.tenant.Key)...)
	if wantFault(t, a); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "client_id") {
		t.Errorf("after the client was archived: %d %s", a.Status, a.Body)
	}
	if a := w.send("DELETE", "", append(narrow, "X-API-Key", w.tenant.Key)...); a.Status != http.StatusNoContent {
		t.Errorf("its end: %d %s", a.Status, a.Body)
	}

	earlier := newWorld(t, v2test.Options{Release: op.V2_4})
	if a := earlier.sendTo(mcp.Path+"?client_id=none", "POST", listTools, "X-API-Key", earlier.tenant.Key); a.Status != http.StatusOK {
		t.Errorf("release 2.4: %d %s", a.Status, a.Body)
	}
}

// TestUnknownClient verifies that a client to which the key has no access is a clear error, which begins no session and
// counts against the budget of messages.
func TestUnknownClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: ginop.Limits{PerKey: 60, PerAddress: 1000, PerClientFactor: 1}})
	theirs := w.AddClient(w.AddPartner("Other"), "Theirs")
	hidden := w.AddClient(w.tenant, "Hidden")
	key := w.AddKey(w.tenant, []domain.Scope{domain.Read}, []domain.ClientID{w.client.ID})
	id := w.client.ID.String()
	for _, query := range []string{
		"client_id=" + theirs.ID.String(), "client_id=" + hidden.ID.String(), "client_id=cli_01h455vb4pex5vsknk084sn02q", "client_id=",
		"client_id=none", "client_id=" + w.user.ID.String(), "client_id=" + id + "&client_id=" + id, "client_id=" + strings.Repeat("x", 5000), "client_id=%E2%80%AE",
		"client_id[]=" + id, "client_id[0]=" + id,
	} {
		for _, body := range []string{hello, listTools, callOf("clients_list", nil)} {
			a := w.sendTo(mcp.Path+"?"+query, "POST", body, "X-API-Key", key)
			wantFault(t, a)
			if a.Status != http.StatusBadRequest || a.Header.Get("Mcp-Session-Id") != "" || !strings.Contains(string(a.Body), `"field":"client_id"`) || len(a.Body) > 1000 {
				t.Errorf("%.60s: %d %s", query, a.Status, a.Body)
			}
		}
	}
	for _, query := range []string{"client_id=%CLIENT_ID%", "client_id=" + id + "%zz", "a=b;client_id=" + id, "read_only=1%zz", "tools=clients_list%zz"} {
		if a := w.sendTo(mcp.Path+"?"+query, "POST", listTools, "X-API-Key", key); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "query") {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	for range 50 {
		w.sendTo(mcp.Path+"?client_id=none", "POST", callOf("clients_list", nil), "X-API-Key", key)
	}
	if a := w.sendTo(mcp.Path+"?client_id=none", "POST", callOf("clients_list", nil), "X-API-Key", key); a.Status != http.StatusTooManyRequests {
		t.Errorf("over the budget: %d %s", a.Status, a.Body)
	}
}
