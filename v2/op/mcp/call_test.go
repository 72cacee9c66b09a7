package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

const stranger = "cli_01h455vb4pex5vsknk084sn02q"

// TestParity: a call is answered as the request that it stands for, errors too, and alike with a
// member that the protocol does not know.
func TestParity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	client, user := w.client.ID.String(), w.user.ID.String()
	of, users := "/v2/clients/"+client, "/v2/clients/"+client+"/users?limit=5"
	for _, c := range []struct {
		tool, arguments string
		method, path    string
		body            any
		code            domain.Code // of the error; empty for success
	}{
		{"clients_list", `{}`, "GET", "/v2/clients", nil, ""},
		{"clients_list", `{"limit":1}`, "GET", "/v2/clients?limit=1", nil, ""},
		{"clients_get", `{"client_id":"` + client + `"}`, "GET", of, nil, ""},
		{"clients_risk", `{"client_id":"` + client + `"}`, "GET", of + "/risk", nil, ""},
		{"users_get", `{"user_id":"` + user + `"}`, "GET", "/v2/users/" + user, nil, ""},
		{"users_training", `{"user_id":"` + user + `"}`, "GET", "/v2/users/" + user + "/training", nil, ""},
		{"partner_get", `{}`, "GET", "/v2/partner", nil, ""},
		// An integer is one however JSON writes it, and a boolean is taken.
		{"users_list", `{"client_id":"` + client + `","limit":5}`, "GET", users, nil, ""},
		{"users_list", `{"client_id":"` + client + `","limit":5.0}`, "GET", users, nil, ""},
		{"users_list", `{"client_id":"` + client + `","limit":5e0}`, "GET", users, nil, ""},
		{"users_list", `{"client_id":"` + client + `","limit":0.5e1}`, "GET", users, nil, ""},
		{"users_list", `{"client_id":"` + client + `","limit":5,"overdue":true}`, "GET", users + "&overdue=true", nil, ""},
		{"users_list", `{"client_id":"` + client + `","limit":5,"overdue":false}`, "GET", users + "&overdue=false", nil, ""},

		{"clients_get", `{"client_id":"` + stranger + `"}`, "GET", "/v2/clients/" + stranger, nil, domain.NotFound},
		{"clients_get", `{"client_id":"../partner"}`, "GET", "/v2/clients/..%2Fpartner", nil, domain.NotFound},
		{"clients_get", `{"client_id":"a?b#c%/é"}`, "GET", "/v2/clients/a%3Fb%23c%25%2F%C3%A9", nil, domain.NotFound},
		{"clients_list", `{"limit":501}`, "GET", "/v2/clients?limit=501", nil, domain.InvalidRequest},
		{"clients_list", `{"limit":"many"}`, "GET", "/v2/clients?limit=many", nil, domain.InvalidRequest},
		{"clients_create", `{"nam":"X"}`, "POST", "/v2/clients", `{"nam":"X"}`, domain.InvalidRequest},
		{"clients_create", `{"name":7}`, "POST", "/v2/clients", `{"name":7}`, domain.InvalidRequest},
		// null is absent, and so is an empty text for an optional argument. By HTTP they are not.
		{"clients_create", `{"name":null}`, "POST", "/v2/clients", `{}`, domain.InvalidRequest},
		{"clients_create", `{"name":""}`, "POST", "/v2/clients", `{"name":""}`, domain.InvalidRequest},
		{"clients_update", `{"client_id":"` + client + `","name":"","industry":null}`, "PATCH", of, `{}`, domain.InvalidRequest},
		{"clients_list", `{"ids":"","q":"","updated_since":"","limit":null,"cursor":null,"none":null}`, "GET", "/v2/clients", nil, ""},
	} {
		byHTTP := w.Do(c.method, c.path, w.tenant.Key, c.body, "X-Request-Id", "same")
		if byHTTP.Code() != c.code {
			t.Errorf("HTTP answers %s with %s", c.path, byHTTP.Body)
		}
		message := callOf(c.tool, json.RawMessage(c.arguments))
		for _, message := range []string{message, `{"more":1,` + message[1:]} {
			a := w.sendTo(mcp.Path+everything, "POST", message, "X-API-Key", w.tenant.Key, "X-Request-Id", "same")
			r, structured := a.reply(t), string(byHTTP.Body)
			if c.code != "" {
				structured = ""
			}
			if r.text(t) != string(byHTTP.Body) || string(r.Result.StructuredContent) != structured || r.Result.IsError != (c.code != "") {
				t.Errorf("%s\nis answered %s\nHTTP says %s", message, a.Body, byHTTP.Body)
			}
		}
	}
}

