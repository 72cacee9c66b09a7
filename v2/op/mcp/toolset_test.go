package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// TestToolsets: a caller is shown the tools of the toolsets that it names, by address or
// by header, and the usual ones without a name, however the parameters are written.
func TestToolsets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	resources := map[string]string{}
	for _, o := range w.API.Set.All() {
		resources[strings.ReplaceAll(o.Meta().ID, ".", "_")] = o.Meta().Resource()
	}
	resources["docs_search"] = "(guides)"
	shown := func(query string, headers ...string) []string {
		t.Helper()
		var found []string
		for cursor := ""; ; {
			message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q}}`, cursor)
			a := w.sendTo(mcp.Path+query, "POST", message, append(headers, "X-API-Key", w.tenant.Key)...)
			page := a.reply(t).Result
			if len(page.Tools) == 0 || len(page.Tools) > 100 {
				t.Fatalf("%d %.300s", a.Status, a.Body)
			}
			for _, tool := range page.Tools {
				found = append(found, resources[tool.Name])
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}

	usual := []string{"(guides)", "clients", "key", "phishing", "reports", "risk", "training", "users"}
	for _, c := range []struct {
		query   string
		headers []string
		want    []string
	}{
		{"", nil, usual},
		{"?toolsets=,", nil, usual},
		{"?toolsets=clients,%20webhooks", nil, []string{"(guides)", "clients", "webhooks"}},
		{"", []string{"X-MCP-Toolsets", "risk"}, []string{"(guides)", "risk"}},
		{"?toolsets=users", []string{"X-MCP-Toolsets", "risk"}, []string{"(guides)", "users"}},
	} {
		if got := shown(c.query, c.headers...); !slices.Equal(got, c.want) {
			t.Errorf("%s %v shows %v, not %v", c.query, c.headers, got, c.want)
		}
	}
	if all := shown("?toolsets=all"); len(all) <= len(usual) {
		t.Errorf("all are %v", all)
	}
	list := func(params string) string {
		return string(w.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"`+params+`}`, "X-API-Key", w.tenant.Key).Body)
	}
	whole, pad := list(""), strings.Repeat("x", 100_000)
	for _, params := range []string{`{}`, `null`, `{"cursor":"","_meta":{"x":1},"pad":"` + pad + `"}`} {
		if got := list(`,"params":` + params); got != whole {
			t.Errorf("with %.50s: %.300s", params, got)
		}
	}
	if got := list(`,"params":{"cursor":"none"}`); !strings.Contains(got, `"error"`) {
		t.Errorf("a cursor that is none: %.300s", got)
	}
	a := w.sendTo(mcp.Path+"?toolsets=clients,none", "POST", listTools, "X-API-Key", w.tenant.Key)
	if wantFault(t, a); !strings.Contains(string(a.Body), "webhooks") {
		t.Errorf("an unknown toolset: %s", a.Body)
	}
}

