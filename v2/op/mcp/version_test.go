package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// newestMessage is a request as the version of 2026-07-28 has it, and its headers.
func newestMessage(method, name, params string) (body string, headers []string) {
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}`, method, params)
	headers = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return body, headers
}

// TestResultType: every result says that it is complete in the newest version, and none
// before.
func TestResultType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for method, c := range map[string]struct{ name, params string }{
		"tools/call":               {"clients_list", `"name":"clients_list","arguments":{},`},
		"tools/list":               {},
		"resources/list":           {},
		"resources/templates/list": {},
		"resources/read":           {"partner://guides/start", `"uri":"partner://guides/start",`},
		"prompts/list":             {},
		"prompts/get":              {"explain_risk", `"name":"explain_risk","arguments":{"client":"A"},`},
		"server/discover":          {},
	} {
		body, headers := newestMessage(method, c.name, c.params)
		headers = append(headers, "X-API-Key", w.tenant.Key)
		if a := w.send("POST", body, headers...); a.status != http.StatusOK || resultType(t, a) != "complete" {
			t.Errorf("%s: %d %.300s", method, a.status, a.body)
		}
		for _, query := range []string{"?schemas=1", "?schemas=0"} {
			if a := w.sendTo("/mcp"+query, "POST", body, headers...); resultType(t, a) != "complete" {
				t.Errorf("%s%s: %.300s", method, query, a.body)
			}
		}
		if method == "server/discover" {
			continue
		}
		before := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, strings.TrimSuffix(c.params, ","))
		if a := w.send("POST", before, "X-API-Key", w.tenant.Key, "Mcp-Protocol-Version", "2025-06-18"); a.status != http.StatusOK || resultType(t, a) != "" {
			t.Errorf("%s of before: %d %.300s", method, a.status, a.body)
		}
	}
	body, headers := newestMessage("tools/call", "clients_get", `"name":"clients_get","arguments":{"client_id":"none"},`)
	a := w.send("POST", body, append(headers, "X-API-Key", w.tenant.Key)...)
	if resultType(t, a) != "complete" || !strings.Contains(string(a.body), `"isError":true`) {
		t.Errorf("an error: %s", a.body)
	}
}

func resultType(t *testing.T, a answer) string {
	t.Helper()
	var m struct{ Result struct{ ResultType string } }
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Errorf("%v: %s", err, a.body)
	}
	return m.Result.ResultType
}

// TestUnknownResource: the code of a resource that does not exist is that of the version.
func TestUnknownResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, uri := range []string{"partner://guides/none", "partner://clients/none", "other://x"} {
		newer, headers := newestMessage("resources/read", uri, fmt.Sprintf(`"uri":%q,`, uri))
		before := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, uri)
		for _, c := range []struct {
			body    string
			headers []string
			code    int
		}{{newer, headers, -32602}, {before, []string{"Mcp-Protocol-Version", "2025-11-25"}, -32002}, {before, nil, -32002}} {
			a := w.send("POST", c.body, append(c.headers, "X-API-Key", w.tenant.Key)...)
			if got := faultOf(a); got != c.code {
				t.Errorf("%s with %v: %d %s", uri, c.headers, got, a.body)
			}
		}
	}
}

// faultOf is the code of an error of JSON-RPC; 0 for another answer.
func faultOf(a answer) int {
	var m struct{ Error struct{ Code int } }
	_ = json.Unmarshal(a.body, &m)
	return m.Error.Code
}

// TestBytesOfHeaders: bytes of a header that are not UTF-8 are a caller's mistake.
func TestBytesOfHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, header := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "X-MCP-Toolsets", "Accept", "Last-Event-ID", "User-Agent", "X-Request-Id"} {
		for _, value := range []string{"\xa2", "2026-07-28\xff"} {
			for _, body := range []string{hello, listTools, callOf("clients_list", nil), "{", `{"jsonrpc":"2.0","method":"x"}`} {
				a := w.send("POST", body, "X-API-Key", w.tenant.Key, header, value)
				if a.status >= 500 || len(a.body) > 0 && !json.Valid(a.body) {
					t.Errorf("%s: %q: %d %s", header, value, a.status, a.body)
				}
			}
		}
	}
}

// TestNoSessionOfErrors: subscriptions/listen, and initialize with wrong parameters, are
// refused in the service's words, and begin no session.
func TestNoSessionOfErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, params := range []string{`5`, `[]`, `"x"`, `null`, `{"protocolVersion":5}`, `{"protocolVersion":"2025-06-18","capabilities":7}`, `{"protocolVersion":"2025-06-18","clientInfo":[]}`} {
		a := w.send("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+params+`}`, "X-API-Key", w.tenant.Key)
		if session := a.header.Get("Mcp-Session-Id"); faultOf(a) == 0 || session != "" {
			t.Errorf("initialize with %s: session %q %d %s", params, session, a.status, a.body)
		}
		wantNoTypes(t, a)
	}
	newer, headers := newestMessage("subscriptions/listen", "", `"notifications":{},`)
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"newest":           {newer, headers, http.StatusNotFound, -32601},
		"no version":       {newer, nil, http.StatusOK, -32601},
		"wrong parameters": {`{"jsonrpc":"2.0","id":"a","method":"subscriptions/listen","params":7}`, headers, http.StatusNotFound, -32601},
		"no id":            {`{"jsonrpc":"2.0","method":"subscriptions/listen"}`, headers, http.StatusBadRequest, -32600},
		"an id of no form": {`{"jsonrpc":"2.0","id":{},"method":"subscriptions/listen"}`, headers, http.StatusBadRequest, -32600},
	} {
		a := w.send("POST", c.body, append(c.headers, "X-API-Key", w.tenant.Key)...)
		if a.status != c.status || faultOf(a) != c.code || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		wantNoTypes(t, a)
	}
}
