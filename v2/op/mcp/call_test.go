package mcp_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// callCase is a call and the request that it stands for.
type callCase struct {
	tool      string
	arguments map[string]any
	method    string
	path      string
	body      any
	code      domain.Code // of the error; empty for success
}

const stranger = "cli_01h455vb4pex5vsknk084sn02q"

// cases are calls that change nothing, or fail.
func (w *world) cases() []callCase {
	client, user := w.client.ID.String(), w.user.ID.String()
	return []callCase{
		{tool: "clients_list", arguments: map[string]any{}, method: "GET", path: "/v2/clients"},
		{tool: "clients_list", arguments: map[string]any{"limit": 1}, method: "GET", path: "/v2/clients?limit=1"},
		{tool: "clients_get", arguments: map[string]any{"client_id": client}, method: "GET", path: "/v2/clients/" + client},
		{tool: "clients_risk", arguments: map[string]any{"client_id": client}, method: "GET", path: "/v2/clients/" + client + "/risk"},
		{tool: "users_list", arguments: map[string]any{"client_id": client, "limit": 5}, method: "GET", path: "/v2/clients/" + client + "/users?limit=5"},
		{tool: "users_get", arguments: map[string]any{"user_id": user}, method: "GET", path: "/v2/users/" + user},
		{tool: "users_training", arguments: map[string]any{"user_id": user}, method: "GET", path: "/v2/users/" + user + "/training"},
		{tool: "partner_get", arguments: map[string]any{}, method: "GET", path: "/v2/partner"},
		{tool: "clients_get", arguments: map[string]any{"client_id": stranger}, method: "GET", path: "/v2/clients/" + stranger, code: domain.NotFound},
		{tool: "clients_get", arguments: map[string]any{"client_id": "../partner"}, method: "GET", path: "/v2/clients/..%2Fpartner", code: domain.NotFound},
		{tool: "clients_get", arguments: map[string]any{"client_id": "a?b#c%/é"}, method: "GET", path: "/v2/clients/a%3Fb%23c%25%2F%C3%A9", code: domain.NotFound},
		{tool: "clients_list", arguments: map[string]any{"limit": 501}, method: "GET", path: "/v2/clients?limit=501", code: domain.InvalidRequest},
		{tool: "clients_list", arguments: map[string]any{"limit": "many"}, method: "GET", path: "/v2/clients?limit=many", code: domain.InvalidRequest},
		{tool: "clients_create", arguments: map[string]any{"nam": "X"}, method: "POST", path: "/v2/clients",
			body: map[string]any{"nam": "X"}, code: domain.InvalidRequest},
		{tool: "clients_create", arguments: map[string]any{"name": 7}, method: "POST", path: "/v2/clients",
			body: map[string]any{"name": 7}, code: domain.InvalidRequest},
		{tool: "clients_create", arguments: map[string]any{"name": nil}, method: "POST", path: "/v2/clients",
			body: map[string]any{"name": nil}, code: domain.InvalidRequest},
		{tool: "clients_update", arguments: map[string]any{"client_id": client, "name": ""}, method: "PATCH", path: "/v2/clients/" + client,
			body: map[string]any{"name": ""}, code: domain.InvalidRequest},
	}
}

// TestParity: a tool answers what HTTP does, errors too.
func TestParity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{Options: v2test.Options{Limits: v2test.Unlimited}})
	session := w.connect(w.tenant.Key, everything)
	for _, c := range w.cases() {
		t.Run(c.tool, func(t *testing.T) {
			w := w.in(t)
			byHTTP := w.plain(c.method, c.path, c.body)
			out := w.call(session, c.tool, c.arguments)
			if got := codeOf(out); got != c.code || byHTTP.code() != c.code {
				t.Fatalf("code %q by the tool and %q by HTTP, not %q: %s", got, byHTTP.code(), c.code, parameterText(out))
			}
			if c.code != "" {
				if out.StructuredContent != nil {
					t.Error("an error has structured content")
				}
				if got, want := anonymous(parameterText(out)), anonymous(string(byHTTP.body)); got != want {
					t.Errorf("the tool says %s\nHTTP says %s", got, want)
				}
				return
			}
			if parameterText(out) != string(byHTTP.body) {
				t.Errorf("the tool says %s\nHTTP says %s", parameterText(out), byHTTP.body)
			}
			if !same(t, out.StructuredContent, byHTTP.body) {
				t.Errorf("structured content %v\nHTTP says %s", out.StructuredContent, byHTTP.body)
			}
		})
	}
}

