package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
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
	w := newWorld(t, v2test.Options{})
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
		for _, query := range []string{"", "?schemas=1", "?schemas=0"} {
			a := w.sendTo(mcp.Path+query, "POST", body, headers...)
			if a.Status != http.StatusOK || a.reply(t).Result.ResultType != "complete" {
				t.Errorf("%s%s: %d %.300s", method, query, a.Status, a.Body)
			}
		}
		if method == "server/discover" {
			continue
		}
		before := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, strings.TrimSuffix(c.params, ","))
		a := w.send("POST", before, "X-API-Key", w.tenant.Key, "Mcp-Protocol-Version", "2025-06-18")
		if a.Status != http.StatusOK || a.reply(t).Result.ResultType != "" {
			t.Errorf("%s of before: %d %.300s", method, a.Status, a.Body)
		}
	}
	body, headers := newestMessage("tools/call", "clients_get", `"name":"clients_get","arguments":{"client_id":"none"},`)
	a := w.send("POST", body, append(headers, "X-API-Key", w.tenant.Key)...)
	if r := a.reply(t).Result; r.ResultType != "complete" || !r.IsError {
		t.Errorf("an error: %s", a.Body)
	}
}

// TestUnknownResource: the code of a resource that does not exist is that of the version.
func TestUnknownResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, uri := range []string{"partner://guides/none", "partner://clients/none", "other://x"} {
		newer, headers := newestMessage("resources/read", uri, fmt.Sprintf(`"uri":%q,`, uri))
		before := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, uri)
		for _, c := range []struct {
			body    string
			headers []string
			code    int
		}{{newer, headers, -32602}, {before, []string{"Mcp-Protocol-Version", "2025-11-25"}, -32002}, {before, nil, -32002}} {
			a := w.send("POST", c.body, append(c.headers, "X-API-Key", w.tenant.Key)...)
			if got := a.reply(t).Error.Code; got != c.code {
				t.Errorf("%s with %v: %d %s", uri, c.headers, got, a.Body)
			}
		}
	}
}

// TestBytesOfHeaders: bytes of a header that are not UTF-8 are a caller's mistake.
func TestBytesOfHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, header := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "X-MCP-Toolsets", "X-MCP-Tools", "Accept", "Last-Event-ID", "User-Agent", "X-Request-Id"} {
		for _, value := range []string{"\xa2", "2026-07-28\xff"} {
			for _, body := range []string{hello, listTools, callOf("clients_list", nil), "{", `{"jsonrpc":"2.0","method":"x"}`} {
				a := w.send("POST", body, "X-API-Key", w.tenant.Key, header, value)
				if a.Status >= 500 || len(a.Body) > 0 && !json.Valid(a.Body) {
					t.Errorf("%s: %q: %d %s", header, value, a.Status, a.Body)
				}
			}
		}
	}
}

// TestNoSubscriptions: subscriptions/listen is refused in the service's words, and begins no session.
func TestNoSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
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
		"no method":        {`{"jsonrpc":"2.0","id":7,"method":"no/such"}`, []string{"Mcp-Protocol-Version", "2026-07-28"}, http.StatusNotFound, -32601},
		"an id of no form": {`{"jsonrpc":"2.0","id":{},"method":"subscriptions/listen"}`, headers, http.StatusBadRequest, -32600},
	} {
		a := w.send("POST", c.body, append(c.headers, "X-API-Key", w.tenant.Key)...)
		if a.Status != c.status || a.reply(t).Error.Code != c.code || a.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		wantNoTypes(t, a)
	}
}
