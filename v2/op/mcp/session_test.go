package mcp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// TestKeys: a missing or wrong key is answered as the edge does, with the scheme of a bearer
// token, which is a key.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: ginop.Limits{PerKey: 10, PerAddress: 4, PerClientFactor: 1}})
	if a := w.send("POST", hello, "Authorization", "bearer "+w.tenant.Key); a.Status != http.StatusOK {
		t.Errorf("a bearer token: %d %s", a.Status, a.Body)
	}
	for _, headers := range [][]string{{}, {"X-API-Key", "wrong"}, {"Authorization", "Bearer wrong"}, {"Authorization", "Basic " + w.tenant.Key}} {
		a := w.send("POST", hello, headers...)
		scheme := a.Header.Get("WWW-Authenticate")
		if a.Status != http.StatusUnauthorized || a.Code() != domain.Unauthorized || a.Header.Get("X-Request-Id") == "" || scheme != `Bearer realm="partnerapi"` {
			t.Errorf("%v: %d %q %s", headers, a.Status, scheme, a.Body)
		}
	}
	if a := w.send("POST", hello); a.Status != http.StatusTooManyRequests || a.Code() != domain.RateLimited {
		t.Errorf("the address is over its budget: %d %s", a.Status, a.Body)
	}
}

// TestBudgets: only calls of tools and reads of resources count against the key's budget.
func TestBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: ginop.Limits{PerKey: 20, PerAddress: 100, PerClientFactor: 1}})
	session := w.connect(w.tenant.Key, everything)
	for range 2 {
		w.toolsOf(session)
		if _, err := session.ListResources(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	read := func(uri string) error {
		_, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		return err
	}
	if out := w.call(session, "clients_list", nil); out.IsError {
		t.Fatal(parameterText(out))
	}
	if err := read("partner://guides/start"); err != nil {
		t.Fatal(err)
	}
	if out := w.call(session, "clients_list", map[string]any{"limit": "wrong"}); codeOf(out) != domain.InvalidRequest {
		t.Fatal(parameterText(out))
	}
	for range 17 {
		w.call(session, "clients_list", nil)
	}
	if out := w.call(session, "clients_list", nil); codeOf(out) != domain.RateLimited {
		t.Errorf("the 21st: %s", parameterText(out))
	}
	for _, uri := range []string{"partner://guides/start", "partner://clients/" + w.client.ID.String()} {
		if err := read(uri); err == nil || !strings.Contains(err.Error(), "requests a minute") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if len(w.toolsOf(session)) == 0 {
		t.Error("the tools are not listed any more")
	}
}

// TestMessageBudget: messages that run no operation have a budget of their own.
func TestMessageBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: ginop.Limits{PerKey: 5, PerAddress: 100, PerClientFactor: 1}})
	tooLarge := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 1<<20) + `"}`
	for i, body := range []string{hello, listTools, "{", tooLarge, listTools} {
		if a := w.send("POST", body, "X-API-Key", w.tenant.Key); a.Status == http.StatusTooManyRequests {
			t.Errorf("message %d: %d %s", i, a.Status, a.Body)
		}
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		a := w.send(method, listTools, "X-API-Key", w.tenant.Key, "Mcp-Session-Id", "none")
		if a.Status != http.StatusTooManyRequests || a.Code() != domain.RateLimited || a.Header.Get("Retry-After") != "60" {
			t.Errorf("%s beyond the budget: %d %s", method, a.Status, a.Body)
		}
	}
	for range 5 {
		if a := w.send("POST", callOf("clients_list", nil), "X-API-Key", w.tenant.Key); a.Status != http.StatusOK || strings.Contains(string(a.Body), "rate_limited") {
			t.Errorf("a call: %d %s", a.Status, a.Body)
		}
	}
}