// TestWrongArguments: every argument that is wrong is named in one envelope, and nothing is done.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	client, user := `{"client_id":"`+w.client.ID.String()+`"`, `{"user_id":"`+w.user.ID.String()+`"`
	for _, c := range []struct{ tool, arguments, faults string }{
		{"clients_list", `{"unknown":1}`, "unknown is unknown"},
		{"clients_list", `{"unknown":1,"limit":"x","sort":3}`, "unknown is unknown, limit must be an integer"},
		{"clients_get", `{}`, "client_id is required"},
		{"users_create", `{"first_name":"X"}`, "client_id is required, email is required"},
		{"clients_get", `{"client_id":" "}`, "client_id must not be blank"},
		{"users_list", `{"client_id":null,"limit":null}`, "client_id is required"},
		{"clients_get", `{"client_id":""}`, "client_id must not be blank"},
		{"clients_list", `{"fields":["name",null]}`, "fields must be an array of strings"},
		{"clients_update", client + `,"clear":["name"]}`, `clear "name" cannot be cleared; only industry and external_id can`},
		{"clients_update", client + `,"clear":["id"],"name":"New"}`, `clear "id" cannot be cleared; only industry and external_id can`},
		{"clients_update", client + `,"industry":"New","clear":["external_id","industry"]}`, `clear "industry" also has a value; either clear it or set it`},
		{"clients_update", client + `,"clear":"industry"}`, "clear must be an array of strings"},
		{"clients_update", client + `,"clear":[]}`, "body must name at least one field to change"},
		{"clients_create", `{"name":"a","clear":["industry"]}`, "clear is unknown"},
		{"users_update", user + `,"email":"a@example.com","collection_ids":[],"shoes":1}`, "email cannot be changed, collection_ids cannot be changed, shoes is unknown"},
		{"reports_create", client + `,"type":"phishing_overview","period":{"start_on":null,"end_on":null}}`, "period.start_on is required, period.end_on is required"},
		{"training_remind", client + `,"user_ids":[null]}`, "user_ids[0] must not be null"},
		{"clients_get", `{"client_id":["a"]}`, "client_id must be a string"},
		{"clients_list", `{"limit":1.5}`, "limit must be an integer"},
		{"clients_list", `{"limit":1e300}`, "limit must be an integer"},
		{"users_list", client + `,"overdue":"true","limit":"5"}`, "overdue must be true or false, limit must be an integer"},
		{"users_list", client + `,"overdue":1}`, "overdue must be true or false"},
		{"clients_list", `{"limit":1,"limit":2}`, "limit must be given once"},
		{"clients_create", `{"name":"a","name":"b"}`, "name must be given once"},
		{"clients_list", `[]`, "arguments must be a JSON object"},
		{"clients_create", `{"name":"a","idempotency_key":5}`, "idempotency_key must be a string"},
		{"clients_update", client + `}`, "body must name at least one field to change"},
	} {
		a := w.send("POST", callOf(c.tool, json.RawMessage(c.arguments)), "X-API-Key", w.tenant.Key)
		r := a.reply(t)
		var e op.ErrorEnvelope
		if err := json.Unmarshal([]byte(r.text(t)), &e); err != nil || !r.Result.IsError || e.Error.Code != domain.InvalidRequest {
			t.Errorf("%s of %s: %v %s", c.tool, c.arguments, err, a.Body)
		}
		var named []string
		for _, f := range e.Error.Fields {
			named = append(named, f.Field+" "+f.Message)
		}
		for fault := range strings.SplitSeq(c.faults, ", ") {
			if !slices.Contains(named, fault) {
				t.Errorf("%s of %s: %q, without %q", c.tool, c.arguments, named, fault)
			}
		}
	}
	if n := w.Number("SELECT count(*) FROM clients"); n != 1 {
		t.Errorf("there are %d clients", n)
	}
}

// TestWrites: writes are done, once for a key of idempotency, and those without
// an answer say so.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Audit: true})
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