// plain sends a request to an operation.
func (w *world) plain(method, path string, body any) answer {
	w.T.Helper()
	text := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			w.T.Fatal(err)
		}
		text = string(encoded)
	}
	return w.sendTo(path, method, text, "X-API-Key", w.tenant.Key)
}

// anonymous is an envelope without its request id.
func anonymous(envelope string) string {
	before, after, _ := strings.Cut(envelope, `"request_id":"`)
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}

func same(t *testing.T, value any, text []byte) bool {
	t.Helper()
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	a, err := json.Marshal(value)
	b, err2 := json.Marshal(want)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return string(a) == string(b)
}

// TestWrongArguments: every argument that is wrong is named in one envelope.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	cases := []struct {
		name, tool, arguments string
		fields                map[string]string
	}{
		{"unknown", "clients_list", `{"unknown":1}`, map[string]string{"unknown": "is unknown"}},
		{"unknown beside others", "clients_list", `{"unknown":1,"limit":"x","sort":3}`,
			map[string]string{"unknown": "is unknown", "limit": "must be an integer"}},
		{"missing in the path", "clients_get", `{}`, map[string]string{"client_id": "is required"}},
		{"missing in the path and the body", "users_create", `{"first_name":"X"}`,
			map[string]string{"client_id": "is required", "email": "is required"}},
		{"blank", "clients_get", `{"client_id":" "}`, map[string]string{"client_id": "must not be blank"}},
		{"null", "users_list", `{"client_id":null,"limit":null}`,
			map[string]string{"client_id": "must not be null", "limit": "must not be null"}},
		{"of another type", "clients_get", `{"client_id":["a"]}`, map[string]string{"client_id": "must be a string"}},
		{"a fraction", "clients_list", `{"limit":1.5}`, map[string]string{"limit": "must be an integer"}},
		{"too large", "clients_list", `{"limit":1e300}`, map[string]string{"limit": "must be an integer"}},
		{"a boolean's text", "users_list", `{"client_id":"` + w.client.ID.String() + `","overdue":"true","limit":"5"}`,
			map[string]string{"overdue": "must be true or false", "limit": "must be an integer"}},
		{"a boolean's number", "users_list", `{"client_id":"` + w.client.ID.String() + `","overdue":1}`,
			map[string]string{"overdue": "must be true or false"}},
		{"twice", "clients_list", `{"limit":1,"limit":2}`, map[string]string{"limit": "must be given once"}},
		{"twice in the body", "clients_create", `{"name":"a","name":"b"}`, map[string]string{"name": "must be given once"}},
		{"an array", "clients_list", `[]`, map[string]string{"arguments": "must be a JSON object"}},
		{"a key", "clients_create", `{"name":"a","idempotency_key":5}`, map[string]string{"idempotency_key": "must be a string"}},
		{"nothing to change", "clients_update", `{"client_id":"` + w.client.ID.String() + `"}`,
			map[string]string{"body": "must name at least one field to change"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := w.in(t)
			before := w.Number("SELECT count(*) FROM clients")
			a := w.send("POST", callOf(c.tool, json.RawMessage(c.arguments)), "X-API-Key", w.tenant.Key)
			var m struct {
				Result struct {
					Content           []struct{ Text string }
					StructuredContent any
					IsError           bool
				}
			}
			if err := json.Unmarshal(a.body, &m); err != nil || a.status != http.StatusOK || !m.Result.IsError {
				t.Fatalf("status %d: %s", a.status, a.body)
			}
			var e struct {
				Error struct {
					Code   domain.Code
					Fields []domain.FieldError
				}
			}
			if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &e); err != nil || e.Error.Code != domain.InvalidRequest {
				t.Fatalf("%v: %s", err, a.body)
			}
			found := map[string]string{}
			for _, f := range e.Error.Fields {
				found[f.Field] = f.Message
			}
			for field, message := range c.fields {
				if found[field] != message {
					t.Errorf("%s %q, not %q: %s", field, found[field], message, a.body)
				}
			}
			if w.Number("SELECT count(*) FROM clients") != before {
				t.Error("it has been done")
			}
		})
	}
}