// TestScopes: a key is shown what it may call; calling others is refused with the reason.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	some := []domain.ClientID{w.client.ID}
	for name, c := range map[string]struct {
		key          string
		reads, write bool
		all          bool
	}{
		"read":             {w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil), true, false, true},
		"write":            {w.AddKey(w.tenant, []domain.Scope{domain.Write}, nil), false, true, true},
		"all":              {w.tenant.Key, true, true, true},
		"all, some client": {w.AddKey(w.tenant, []domain.Scope{domain.Read, domain.Write}, some), true, true, false},
	} {
		session := w.connect(c.key, everything)
		tools := w.toolsOf(session)
		for _, o := range w.API.Set.All() {
			m, tool := o.Meta(), strings.ReplaceAll(o.Meta().ID, ".", "_")
			may := m.Scope == domain.Read && c.reads || m.Scope == domain.Write && c.write || m.Scope == domain.AnyScope
			may = may && (c.all || !m.AllClients)
			if shown := tools[tool] != nil; shown != may {
				t.Errorf("%s: %s is shown: %v", name, m.ID, shown)
			}
			if may {
				continue
			}
			if out := w.call(session, tool, nil); codeOf(out) != domain.Forbidden {
				t.Errorf("%s: %s: %s", name, m.ID, parameterText(out))
			}
		}
		templates, err := session.ListResourceTemplates(t.Context(), nil)
		if err != nil || (len(templates.ResourceTemplates) == 1) != c.reads {
			t.Errorf("%s: %v: %+v", name, err, templates)
		}
	}
}

// TestOtherTenant: what others own is not found, as by HTTP.
func TestOtherTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	other := w.AddPartner("Other")
	w.findsNothing(t, "another partner", w.connect(other.Key, everything), w.client.ID, w.user.ID)
}

// findsNothing calls all tools that need no more than a client or a user, and wants them not to find these.
func (w *world) findsNothing(t *testing.T, name string, session *sdk.ClientSession, client domain.ClientID, user domain.UserID) {
	t.Helper()
	for _, o := range w.API.Set.All() {
		arguments := map[string]any{}
		for _, p := range o.Input().Path {
			switch p.Name {
			case "client_id":
				arguments[p.Name] = client.String()
			case "user_id":
				arguments[p.Name] = user.String()
			}
		}
		if len(arguments) == 0 || len(arguments) != len(o.Input().Path) || o.Input().Body != nil {
			continue
		}
		out := w.call(session, strings.ReplaceAll(o.Meta().ID, ".", "_"), arguments)
		if codeOf(out) != domain.NotFound || out.StructuredContent != nil {
			t.Errorf("%s: %s: %s", name, o.Meta().ID, parameterText(out))
		}
	}
}

// read asks for a resource.
func read(uri string) *sdk.ReadResourceParams { return &sdk.ReadResourceParams{URI: uri} }

// TestReadOnly: a read-only session, or server, shows what reads and refuses the rest.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	config := config()
	config.ReadOnly = true
	only := newWorld(t, v2test.Options{MCP: config})
	started := w.send("POST", hello, "X-API-Key", w.tenant.Key).Header.Get("Mcp-Session-Id")
	sealed := w.sendTo(mcp.Path+"?read_only=1", "POST", hello, "X-API-Key", w.tenant.Key).Header.Get("Mcp-Session-Id")
	if started == "" || sealed == "" || started == sealed {
		t.Fatalf("sessions %q and %q", started, sealed)
	}
	for name, c := range map[string]struct {
		w       *world
		query   string
		session string
	}{"query": {w, "?read_only=1", started}, "session": {w, "", sealed}, "server": {only, "", ""}} {
		headers := []string{"X-API-Key", c.w.tenant.Key, "Mcp-Session-Id", c.session}
		list := c.w.sendTo(mcp.Path+c.query, "POST", listTools, headers...)
		if bytes := string(list.Body); !strings.Contains(bytes, `"clients_list"`) || strings.Contains(bytes, `"clients_create"`) {
			t.Errorf("%s: the tools are %.300s", name, bytes)
		}
		out := c.w.sendTo(mcp.Path+c.query, "POST", callOf("clients_create", map[string]any{"name": "New"}), headers...)
		if !strings.Contains(string(out.Body), "forbidden") || c.w.Number("SELECT count(*) FROM clients") != 1 {
			t.Errorf("%s: a write: %s", name, out.Body)
		}
	}
	if list := w.send("POST", listTools, "X-API-Key", w.tenant.Key, "Mcp-Session-Id", started); !strings.Contains(string(list.Body), `"clients_create"`) {
		t.Error("the other session is read-only too")
	}
}

