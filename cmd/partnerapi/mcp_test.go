package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/v2/op/mcp"
)

// bridged runs the bridge in this process and connects the SDK's client to it.
// ended gives how it ended after the client closed its side.
func bridged(t *testing.T, address, key string, flags ...string) (session *sdk.ClientSession, ended <-chan result) {
	t.Helper()
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	done := make(chan result, 1)
	go func() {
		var errs bytes.Buffer
		code := run(context.WithoutCancel(t.Context()), append([]string{"mcp", "--url=" + address, "--key=" + key}, flags...), in, out, &errs)
		_ = out.Close()
		done <- result{code: code, err: errs.String()}
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: fromBridge, Writer: toBridge}, nil)
	if err != nil {
		t.Fatalf("%v: %+v", err, <-done)
	}
	return session, done
}

// TestMCP serves agents over HTTP and over the bridge, from one process.
func TestMCP(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=x", "--clients=all", "--scopes=read,write")
	r := serving(t, flag, "--release=latest")
	session, ended := bridged(t, r.address, key, "--schemas", "--toolsets=clients")
	out, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "clients_create", Arguments: map[string]any{"name": "New"}})
	if err != nil || out.IsError {
		t.Fatalf("%v %+v", err, out)
	}
	asOf := regexp.MustCompile(`"as_of":"[^"]*"`) // the time of each reading
	want := asOf.ReplaceAllString(string(r.get("/v2/clients", key).want(http.StatusOK).body), "")
	out, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "clients_list"})
	if err != nil || asOf.ReplaceAllString(out.Content[0].(*sdk.TextContent).Text, "") != want {
		t.Errorf("%v %+v\nHTTP says %s", err, out, want)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) == 0 || tools.Tools[0].OutputSchema == nil || tools.Tools[len(tools.Tools)-1].Name > "docs_search" {
		t.Errorf("the tools of clients: %v %+v", err, tools)
	}
	out, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "clients_list", Arguments: map[string]any{"no": 1}})
	if err != nil || !out.IsError || !strings.Contains(out.Content[0].(*sdk.TextContent).Text, `"doc_url":"`+r.address+`/docs/guide/errors#invalid-request"`) {
		t.Errorf("a wrong argument: %v %+v", err, out)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if got := <-ended; got.code != 0 || got.err != "" {
		t.Errorf("the bridge ended with %+v", got)
	}
	says(t, string(r.get("/metrics", "").want(http.StatusOK).body),
		`partnerapi_requests_total{operation="clients.create",status="201",version="v2"} 1`,
		`partnerapi_requests_total{operation="clients.list",status="400",version="v2"} 1`,
		`partnerapi_key_requests_total{key="`+prefix(key)+`",version="mcp"} `)
}