// TestNullIsAbsent verifies that an agent that fills every argument it does not use with null, "" or [] changes nothing by
// that, in reads and writes and at every level, and that clear empties fields.
func TestNullIsAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	session := w.connect(w.tenant.Key, "")
	id := w.client.ID.String()
	update := func(arguments map[string]any, industry, external any) {
		t.Helper()
		arguments["client_id"] = id
		out := w.call(session, "clients_update", arguments)
		var client struct {
			Industry   any
			ExternalID any `json:"external_id"`
		}
		if err := json.Unmarshal([]byte(parameterText(out)), &client); err != nil || client.Industry != industry || client.ExternalID != external {
			t.Errorf("after %v: %v %s", arguments, err, parameterText(out))
		}
	}
	update(map[string]any{"industry": "Retail", "external_id": "A1"}, "Retail", "A1")
	update(map[string]any{"name": "Renamed", "industry": nil, "external_id": nil, "clear": nil}, "Retail", "A1")
	update(map[string]any{"name": "Again", "industry": "", "external_id": "", "clear": []string{}}, "Retail", "A1")
	update(map[string]any{"name": nil, "industry": nil, "clear": []string{"external_id", "external_id"}}, "Retail", nil)
	update(map[string]any{"industry": nil, "external_id": "", "clear": []string{"industry"}}, nil, nil)

	created := w.call(session, "users_create", map[string]any{
		"client_id": id, "email": "new@example.com", "department": "", "manager_email": nil, "collection_ids": nil, "idempotency_key": "",
	})
	if text := parameterText(created); created.IsError || !strings.Contains(text, `"department":null`) {
		t.Errorf("a user with an empty department: %s", text)
	}
	sent := w.call(session, "training_remind", map[string]any{"client_id": id, "user_ids": nil, "dry_run": nil, "idempotency_key": nil})
	if sent.IsError {
		t.Errorf("a reminder: %s", parameterText(sent))
	}
	nested := w.call(session, "training_assign", map[string]any{
		"client_id": id, "course_id": stranger, "due_on": "", "notify": nil,
		"audience": map[string]any{"type": "all", "collection_id": "", "user_ids": nil},
	})
	if codeOf(nested) != domain.NotFound && strings.Contains(parameterText(nested), "audience") {
		t.Errorf("an audience with unused fields: %s", parameterText(nested))
	}
	byHTTP := w.Do("PATCH", "/v2/clients/"+id, w.tenant.Key, `{"industry":""}`)
	if byHTTP.Status != 200 || !strings.Contains(string(byHTTP.Body), `"industry":""`) {
		t.Errorf("an empty industry by HTTP: %d %s", byHTTP.Status, byHTTP.Body)
	}
}

// TestResources: guides, and a client as its tool shows it.
func TestResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
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
	if want := w.Get("/v2/clients/"+w.client.ID.String(), w.tenant.Key); client.Contents[0].Text != string(want.Body) {
		t.Errorf("the resource is %s\nHTTP says %s", client.Contents[0].Text, want.Body)
	}
	if list.CacheScope != "private" || client.CacheScope != "private" {
		t.Errorf("what one key is shown is cached as %q and %q", list.CacheScope, client.CacheScope)
	}
	_, err = session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "partner://clients/" + stranger})
	if err == nil || !strings.Contains(err.Error(), "no such client, or this key has no access to it") {
		t.Errorf("a client that is not there: %v", err)
	}
}

// TestIDs verifies that an ID is returned exactly as it was sent, whatever its size, also with an error, and that one
// that JSON-RPC does not allow is refused.
func TestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	like, err := json.Marshal(`"content":[] "tools":[] "id":1, \ <é>`)
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]string{
		"tools/call": `"content":[{"type":"text"`, "tools/list": `"tools":[{`, "ping": `"result":{`, "resources/read": `"error":{`, "no/such": `"error":{`,
		"subscriptions/listen": `"error":{`, "completion/complete": `"error":{`,
	}
	for _, id := range []string{
		string(like), "1", "0", "-7", "9007199254740993", "9223372036854775807", "-9223372036854775808", "123456789012345678901234567890", "7.0", `""`, `"\u0041"`,
	} {
		for method, want := range methods {
			a := w.send("POST", `{"id": `+id+` ,"jsonrpc":"2.0","method":"`+method+`","params":{"name":"clients_list","uri":"other://x"}}`, "X-API-Key", w.tenant.Key)
			if a.Status != 200 || !strings.HasPrefix(string(a.Body), `{"jsonrpc":"2.0","id":`+id+`,`) || !strings.Contains(string(a.Body), want) || !json.Valid(a.Body) {
				t.Errorf("%s with the ID %s: %d %.300s", method, id, a.Status, a.Body)
			}
			if r := a.reply(t); (method == "no/such" || strings.HasSuffix(method, "listen") || strings.HasSuffix(method, "complete")) && r.Error.Code != -32601 {
				t.Errorf("%s: the code %d", method, r.Error.Code)
			}
		}
	}
	for _, id := range []string{"1.5", "1e2", "0.1", "null", "true", "{}", "[1]", `1,"id":2`} {
		a := w.send("POST", `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, "X-API-Key", w.tenant.Key)
		if r := a.reply(t); a.Status != 400 || string(r.ID) != "null" || r.Error.Code != -32600 || !strings.Contains(r.Error.Message, "id must") {
			t.Errorf("the ID %s: %d %s", id, a.Status, a.Body)
		}
	}
}
