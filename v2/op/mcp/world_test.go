package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	tenant v2test.Partner
	client api.Client
	user   api.User
}

// page is the one origin that may use the server.
const page = "https://partner.example"

func config() *mcp.Config {
	return &mcp.Config{
		Secret: []byte("secret"), Origins: mcp.Origins(page, "127.0.0.1:1"), Version: "test",
		Guide:      func(string) ([]byte, error) { return []byte("# Begin here\n\nText.\n"), nil },
		GuideNames: []string{"start"}, SearchGuides: searchGuides,
	}
}

// searchGuides finds as many passages as are asked for, whatever the query, and none for "nothing".
func searchGuides(query string, limit int) (list []mcp.Passage, err error) {
	switch query {
	case "nothing":
		return nil, nil
	case "broken":
		return nil, errors.New("a guide is invalid")
	}
	for n := range limit {
		list = append(list, mcp.Passage{
			Title: fmt.Sprintf("Guide %d: %s", n+1, query), URL: fmt.Sprintf("%s/docs/guide/%d#part", page, n+1), Text: "Some text.\n",
		})
	}
	return list, nil
}

func newWorld(t testing.TB, o v2test.Options) *world {
	t.Helper()
	if o.MCP == nil {
		o.MCP = config()
	}
	w := &world{Harness: v2test.New(t, o)}
	w.tenant = w.AddPartner("Partner")
	w.client = w.AddClient(w.tenant, "Client")
	w.user = w.AddUser(w.tenant, w.client.ID, "first@example.com")
	return w
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
type answer struct{ v2test.Response }

// reply is an answer of JSON-RPC.
type reply struct {
	JSONRPC string
	ID      json.RawMessage
	Result  struct {
		Content                []struct{ Text string }
		StructuredContent      json.RawMessage
		IsError                bool
		Tools                  []struct{ Name string }
		NextCursor, ResultType string
	}
	Error struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// reply decodes the answer.
func (a answer) reply(t testing.TB) (r reply) {
	t.Helper()
	if err := json.Unmarshal(a.Body, &r); err != nil {
		t.Fatalf("%d %v: %.300s", a.Status, err, a.Body)
	}
	return r
}

// text is that of a result, which is not split.
func (r reply) text(t testing.TB) string {
	t.Helper()
	if len(r.Result.Content) != 1 {
		t.Fatalf("no text is in %+v", r)
	}
	return r.Result.Content[0].Text
}

// send sends a message; headers are pairs of name and value.
func (w *world) send(method, body string, headers ...string) answer {
	w.T.Helper()
	return w.sendTo(mcp.Path, method, body, headers...)
}

func (w *world) sendTo(path, method, body string, headers ...string) answer {
	w.T.Helper()
	common := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	return answer{w.Do(method, path, "", body, append(common, headers...)...)}
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
	return codeIn([]byte(parameterText(r)))
}

// codeIn is the code of an envelope.
func codeIn(envelope []byte) domain.Code {
	var e op.ErrorEnvelope
	_ = json.Unmarshal(envelope, &e)
	return e.Error.Code
}