// TestSessions: a session belongs to its key, until it is ended or the key is revoked.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	second := w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil)
	begin := func() string { return w.send("POST", hello, "X-API-Key", w.tenant.Key).Header.Get("Mcp-Session-Id") }
	use := func(method, key, session string, status int) answer {
		t.Helper()
		a := w.send(method, listTools, "X-API-Key", key, "Mcp-Session-Id", session)
		if a.Status != status {
			t.Errorf("%d, not %d: %s", a.Status, status, a.Body)
		}
		return a
	}
	session, other := begin(), begin()
	use("POST", w.tenant.Key, session, http.StatusOK)
	for _, id := range []string{session, "x", session + "AA", strings.Repeat("A", 66)} {
		if a := use("POST", second, id, http.StatusNotFound); a.Code() != domain.NotFound {
			t.Errorf("another key, %s: %s", id, a.Body)
		}
	}
	use("DELETE", second, session, http.StatusNotFound)
	use("DELETE", w.tenant.Key, session, http.StatusNoContent)
	use("POST", w.tenant.Key, session, http.StatusNotFound)

	w.Exec("UPDATE api_keys SET revoked_at = $1", w.Clock.Now())
	w.Clock.Advance(ginop.KeyMemory)
	if a := use("POST", w.tenant.Key, other, http.StatusUnauthorized); a.Code() != domain.Unauthorized {
		t.Errorf("a revoked key: %s", a.Body)
	}
}

// TestOrigins: pages of other origins may not use the server, whatever key they have.
func TestOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for origin, status := range map[string]int{
		page: 200, page + ":443": 200, "http://localhost:1": 200, "http://127.0.0.1:1": 200, "http://[::1]:1": 200,
		"https://evil.example": 403, "null": 403, "http://partner.example": 403, page + ":444": 403,
		"http://localhost": 403, "http://localhost:2": 403, "https://partner.example.evil.example": 403, "%": 403,
	} {
		for _, key := range []string{w.tenant.Key, ""} {
			want := status
			if key == "" && status == 200 {
				want = 401
			}
			a := w.send("POST", hello, "X-API-Key", key, "Origin", origin)
			if a.Status != want || want == 403 && a.Code() != domain.Forbidden {
				t.Errorf("%s with the key %q: %d %s", origin, key, a.Status, a.Body)
			}
		}
	}
}

// TestOriginsOf: the origins of a service at an address.
func TestOriginsOf(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string][]string{
		"0.0.0.0:80":      {"http://0.0.0.0", "http://localhost", "http://127.0.0.1", "http://[::1]"},
		"192.0.2.1:8080":  {"http://192.0.2.1:8080"},
		":8080":           {"http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"},
		"127.0.0.1:8080":  {"http://127.0.0.1:8080", "http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"},
		"[2001:db8::1]:1": {"http://[2001:db8::1]:1"},
	} {
		if got := mcp.Origins("HTTPS://API.Example:443/path", listen); !slices.Equal(got, append([]string{"https://api.example"}, want...)) {
			t.Errorf("%s: %v", listen, got)
		}
	}
}

// TestPreflight verifies that a browser lets the scripts of allowed pages use the server, and of no others.
func TestPreflight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	preflight := func(origin string) v2test.Response {
		return w.Do("OPTIONS", mcp.Path, "", nil, "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-api-key,content-type")
	}
	if a := preflight("https://evil.example"); a.Status != http.StatusForbidden || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page: %d %v", a.Status, a.Header)
	}
	a := preflight(page)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST, DELETE", "Access-Control-Allow-Headers": "*, Authorization", "Vary": "Origin",
	} {
		if got := a.Header.Get(name); a.Status != http.StatusNoContent || got != want {
			t.Errorf("%d, %s is %q, want %q", a.Status, name, got, want)
		}
	}
	for _, key := range []string{w.tenant.Key, "wrong"} { // a script may read errors too
		a := w.send("POST", hello, "X-API-Key", key, "Origin", page)
		if a.Header.Get("Access-Control-Allow-Origin") != page || !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
			t.Errorf("%d %v", a.Status, a.Header)
		}
	}
	if a := w.send("POST", hello, "X-API-Key", w.tenant.Key); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a program: %v", a.Header)
	}
	if a := w.send("OPTIONS", "", "X-API-Key", w.tenant.Key); a.Status != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS of a program: %d %s", a.Status, a.Body)
	}
}