// TestNumbersAndBooleans: an integer is one however JSON writes it, and a boolean is taken.
func TestNumbersAndBooleans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	session := w.connect(w.tenant.Key, everything)
	for _, arguments := range []string{
		`{"limit":5}`, `{"limit":5.0}`, `{"limit":5e0}`, `{"limit":0.5e1}`, `{"limit":5,"overdue":true}`, `{"limit":5,"overdue":false}`,
	} {
		members := strings.Replace(arguments, "{", `{"client_id":"`+w.client.ID.String()+`",`, 1)
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "users_list", Arguments: json.RawMessage(members)})
		if err != nil || result.IsError {
			t.Errorf("%s: %v, %+v", arguments, err, result)
		}
	}
}

// TestWrites: writes are done, once for a key of idempotency, and those without
// an answer say so.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{Options: v2test.Options{Audit: true}})
	session := w.connect(w.tenant.Key, everything)
	arguments := map[string]any{"client_id": w.client.ID.String(), "name": "Group", "idempotency_key": "once"}
	first := w.call(session, "collections_create", arguments)
	again := w.call(session, "collections_create", arguments)
	if first.IsError || parameterText(first) != parameterText(again) {
		t.Fatalf("first %s\nthen %s", parameterText(first), parameterText(again))
	}
	id := first.StructuredContent.(map[string]any)["id"]
	out := w.call(session, "collections_delete", map[string]any{"client_id": w.client.ID.String(), "collection_id": id})
	if out.IsError || out.StructuredContent != nil || parameterText(out) == "" {
		t.Errorf("removal: %+v", out)
	}
	if n := w.Number("SELECT count(*) FROM audit_entries WHERE operation IN ('collections.create', 'collections.delete')"); n != 2 {
		t.Errorf("%d entries of the audit trail, not 2", n)
	}
}

// TestResources: guides, and a client as its tool shows it.
func TestResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	session := w.connect(w.tenant.Key, everything)
	list, err := session.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].Title != "Begin here" {
		t.Fatalf("%v: %+v", err, list)
	}
	guide, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: list.Resources[0].URI})
	if err != nil || !strings.Contains(guide.Contents[0].Text, "Text.") || guide.Contents[0].MIMEType != "text/markdown" {
		t.Errorf("%v: %+v", err, guide)
	}
	client, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "partner://clients/" + w.client.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	if want := w.plain("GET", "/v2/clients/"+w.client.ID.String(), nil); client.Contents[0].Text != string(want.body) {
		t.Errorf("the resource is %s\nHTTP says %s", client.Contents[0].Text, want.body)
	}
	if list.CacheScope != "private" || client.CacheScope != "private" {
		t.Errorf("what one key is shown is cached as %q and %q", list.CacheScope, client.CacheScope)
	}
	_, err = session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "partner://clients/" + stranger})
	if err == nil || !strings.Contains(err.Error(), "no such client, or this key has no access to it") {
		t.Errorf("a client that is not there: %v", err)
	}
}

// TestMoreMembers: a call is answered alike with a member that the protocol does not know.
func TestMoreMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{Options: v2test.Options{Limits: v2test.Unlimited}})
	same := func(tool string, without, with map[string]any) {
		t.Helper()
		plain := w.send("POST", callOf(tool, without), "X-API-Key", w.tenant.Key, "X-Request-Id", "same")
		more := w.send("POST", `{"more":1,`+callOf(tool, with)[1:], "X-API-Key", w.tenant.Key, "X-Request-Id", "same")
		var a, b any
		if json.Unmarshal(plain.body, &a) != nil || json.Unmarshal(more.body, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nwithout it: %s\nwith it: %s", tool, plain.body, more.body)
		}
		if plain.status != more.status || plain.header.Get("Content-Type") != more.header.Get("Content-Type") {
			t.Errorf("%s: %v and %v", tool, plain.header, more.header)
		}
	}
	for _, c := range w.cases() {
		same(c.tool, c.arguments, c.arguments)
	}
	removal := func(name string) map[string]any {
		return map[string]any{"client_id": w.client.ID.String(), "collection_id": w.Collection(w.client.ID, name).String()}
	}
	same("collections_delete", removal("A"), removal("B"))
}

// TestIDsLikeLists: an id that reads like an empty list is answered as it is.
func TestIDsLikeLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for method, want := range map[string]string{"tools/call": `"content":[{"type":"text"`, "tools/list": `"tools":[{`} {
		id := `"content":[] "tools":[] \`
		text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": map[string]any{"name": "clients_list"}})
		if err != nil {
			t.Fatal(err)
		}
		a := w.send("POST", string(text), "X-API-Key", w.tenant.Key)
		var m struct{ ID string }
		if err := json.Unmarshal(a.body, &m); err != nil || m.ID != id || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %v %.300s", method, err, a.body)
		}
	}
}
