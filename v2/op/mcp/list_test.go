package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op/mcp"
)

// TestListIsMadeOnce: the second list of a set of tools is the first one's bytes but
// for the id, and another set has another.
func TestListIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	list := func(key, query, id, params string, headers ...string) string {
		t.Helper()
		message := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"` + params + `}`
		a := w.sendTo(mcp.Path+query, "POST", message, append(headers, "X-API-Key", key)...)
		var m struct {
			ID     json.RawMessage
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal(a.body, &m); err != nil || a.status != 200 || string(m.ID) != id || len(m.Result.Tools) == 0 {
			t.Fatalf("%d %v %.300s", a.status, err, a.body)
		}
		_, result, _ := strings.Cut(string(a.body), `"result":`)
		return result
	}
	reader := w.NewKey(w.tenant, []domain.Scope{domain.Read}, nil)
	whole := list(w.tenant.Key, "", "1", "")
	for _, params := range []string{"", `,"params":{}`, `,"params":null`, `,"params":{"cursor":"","_meta":{"x":1},"pad":"` + strings.Repeat("x", 100_000) + `"}`} {
		if again := list(w.tenant.Key, "", `"text"`, params); again != whole {
			t.Errorf("with %.50s: %.300s", params, again)
		}
	}
	reads := list(reader, "", "2", "")
	if reads == whole || reads != list(reader, "", "3", "") {
		t.Error("a key that reads is shown what others are")
	}
	if only := list(w.tenant.Key, "?read_only=1", "4", ""); only == whole {
		t.Error("a session that is read-only is shown what writes")
	}
	newer := fmt.Sprintf(`,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}`, "2026-07-28")
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	first := list(w.tenant.Key, "", "5", newer, headers...)
	if again := list(w.tenant.Key, "", "6", newer, headers...); again != first || again == whole {
		t.Errorf("of the newer version: %.300s and %.300s", first, again)
	}
	if a := w.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"none"}}`, "X-API-Key", w.tenant.Key); !strings.Contains(string(a.body), `"error"`) {
		t.Errorf("a cursor that is none: %.300s", a.body)
	}
}
