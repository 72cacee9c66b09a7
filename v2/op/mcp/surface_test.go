package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain/rule"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestSurface: every operation has a tool, and the search of the guides has one.
func TestSurface(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	tools := w.toolsOf(w.connect(w.tenant.Key, everything))
	for _, o := range w.API.Set.All() {
		name := strings.ReplaceAll(o.Meta().ID, ".", "_")
		tool := tools[name]
		delete(tools, name)
		if tool == nil {
			t.Errorf("%s has no tool", o.Meta().ID)
			continue
		}
		t.Run(name, func(t *testing.T) { checkTool(t, tool, o) })
	}
	search := tools["docs_search"]
	if search == nil || !search.Annotations.ReadOnlyHint || *search.Annotations.OpenWorldHint || strings.Count(search.Description, ". ") > 1 {
		t.Errorf("the search of the guides is %+v", search)
	} else {
		resolve(t, search.InputSchema)
		resolve(t, search.OutputSchema)
	}
	delete(tools, "docs_search")
	for name := range tools {
		t.Errorf("the tool %s is of no operation", name)
	}
}

// outside are the operations whose calls reach beyond the service: by mail, or by a
// call of a webhook or a directory.
var outside = []string{
	"admins.invite", "phishing.send", "policies.remind", "sync.runs.create", "training.assign", "training.remind", "users.create", "webhooks.create",
	"webhooks.update", "webhooks.test", "webhooks.deliveries.redeliver",
}

func checkTool(t *testing.T, tool *sdk.Tool, o op.Operation) {
	m := o.Meta()
	if !strings.HasPrefix(tool.Description, m.Summary) || strings.Count(tool.Description, ". ") > 1 {
		t.Errorf("its description is not of at most two sentences: %q", tool.Description)
	}
	if strings.Contains(m.Summary, ". ") || strings.Count(m.Description, ". ") > 1 {
		t.Errorf("the operation's text is not of at most two sentences: %q, %q", m.Summary, m.Description)
	}
	hints := tool.Annotations
	if hints == nil || hints.DestructiveHint == nil || hints.OpenWorldHint == nil {
		t.Fatalf("its annotations are not all given: %+v", hints)
	}
	if hints.ReadOnlyHint != (m.Method == "GET") || *hints.DestructiveHint != (slices.Contains([]string{"DELETE", "PATCH"}, m.Method) || m.ID == "webhooks.secret") ||
		hints.IdempotentHint != (m.Method != "POST") || *hints.OpenWorldHint != slices.Contains(outside, m.ID) {
		t.Errorf("%s has the annotations %+v", m.Method, hints)
	}

	input := resolve(t, tool.InputSchema).Schema()
	for _, p := range append(slices.Clone(o.Input().Path), o.Input().Query...) {
		if input.Properties[p.Name] == nil {
			t.Errorf("its input has no %s", p.Name)
		}
	}
	for _, p := range o.Input().Path {
		if !slices.Contains(input.Required, p.Name) {
			t.Errorf("its input does not need %s", p.Name)
		}
	}
	if o.Input().Body != nil {
		for i := range o.Input().Body.NumField() {
			if name := rule.WireName(o.Input().Body.Field(i)); input.Properties[name] == nil {
				t.Errorf("its input has no %s", name)
			}
		}
	}
	if (input.Properties["idempotency_key"] != nil) != (m.Method == "POST") {
		t.Error("idempotency_key is for POST only")
	}
	if (tool.OutputSchema != nil) != (m.Status != 204) {
		t.Errorf("status %d, output schema %v", m.Status, tool.OutputSchema)
	}
	if tool.OutputSchema != nil {
		resolve(t, tool.OutputSchema)
	}
}

// resolve wants a valid JSON Schema of an object that stands by itself.
func resolve(t testing.TB, schema any) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{`"$ref"`, `"nullable"`, `"x-`, `"example"`, `"discriminator"`} {
		if strings.Contains(string(text), foreign) {
			t.Errorf("the schema has %s: %s", foreign, text)
		}
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if s.Type != "object" {
		t.Errorf("the schema is one of %q", s.Type)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return resolved
}