// TestParseOrigin verifies which origins an operator may allow.
func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://app.example.com": "https://app.example.com", "HTTPS://App.Example.com:443": "", "https://App.Example.com:443": "https://app.example.com",
		"http://localhost:6274": "http://localhost:6274", "vscode-webview://abc": "vscode-webview://abc", "https://app.example.com/": "", "*": "",
		"https://*.example.com": "", "app.example.com": "", "null": "", "https://a@b": "", "": "",
		"https://bücher.example": "https://xn--bcher-kva.example", "https://BÜCHER.example:443": "https://xn--bcher-kva.example",
		"https://bücher.example:8443": "https://xn--bcher-kva.example:8443", "https://a_b.example": "https://a_b.example",
		"https://\u0338ü.example": "", "ftp://x": "", "FTP://x": "", "ws://x": "", "file://x": "",
	} {
		if got, err := mcp.ParseOrigin(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

// TestReleases: below its release the path is unknown.
func TestReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Release: op.V2_2})
	headers := []string{"X-API-Key", w.tenant.Key, "X-Request-Id", "same"}
	unknown, a := w.sendTo("/nothing", "POST", hello, headers...), w.send("POST", hello, headers...)
	if a.Status != http.StatusNotFound || string(a.Body) != string(unknown.Body) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestRefusals verifies that what is no message is refused as an error of JSON-RPC before it costs anything, with the ID
