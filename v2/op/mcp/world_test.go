package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is a service with an MCP server, and a partner with a client and a user.
type world struct {
	*v2test.Harness
	tenant v2test.Tenant
	client api.Client
	user   api.User
}

type options struct {
	v2test.Options
	readOnly bool
}

// page is the one origin that may use the server.
const page = "https://partner.example"

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	o.MCP = &mcp.Config{
		Secret: []byte("secret"), ReadOnly: o.readOnly, Origins: mcp.Origins(page, "127.0.0.1:1"), Version: "test",
		Guide:      func(string) ([]byte, error) { return []byte("# Begin here\n\nText.\n"), nil },
		GuideNames: []string{"start"},
	}
	w := &world{Harness: v2test.New(t, o.Options)}
	w.tenant = w.Tenant("Partner")
	w.client = w.Client(w.tenant, "Client")
	w.user = w.User(w.tenant, w.client.ID, "first@example.com")
	return w
}

// in is the world for a subtest.
func (w *world) in(t testing.TB) *world {
	h := *w.Harness
	h.T = t
	return &world{Harness: &h, tenant: w.tenant, client: w.client, user: w.user}
}

// everything asks for all tools, with schemas and structured content.
const everything = "?toolsets=all&schemas=1"

// connect opens a session of the SDK's own client; query is added to the address.
func (w *world) connect(key, query string) *sdk.ClientSession {
	w.T.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(w.T.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.URL + mcp.Path + query, HTTPClient: w.Caller(key).HTTP(), MaxRetries: -1,
	}, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = session.Close() })
	return session
}

// answer is what a message was answered with.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// code is the code of an envelope.
func (a answer) code() domain.Code {
	var e op.ErrorEnvelope
	_ = json.Unmarshal(a.body, &e)
	return e.Error.Code
}

// send sends a message; headers are pairs of name and value.
func (w *world) send(method, body string, headers ...string) answer {
	w.T.Helper()
	return w.sendTo(mcp.Path, method, body, headers...)
}

func (w *world) sendTo(path, method, body string, headers ...string) answer {
	w.T.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, w.URL+path, bytes.NewBufferString(body))
	if err != nil {
		w.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.T.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}`
	listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// callOf is a message that calls a tool.
func callOf(name string, arguments any) string {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": map[string]any{"name": name, "arguments": arguments},
	})
	if err != nil {
		panic(err) // of a test's own values
	}
	return string(text)
}

// toolsOf are the names of the tools that a session shows.
func (w *world) toolsOf(session *sdk.ClientSession) map[string]*sdk.Tool {
	w.T.Helper()
	list := map[string]*sdk.Tool{}
	for tool, err := range session.Tools(w.T.Context(), nil) {
		if err != nil {
			w.T.Fatal(err)
		}
		list[tool.Name] = tool
	}
	return list
}

// call calls a tool.
func (w *world) call(session *sdk.ClientSession, name string, arguments map[string]any) *sdk.CallToolResult {
	w.T.Helper()
	out, err := session.CallTool(w.T.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		w.T.Fatalf("%s: %v", name, err)
	}
	return out
}

// parameterText is the text of a result.
func parameterText(r *sdk.CallToolResult) string { return r.Content[0].(*sdk.TextContent).Text }

// codeOf is the code of a result that is an error; empty for others.
func codeOf(r *sdk.CallToolResult) domain.Code {
	if !r.IsError {
		return ""
	}
	return answer{body: []byte(parameterText(r))}.code()
}