// TestSingleTools verifies that a caller who names tools sees those alone or, with toolsets, in addition, and that an
// earlier release ignores them.
func TestSingleTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	shown := func(w *world, query string, headers ...string) string {
		t.Helper()
		var list []string
		for _, tool := range w.sendTo(mcp.Path+query, "POST", listTools, append(headers, "X-API-Key", w.tenant.Key)...).reply(t).Result.Tools {
			list = append(list, tool.Name)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	const keyTools = "docs_search key_get"
	header := func(tools string) []string { return []string{"X-MCP-Tools", tools} }
	for _, c := range []struct {
		query   string
		headers []string
		want    string
	}{
		{"?tools=users_list,%20webhooks_create,,users_list", nil, "users_list webhooks_create"},
		{"", header("webhooks_list"), "webhooks_list"},
		{"?tools=users_get", header("webhooks_list"), "users_get"},
		{"?tools=docs_search,users_get&schemas=1", nil, "docs_search users_get"},
		{"?toolsets=key", nil, keyTools},
		{"?toolsets=key&tools=events_list", nil, "docs_search events_list key_get"},
		{"?toolsets=,&tools=events_list", nil, "events_list"},
		{"?toolsets=key", header("events_list,key_get"), "docs_search events_list key_get"},
		{"?toolsets=all&tools=users_get", nil, shown(w, "?toolsets=all")},
		{"?tools=", nil, shown(w, "")},
		{"?tools=users_update,users_get&read_only=1", nil, "users_get"},
	} {
		if got := shown(w, c.query, c.headers...); got != c.want {
			t.Errorf("%s %v shows %s, not %s", c.query, c.headers, got, c.want)
		}
	}
	for _, name := range []string{"none", "all", "users.list", strings.Repeat("x", 5000), "\u202e"} {
		a := w.send("POST", listTools, "X-API-Key", w.tenant.Key, "X-MCP-Tools", name)
		if wantFault(t, a); a.Status != http.StatusBadRequest || len(a.Body) > 1000 || !strings.Contains(string(a.Body), `"field":"tools"`) {
			t.Errorf("%.20s: %d %s", name, a.Status, a.Body)
		}
	}
	earlier := newWorld(t, v2test.Options{Release: op.V2_4})
	if got := shown(earlier, "?tools=users_list", "X-MCP-Tools", "none"); got != shown(earlier, "") || strings.Contains(got, "docs_search") {
		t.Errorf("release 2.4 shows %s", got)
	}
}

// TestSearchGuides verifies what the search of the guides accepts and returns, and that a call counts against the budget.
func TestSearchGuides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: ginop.Limits{PerKey: 30, PerAddress: 100, PerClientFactor: 1}})
	plain, structured := w.connect(w.tenant.Key, ""), w.connect(w.tenant.Key, "?schemas=1")
	passages := func(r *sdk.CallToolResult) int { return strings.Count(parameterText(r), "Some text.") }
	for _, c := range []struct {
		arguments map[string]any
		want      int
	}{
		{map[string]any{"query": "rotate a secret"}, 5},
		{map[string]any{"query": " x ", "limit": 10}, 10},
		{map[string]any{"query": strings.Repeat("ü", 200), "limit": 1.0}, 1},
		{map[string]any{"query": "x", "limit": nil}, 5},
		{map[string]any{"query": "nothing"}, 0},
	} {
		text, data := w.call(plain, "docs_search", c.arguments), w.call(structured, "docs_search", c.arguments)
		if text.IsError || text.StructuredContent != nil || passages(text) != c.want {
			t.Errorf("%v: %s", c.arguments, parameterText(text))
		}
		var out struct{ Passages []mcp.Passage }
		if err := json.Unmarshal([]byte(parameterText(data)), &out); err != nil || len(out.Passages) != c.want || data.StructuredContent == nil {
			t.Errorf("%v: %v %s", c.arguments, err, parameterText(data))
		}
	}
	first := w.call(plain, "docs_search", map[string]any{"query": "x", "limit": 2})
	want := "# Guide 1: x\n" + page + "/docs/guide/1#part\n\nSome text.\n\n# Guide 2: x\n" + page + "/docs/guide/2#part\n\nSome text."
	if parameterText(first) != want {
		t.Errorf("got %q", parameterText(first))
	}
	for field, arguments := range map[string]map[string]any{
		"query is":              {},
		"query must not":        {"query": " "},
		"query must be a":       {"query": 7},
		"query must be at":      {"query": strings.Repeat("x", 201)},
		"limit must be between": {"query": "x", "limit": 11},
		"limit must be an":      {"query": "x", "limit": "many"},
		"pages is":              {"query": "x", "pages": 1},
		"fields is":             {"query": "x", "fields": []string{"url"}},
	} {
		if out := w.call(structured, "docs_search", arguments); codeOf(out) != domain.InvalidRequest || !strings.Contains(parameterText(out), field) || out.StructuredContent != nil {
			t.Errorf("%s: %s", field, parameterText(out))
		}
	}
	_, err := plain.CallTool(t.Context(), &sdk.CallToolParams{Name: "docs_search", Arguments: map[string]any{"query": "broken"}})
	if failure, ok := errors.AsType[*jsonrpc.Error](err); !ok || failure.Code != jsonrpc.CodeInternalError || strings.Contains(failure.Message, "guide") {
		t.Errorf("an invalid guide: %v", err)
	}
	for range 10 {
		w.call(plain, "docs_search", map[string]any{"query": "x"})
	}
	if out := w.call(plain, "docs_search", map[string]any{"query": "x"}); codeOf(out) != domain.RateLimited {
		t.Errorf("over the budget: %s", parameterText(out))
	}
}

