package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// TestResultsHideNothing: what strangers wrote has its invisible characters escaped, in
// the text of a result, its structured content and a resource, whichever way it is
// answered.
func TestResultsHideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	const hostile = "In\u202evoice \U000e0041\x1b[2J\u200b \"\\ é\r\nnext"
	const shown = `In\u{202e}voice \u{e0041}\u{1b}[2J\u{200b} "\ é\r` + "\nnext"
	if _, err := w.DB.SQL().ExecContext(t.Context(), "UPDATE clients SET name = $1", hostile); err != nil {
		t.Fatal(err)
	}

	check := func(what, text string) {
		t.Helper()
		var client struct{ Name string }
		if err := json.Unmarshal([]byte(text), &client); err != nil || client.Name != shown {
			t.Errorf("%s has the name %q, want %q: %v", what, client.Name, shown, err)
		}
		if strings.ContainsAny(text, "\u202e\u200b\x1b\U000e0041") || strings.Contains(text, `\u202e`) {
			t.Errorf("%s is %q", what, text)
		}
	}
	session := w.connect(w.tenant.Key, everything)
	called := w.call(session, "clients_get", map[string]any{"client_id": w.client.ID})
	check("the text", called.Content[0].(*sdk.TextContent).Text)
	structured, err := json.Marshal(called.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	check("the structured content", string(structured))
	resource, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "partner://clients/" + w.client.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	check("the resource", resource.Contents[0].Text)

	message := callOf("clients_get", map[string]any{"client_id": w.client.ID})
	plain := w.sendTo(mcp.Path+everything, "POST", message, "X-API-Key", w.tenant.Key).reply(t)
	check("the text of a plain call", plain.text(t))
	check("the structured content of a plain call", string(plain.Result.StructuredContent))
}
