package v2_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// TestToolsTakeSamples holds the samples of all operations against the schemas of
// their tools: one call of each is taken, and answers what its schema says.
func TestToolsTakeSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, MCP: &mcp.Config{}})
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	carrier := &sdk.StreamableClientTransport{Endpoint: w.URL + mcp.Path, HTTPClient: w.Caller(w.tenant.Key).HTTP(), MaxRetries: -1}
	session, err := client.Connect(t.Context(), carrier, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools := map[string]*sdk.Tool{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools[tool.Name] = tool
	}
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		tool := tools[strings.ReplaceAll(o.Meta().ID, ".", "_")]
		if tool == nil { // which the surface test of the tools reports
			return
		}
		arguments := map[string]any{}
		if o.Input().Body != nil {
			arguments = w.body(o)
		}
		at := w.ids()
		for _, p := range o.Input().Path {
			arguments[p.Name] = at[p.Name]
		}
		for _, p := range o.Input().Query {
			if isRequired(p) {
				arguments[p.Name] = filterTexts(t, p)[0]
			}
		}
		holds(t, tool.InputSchema, arguments)
		out, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text := out.Content[0].(*sdk.TextContent).Text; out.IsError && !strings.Contains(text, `"conflict"`) {
			t.Fatal(text)
		}
		if !out.IsError && tool.OutputSchema != nil {
			holds(t, tool.OutputSchema, out.StructuredContent)
		}
	})
}

// holds wants a value to be as a schema says.
func holds(t *testing.T, schema, value any) {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(value); err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(plain); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}