// TestCompact: without schemas a page is a line for each row, said once, and its cursor
// leads to the next.
func TestCompact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	client := w.client.ID.String()
	for n := range 3 {
		w.AddUser(w.tenant, w.client.ID, v2test.Email(n))
	}
	session := w.connect(w.tenant.Key, "")

	first := w.call(session, "users_list", map[string]any{"client_id": client, "limit": 3})
	lines := strings.Split(parameterText(first), "\n")
	if first.StructuredContent != nil || len(lines) != 5 || !strings.HasPrefix(lines[0], "id\temail\t") {
		t.Fatalf("%+v %q", first.StructuredContent, lines)
	}
	if row := strings.Split(lines[1], "\t"); len(row) != len(strings.Split(lines[0], "\t")) || row[0] != w.user.ID.String() {
		t.Errorf("a row %q below %q", lines[1], lines[0])
	}
	said, cursor, _ := strings.Cut(lines[4], "; next_cursor ")
	if said != "3 rows" || cursor == "" {
		t.Fatalf("the page ends with %q", lines[4])
	}
	second := w.call(session, "users_list", map[string]any{"client_id": client, "limit": 3, "cursor": cursor, "fields": []string{"email", "group.name", "manager_email", "training"}})
	want := fmt.Sprintf("email\tgroup.name\tmanager_email\ttraining\n%s\tManual\t\t{\"next_course\":", v2test.Email(2))
	if text := parameterText(second); !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "}\n1 rows, no more") {
		t.Errorf("%q, not %q", parameterText(second), want)
	}
	whole := w.call(session, "users_list", map[string]any{"client_id": client, "limit": 1, "fields": []string{"*"}})
	row, _, _ := strings.Cut(parameterText(whole), "\n")
	var user struct{ ID domain.UserID }
	if err := json.Unmarshal([]byte(row), &user); err != nil || user.ID != w.user.ID {
		t.Errorf("%v: %s", err, row)
	}

	usual := parameterText(w.call(session, "users_list", map[string]any{"client_id": client, "limit": 1}))
	for _, none := range []any{[]string{}, []string{""}, "", nil} {
		if text := parameterText(w.call(session, "users_list", map[string]any{"client_id": client, "limit": 1, "fields": none})); text != usual {
			t.Errorf("the fields %q: %s", none, text)
		}
	}
	repeated := w.call(session, "users_list", map[string]any{"client_id": client, "limit": 1, "fields": []string{"risk.score", "email", "email", "risk", "risk.grade", "email"}})
	if head, _, _ := strings.Cut(parameterText(repeated), "\n"); head != "email\trisk" {
		t.Errorf("repeated fields have the columns %q", head)
	}
	structured := w.connect(w.tenant.Key, "?schemas=1")
	if out := w.call(structured, "users_list", map[string]any{"client_id": client, "fields": []string{}}); out.IsError {
		t.Errorf("no fields of a structured result: %s", parameterText(out))
	}

	var many []string
	for n := range 20_000 {
		many = append(many, fmt.Sprintf("data.%d", n))
	}
	if out := w.call(session, "events_list", map[string]any{"fields": many}); codeOf(out) != domain.InvalidRequest || len(parameterText(out)) > 1000 {
		t.Errorf("20,000 fields of any object: %.500s", parameterText(out))
	}
	wrong := w.call(session, "users_list", map[string]any{"client_id": client, "fields": []string{"email", "score"}})
	if codeOf(wrong) != domain.InvalidRequest || !strings.Contains(parameterText(wrong), "risk.score") {
		t.Errorf("a wrong field: %s", parameterText(wrong))
	}
	one := w.call(session, "clients_get", map[string]any{"client_id": client})
	if one.StructuredContent != nil || !json.Valid([]byte(parameterText(one))) {
		t.Errorf("a client: %+v", one)
	}
}

