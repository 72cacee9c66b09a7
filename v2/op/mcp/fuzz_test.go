package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/op/openapi"
)

// FuzzMessages verifies that the server answers whatever comes to it in JSON, with the ID exactly as it came, and not that
// something went wrong on its side. The operations have no routes, for there is no database.
func FuzzMessages(f *testing.F) {
	for _, body := range []string{
		hello, listTools, "", "{", "[]", "[" + listTools + "]", "null", `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"clients_list","arguments":{"limit":"x","y":null}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"clients_get","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"users_create","arguments":{"email":"\ud800"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"partner://clients/../x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/templates/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"","value":""}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add(body, "")
		f.Add(body, "2026-07-28")
	}
	engine := withoutDatabase(f)
	f.Fuzz(func(t *testing.T, body, version string) {
		r := httptest.NewRequest(http.MethodPost, mcp.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("X-API-Key", "pk_demo_key")
		r.Header["Mcp-Protocol-Version"] = []string{version}
		answer := httptest.NewRecorder()
		engine.ServeHTTP(answer, r)
		text := answer.Body.String()
		if answer.Code >= 500 || strings.Contains(text, "went wrong on our side") || text != "" && !json.Valid([]byte(text)) {
			t.Errorf("%d %s", answer.Code, text)
		}
		m, _ := mcp.ParseMessage([]byte(body))
		if len(m.ID) > 0 && text != "" && !strings.HasPrefix(text, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`) {
			t.Errorf("the ID %s is answered %d %s", m.ID, answer.Code, text)
		}
	})
}

// withoutDatabase is a service without routes of operations: each call of one is
// answered with 404 after its arguments were made into a request.
func withoutDatabase(tb testing.TB) http.Handler { return served(tb, nil) }

// served returns a service whose operations are answered by handler; nil for none.
func served(tb testing.TB, handler http.Handler) http.Handler {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	find := func(context.Context, []byte) (*domain.Caller, error) {
		return &domain.Caller{Prefix: "key", AllClients: true, Scopes: []domain.Scope{domain.Read, domain.Write}}, nil
	}
	edge := ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(find, domain.SystemClock{}, false), Log: log,
		Limits: ginop.Limits{PerKey: 1 << 60, PerAddress: 1 << 60, PerClientFactor: 1},
	})
	engine, err := edge.Engine(nil)
	if err != nil {
		tb.Fatal(err)
	}
	edge.Mount(engine, &op.Set{}, op.Latest)
	document, err := openapi.ForRelease(api.Interface, op.Latest)
	if err != nil {
		tb.Fatal(err)
	}
	if handler == nil {
		handler = engine
	}
	server, err := mcp.New(mcp.Config{
		SearchGuides: searchGuides, Operations: api.Operations, Release: op.Latest, Document: document, Prefix: "/v2", Handler: handler,
		Count: edge.Count, CountMessage: edge.CountMessage, Parse: edge.Parse, Envelope: edge.Envelope, Log: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	edge.Protocol(engine, ginop.Protocol{Path: mcp.Path, Before: server.CheckOrigin, Serve: server.Serve, Fault: server.Fault})
	return engine
}