// if that can be read, and that no stream is offered.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for name, c := range map[string]struct {
		method, body string
		headers      []string
		status, code int
		id, message  string
	}{
		"a stream":     {method: "GET", status: 405, code: -32600, id: "null", message: "POST"},
		"a put":        {method: "PUT", body: listTools, status: 405, code: -32600, id: "null", message: "POST"},
		"no session":   {method: "DELETE", status: 400, code: -32600, id: "null", message: "Mcp-Session-Id"},
		"empty":        {method: "POST", status: 400, code: -32700, id: "null", message: "JSON-RPC 2.0 object"},
		"no JSON":      {method: "POST", body: "{", status: 400, code: -32700, id: "null", message: "JSON-RPC 2.0 object"},
		"half":         {method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"ping"`, status: 400, code: -32700, id: "null", message: "JSON-RPC 2.0 object"},
		"two":          {method: "POST", body: listTools + listTools, status: 400, code: -32700, id: "null", message: "JSON-RPC 2.0 object"},
		"a list":       {method: "POST", body: " [" + listTools + "]", status: 400, code: -32600, id: "null", message: "batches are not accepted"},
		"half a list":  {method: "POST", body: "[" + listTools, status: 400, code: -32700, id: "null", message: "JSON-RPC 2.0 object"},
		"too large":    {method: "POST", body: `{"x":"` + strings.Repeat("x", op.MaxBody) + `"}`, status: 413, code: -32600, id: "null"},
		"no object":    {method: "POST", body: `"text"`, status: 400, code: -32600, id: "null", message: "object"},
		"no UTF-8":     {method: "POST", body: "{\"\xff\":1}", status: 400, code: -32700, id: "null", message: "UTF-8"},
		"no request":   {method: "POST", body: `{"jsonrpc":"1.0","id":{},"method":5}`, status: 400, code: -32600, id: "null", message: "jsonrpc"},
		"no method":    {method: "POST", body: `{"jsonrpc":"2.0","id":1}`, status: 400, code: -32600, id: "1", message: "method is required"},
		"no version":   {method: "POST", body: `{"id":"a","method":"ping"}`, status: 400, code: -32600, id: `"a"`, message: "jsonrpc"},
		"too deep":     {method: "POST", body: `{"jsonrpc":"2.0","id":9,"method":"ping","params":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", status: 400, code: -32600, id: "9", message: "1,000 levels"},
		"far too deep": {method: "POST", body: strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), status: 400, code: -32700, id: "null", message: "1,000 levels"},
		"no ID":        {method: "POST", body: `{"jsonrpc":"2.0","method":"tools/list"}`, status: 400, code: -32600, id: "null", message: "ID"},
		"a foreigner":  {method: "POST", body: listTools, headers: []string{"Mcp-Protocol-Version", "1999-01-01"}, status: 400, code: -32600, id: "2", message: "1999-01-01"},
		"resumed":      {method: "POST", body: listTools, headers: []string{"Last-Event-ID", "7"}, status: 400, code: -32600, id: "2", message: "Last-Event-ID"},
		"a toolset":    {method: "POST", body: listTools, headers: []string{"X-MCP-Toolsets", "none"}, status: 400, code: -32600, id: "2", message: "toolsets"},
		"a tool":       {method: "POST", body: listTools, headers: []string{"X-MCP-Tools", "clients_list,none"}, status: 400, code: -32600, id: "2", message: "no tool none"},
		"plain text":   {method: "POST", body: listTools, headers: []string{"Content-Type", "text/plain"}, status: 415, code: -32600, id: "2", message: "Content-Type"},
		"compressed":   {method: "POST", body: listTools, headers: []string{"Content-Encoding", "gzip"}, status: 415, code: -32600, id: "null", message: "Content-Encoding"},
		"wants a page": {method: "POST", body: listTools, headers: []string{"Accept", "text/html"}, status: 400, code: -32600, id: "2", message: "Accept"},
		"wants events": {method: "POST", body: listTools, headers: []string{"Accept", "text/event-stream"}, status: 400, code: -32600, id: "2", message: "Accept"},
	} {
		a := w.send(c.method, c.body, append(c.headers, "X-API-Key", w.tenant.Key)...)
		r := a.reply(t)
		if a.Status != c.status || r.Error.Code != c.code || string(r.ID) != c.id || !strings.Contains(r.Error.Message, c.message) {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		if allow := a.Header.Get("Allow"); (allow == "POST, DELETE") != (c.status == 405) {
			t.Errorf("%s: Allow is %q", name, allow)
		}
		wantFault(t, a)
	}
	a := w.send("POST", callOf("no_such_tool", nil), "X-API-Key", w.tenant.Key)
	if a.reply(t).Error.Code != -32602 {
		t.Errorf("an unknown tool: %s", a.Body)
	}
}

// TestByteOrderMark verifies that a byte order mark before a message is ignored, and one after it is not.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	const mark = "\ufeff"
	plain := w.send("POST", listTools, "X-API-Key", w.tenant.Key)
	marked := w.send("POST", mark+listTools, "X-API-Key", w.tenant.Key)
	if plain.Status != http.StatusOK || marked.Status != plain.Status || string(marked.Body) != string(plain.Body) {
		t.Errorf("with a byte order mark: got %d %.300s, want %d %.300s", marked.Status, marked.Body, plain.Status, plain.Body)
	}
	for _, body := range []string{mark, mark + mark + listTools, listTools + mark} {
		if a := w.send("POST", body, "X-API-Key", w.tenant.Key); a.reply(t).Error.Code != -32700 {
			t.Errorf("%.20q: got %d %s, want -32700", body, a.Status, a.Body)
		}
	}
}