// prompted is the text of a prompt with arguments.
func prompted(session *sdk.ClientSession, name string, arguments map[string]string) (string, error) {
	out, err := session.GetPrompt(context.Background(), &sdk.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return out.Messages[0].Content.(*sdk.TextContent).Text, nil
}

// TestArgumentsAreNoQuery verifies that a wrong address in an argument is not told to escape a plus sign.
func TestArgumentsAreNoQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	out := w.call(w.connect(w.tenant.Key, "?toolsets=all"), "users_find", map[string]any{"email": "a b@x.example"})
	if text := parameterText(out); codeOf(out) != domain.InvalidRequest || strings.Contains(text, "%2B") {
		t.Errorf("got %s", text)
	}
}

// TestRowsAreNoCount verifies that a name can neither stand for the last line of a page nor hide text in a prompt.
func TestRowsAreNoCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	w.Exec("UPDATE clients SET name = '59 rows, no more' WHERE id = $1", w.client.ID)
	session := w.connect(w.tenant.Key, "")
	text := parameterText(w.call(session, "clients_list", map[string]any{"fields": []string{"name"}}))
	if !strings.Contains(text, "\n\"59 rows, no more\"\n") {
		t.Errorf("the page is\n%s", text)
	}
	prompt, err := prompted(session, "explain_risk", map[string]string{"client": "Hill\u202eside" + strings.Repeat("x", 5000)})
	if err != nil || strings.Contains(prompt, "\u202e") || !strings.Contains(prompt, `\u{202e}`) || len(prompt) > 2000 {
		t.Errorf("the prompt is %q, %v", prompt, err)
	}
}

// TestPrompts: the prompts name tools that there are, and need their arguments. A client that is
// given by its id is read by it, and one that is given by its name is searched for.
func TestPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	session := w.connect(w.tenant.Key, "")
	tools := w.toolsOf(session)
	groups := []string{"clients", "users", "training", "phishing", "courses", "reports"}
	for name, argument := range map[string]string{"remind_overdue": "clients", "review_phishing": "client", "explain_risk": "client"} {
		for given, words := range map[string][2]string{
			w.client.ID.String(): {"(clients_get)", "clients_list"}, "Client": {"(clients_list with q)", "clients_get"},
		} {
			text, err := prompted(session, name, map[string]string{argument: given})
			if err != nil || strings.Contains(text, "{") || !strings.Contains(text, given) {
				t.Errorf("%s of %s: %v %q", name, given, err, text)
			}
			if argument == "client" && (!strings.Contains(text, words[0]) || strings.Contains(text, words[1])) {
				t.Errorf("%s of %s: %s", name, given, text)
			}
			for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
				if group, _, named := strings.Cut(word, "_"); named && slices.Contains(groups, group) && tools[word] == nil {
					t.Errorf("%s names the tool %s, which is not there", name, word)
				}
			}
		}
		for _, given := range []map[string]string{nil, {"other": "3"}, {argument: ""}} {
			_, err := prompted(session, name, given)
			refused, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || refused.Code != -32602 || !strings.Contains(refused.Message, "argument "+argument) {
				t.Errorf("%s of %v: %v", name, given, err)
			}
		}
	}
}

// TestPromptsOfRights: a prompt is shown only to callers who may call all of its tools.
func TestPromptsOfRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	read, write := w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil), w.AddKey(w.tenant, []domain.Scope{domain.Write}, nil)
	for name, c := range map[string]struct {
		key, query string
		want       []string
	}{
		"all":       {w.tenant.Key, "", []string{"explain_risk", "remind_overdue", "review_phishing"}},
		"read only": {w.tenant.Key, "?read_only=1", []string{"explain_risk", "review_phishing"}},
		"read":      {read, "", []string{"explain_risk", "review_phishing"}},
		"write":     {write, "", nil},
	} {
		session := w.connect(c.key, c.query)
		var names []string
		for p, err := range session.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, p.Name)
		}
		if slices.Sort(names); !slices.Equal(names, c.want) {
			t.Errorf("%s: the prompts %q", name, names)
		}
		_, err := prompted(session, "remind_overdue", map[string]string{"clients": "3"})
		if shown := slices.Contains(c.want, "remind_overdue"); shown != (err == nil) {
			t.Errorf("%s: a prompt that leads to a write: %v", name, err)
		}
	}
}