// TestGuidesAreSearched searches the guides in a session that has one tool and one client, and wants the passages to be of
// pages that exist, one of the first three of the expected page.
func TestGuidesAreSearched(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	r := serving(t, flag, "--release=latest", "--demo")
	id := regexp.MustCompile(`cli_\w+`).FindString(string(r.get("/v2/clients?limit=1", "pk_demo_all").want(http.StatusOK).body))
	session, ended := bridged(t, r.address, "pk_demo_all", "--schemas", "--tools=docs_search,clients_list", "--client="+id)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Errorf("the tools are %+v, %v", tools, err)
	}
	out, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "clients_list"})
	if err != nil || strings.Count(out.Content[0].(*sdk.TextContent).Text, `"id":"cli_`) != 1 {
		t.Errorf("the clients are %+v, %v", out, err)
	}
	for query, want := range map[string]string{
		"verify webhook signature":            "/docs/guide/webhooks",
		"How do I rotate a webhook's secret?": "/docs/guide/webhooks",
		"idempotency key retry":               "/docs/guide/idempotency",
		"rate limit 429 Retry-After":          "/docs/guide/rate-limits",
		"updated_since horizon as_of":         "/docs/guide/delta-sync",
		"onboard a new client":                "/docs/guide/onboard",
		"read_only session":                   "/docs/guide/mcp",
		"download a report":                   "/docs/guide/report",
		"cursor pagination next page":         "/docs/guide/paging",
		"catalogue of event types":            "/docs/guide/events",
	} {
		out, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "docs_search", Arguments: map[string]any{"query": query, "limit": 10}})
		if err != nil || out.IsError {
			t.Fatalf("%s: %v %+v", query, err, out)
		}
		var found struct{ Passages []mcp.Passage }
		if err := json.Unmarshal([]byte(out.Content[0].(*sdk.TextContent).Text), &found); err != nil {
			t.Fatal(err)
		}
		expected := false
		for i, p := range found.Passages {
			path, _, _ := strings.Cut(strings.TrimPrefix(p.URL, r.address), "#")
			expected = expected || i < 3 && path == want
			if r.get(path, "").want(http.StatusOK); p.Text == "" || p.Title == "" || len([]rune(p.Text)) > 1600 {
				t.Errorf("%s finds %+v", query, p)
			}
		}
		if !expected {
			t.Errorf("%s finds first %+v", query, found.Passages[0])
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestMCPOrigins verifies that scripts of the pages that --mcp-origins names may use the server, and of no others.
func TestMCPOrigins(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	r := serving(t, flag, "--release=latest", "--demo", "--mcp-origins=https://app.example.com,http://localhost:6274")
	for origin, want := range map[string]int{
		"https://app.example.com": http.StatusNoContent, "http://localhost:6274": http.StatusNoContent, r.address: http.StatusNoContent,
		"https://other.example.com": http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, r.address+mcp.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", http.MethodPost)
		a, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if got := a.Header.Get("Access-Control-Allow-Origin"); a.StatusCode != want || (got == origin) != (want == http.StatusNoContent) {
			t.Errorf("%s: %d, allowed is %q", origin, a.StatusCode, got)
		}
	}
	refused(t, 2, []string{"serve", flag, "--mcp-origins=https://app.example.com/"}, "--mcp-origins", "is not an origin")
	refused(t, 2, []string{"serve", flag, "--mcp-origins=*"}, "--mcp-origins", "is not an origin")
}

// TestBridge: what was asked before the input ended is answered. The bridge says why it
// cannot work, and ends.
func TestBridge(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	r, former := serving(t, flag, "--release=latest", "--demo", "--mcp-read-only"), serving(t, flag, "--release=2.2", "--demo")
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"two","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"clients_create","arguments":{"name":"Never"}}}`,
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"mcp", "--url=" + r.address, "--key=pk_demo_all"}, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, &errs)
	if code != 0 || errs.Len() > 0 || strings.Count(out.String(), "\n") != 3 {
		t.Fatalf("exit %d: %s%s", code, &errs, &out)
	}
	says(t, out.String(), `"id":1,`, `"id":"two",`, `"id":3,`, `clients_list`, `read-only`)

	// A batch, and a line that is no JSON, are refused; the bridge continues.
	lines = []string{"[" + lines[0] + "]", "no JSON", `{"jsonrpc":"2.0","id":9007199254740993,"method":"no/such"}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9223372036854775807,"method":"tools/list"}`}
	out.Reset()
	code = run(t.Context(), []string{"mcp", "--url=" + r.address, "--key=pk_demo_all"}, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, &errs)
	if code != 0 || errs.Len() > 0 || strings.Count(out.String(), "\n") != len(lines) {
		t.Fatalf("exit %d: %s%s", code, &errs, &out)
	}
	says(t, out.String(), `"id":null,"error":{"code":-32600,"message":"batches are not accepted`, `"id":null,"error":{"code":-32700,`,
		`"id":9007199254740993,"error":{"code":-32601,`, `"error":{"code":-32600,"message":"id must`, `"id":9223372036854775807,"result":{`)

	refused(t, 1, []string{"mcp", "--url=" + r.address, "--key=wrong"}, r.address, "rejects the key")
	refused(t, 1, []string{"mcp", "--url=" + r.address, "--key=pk_demo_all", "--client=cli_none"}, "client_id must be the ID of one client")
	refused(t, 1, []string{"mcp", "--url=" + r.address, "--key=pk_demo_all", "--tools=clients_list,nope"}, "there is no tool nope")
	refused(t, 1, []string{"mcp", "--url=" + former.address, "--key=pk_demo_all"}, "requires release "+mcp.Since.String()+" or later")
	refused(t, 1, []string{"mcp", "--url=http://127.0.0.1:1", "--key=x"}, "cannot reach http://127.0.0.1:1")
	refused(t, 2, []string{"mcp", "--url=partner.example", "--key=x"}, "--url")
	refused(t, 2, []string{"mcp", "--url=https://partner.example"}, "PARTNERAPI_KEY")
	refused(t, 2, []string{"mcp", "--key=x"}, "--url")
}