// TestAccept verifies that a caller need not accept a stream, which is never sent.
func TestAccept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	newest, headers := newestMessage("tools/list", "", "")
	for _, accept := range []string{"application/json", "", "*/*", "application/*;q=0.5", "text/html, application/json", "application/json, text/event-stream"} {
		common := []string{"X-API-Key", w.tenant.Key, "Content-Type", "application/json; charset=utf-8"}
		if accept != "" {
			common = append(common, "Accept", accept)
		}
		for _, a := range []v2test.Response{
			w.Do("POST", mcp.Path, "", listTools, common...), w.Do("POST", mcp.Path, "", newest, append(common, headers...)...),
		} {
			if a.Status != http.StatusOK || a.Header.Get("Content-Type") != "application/json" || !strings.Contains(string(a.Body), `"tools":[{`) {
				t.Errorf("Accept %q: %d %.300s", accept, a.Status, a.Body)
			}
		}
	}
}

// TestNotifications verifies that a notification is never answered, also one that the server does not know.
func TestNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, method := range []string{"notifications/initialized", "notifications/cancelled", "notifications/new/in/2030", "no/such"} {
		a := w.send("POST", `{"jsonrpc":"2.0","method":"`+method+`","params":{"requestId":1}}`, "X-API-Key", w.tenant.Key)
		if a.Status != http.StatusAccepted || len(a.Body) > 0 {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
	}
}

// TestErrorsHideNothing verifies that an error has no invisible characters of the request in it, whichever header or
// part they came in.
func TestErrorsHideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	const hidden = "\u202e\u200b\U000e0041\u2066"
	newest, versions := newestMessage("tools/list", "", "")
	call, names := newestMessage("tools/call", "clients_list", `"name":"clients_list","arguments":{},`)
	for _, body := range []string{hello, listTools, newest, call, callOf("clients_list"+hidden, nil), callOf("clients_list", map[string]any{hidden: 1}), "{"} {
		for _, header := range []string{
			"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Mcp-Param-X", "X-MCP-Toolsets", "X-MCP-Tools", "Accept", "Last-Event-ID", "Content-Type", "Origin",
			"X-Request-Id", "User-Agent",
		} {
			for _, common := range [][]string{nil, versions, names} {
				for _, value := range []string{hidden, "2026-07-28" + hidden, "https://partner.example/" + hidden} {
					a := w.send("POST", body, append(slices.Clone(common), "X-API-Key", w.tenant.Key, header, value)...)
					if a.Status >= 500 || strings.ContainsAny(string(a.Body), hidden) || strings.Contains(strings.ReplaceAll(string(a.Body), `\\`, ""), `\u202e`) {
						t.Errorf("%s of %.60s: %d %s", header, body, a.Status, a.Body)
					}
				}
			}
		}
	}
}

// wantFault wants an error of JSON-RPC in the service's words, with v2's envelope.
func wantFault(t *testing.T, a answer) {
	t.Helper()
	r := a.reply(t)
	code := codeIn(r.Error.Data)
	codes := []domain.Code{domain.InvalidRequest, domain.PayloadTooLarge, domain.UnsupportedEncoding}
	if r.JSONRPC != "2.0" || r.Error.Code != -32600 && r.Error.Code != -32700 || !slices.Contains(codes, code) {
		t.Errorf("no error of JSON-RPC: %s", a.Body)
	}
	wantNoTypes(t, a)
}

// wantNoTypes wants no names of Go's types.
func wantNoTypes(t *testing.T, a answer) {
	t.Helper()
	for _, word := range []string{"mcp.", "jsonrpc2", "Go ", "json:", "unmarshal", "struct"} {
		if strings.Contains(string(a.Body), word) {
			t.Errorf("says %q: %s", word, a.Body)
		}
	}
}

// TestWrongParameters: parameters of another form than the protocol's are refused in
// the service's words, whatever the version and the headers, and begin no session.
func TestWrongParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":7}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":[]}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping","params":7}`,
	} {
		for _, headers := range [][]string{{}, {"Accept", "text/html"}, {"Mcp-Protocol-Version", "2026-07-28"}, {"Mcp-Protocol-Version", "1"}} {
			a := w.send("POST", message, append(headers, "X-API-Key", w.tenant.Key)...)
			if !strings.Contains(string(a.Body), `"error"`) || !json.Valid(a.Body) || a.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s with %v: %d %s", message, headers, a.Status, a.Body)
			}
			wantNoTypes(t, a)
		}
	}
}
