package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// rowsOf are the cells of a guide's tables, by their first one.
func rowsOf(t *testing.T, file string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(fileText(t, file)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[cells[1]] = cells[1:]
		}
	}
	return rows
}

// TestDeltaTable holds the table of the guide to delta sync to the declarations of lists. Only the table says which
// fields identify the items, and which changes a list does not report.
func TestDeltaTable(t *testing.T) {
	t.Parallel()
	document, err := documentV2(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	const file = "docs/guide/delta-sync.md"
	rows := rowsOf(t, file)
	var table strings.Builder
	table.WriteString("| list | identified by | `updated_at` | how to read what changed | not reported |\n|---|---|---|---|---|\n")
	for _, o := range api.Operations {
		m := o.Meta()
		if m.Method != http.MethodGet || param(o, "cursor") == nil {
			continue
		}
		list := "`GET /v2" + op.Braced(m.Path) + "`"
		said := rows[list]
		if said == nil {
			t.Errorf("nothing is said of %s", m.ID)
			said = []string{list, "`id`", "", "", ""}
		}
		key, missed := said[1], said[4]
		item := itemOf(document, op.Braced(m.Path))
		if fields := strings.FieldsFunc(key, func(r rune) bool { return r == '`' || r == ',' || r == ' ' }); key != "none" {
			for _, field := range fields {
				if item[field] == nil {
					t.Errorf("the items of %s have no %s", m.ID, field)
				}
			}
		} else if item["id"] != nil {
			t.Errorf("the items of %s have an id", m.ID)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", list, key,
			map[bool]string{true: "yes", false: "no"}[item["updated_at"] != nil], changes(o), missed)
	}
	holdSection(t, file, "Every list", table.String())
}

func param(o op.Declaration, name string) *op.Param {
	params := o.Input().Query
	if i := slices.IndexFunc(params, func(p op.Param) bool { return p.Name == name }); i >= 0 {
		return &params[i]
	}
	return nil
}

// itemOf is the fields of a list's items, as the document has them.
func itemOf(document *openapi3.T, path string) openapi3.Schemas {
	page := document.Paths.Value(path).Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema.Value
	fields := openapi3.Schemas{}
	item := page.Properties["data"].Value.Items.Value
	maps.Copy(fields, item.Properties)
	for _, part := range item.AllOf {
		maps.Copy(fields, part.Value.Properties)
	}
	return fields
}

// changes says how a list is asked for what changed.
func changes(o op.Declaration) string {
	if p := param(o, "updated_since"); p != nil {
		return "`updated_since`. " + p.Tag.Get("doc")
	}
	switch {
	case o.Meta().ID == "events.list":
		return "the [cursor](webhooks.md#read-the-feed) that you stored"
	case param(o, "since") != nil:
		return "`since`. " + param(o, "since").Tag.Get("doc")
	}
	return "read the complete list"
}

// holdSection holds a part of a guide, from its heading of the second level to the next
// one, to a text, or writes it with -update.
func holdSection(t *testing.T, file, heading, want string) {
	t.Helper()
	got := fileText(t, file)
	before, rest, ok := strings.Cut(got, "\n## "+heading+"\n\n")
	_, after, ended := strings.Cut(rest, "\n## ")
	if !ok || !ended {
		t.Fatalf("%s has no part %q", file, heading)
	}
	text := before + "\n## " + heading + "\n\n" + want + "\n## " + after
	switch {
	case text == got:
	case !*update:
		t.Errorf("%s, %s: run make operations\n%s", file, heading, v2test.Diff(got, text))
	default:
		if err := os.WriteFile(root+file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReportTable holds the table of the guide to reports to the types that there are.
func TestReportTable(t *testing.T) {
	t.Parallel()
	const file = "docs/guide/report.md"
	rows := rowsOf(t, file)
	var table strings.Builder
	table.WriteString("| type | period | contents |\n|---|---|---|\n")
	for _, r := range domain.ReportTypes {
		said := rows["`"+string(r)+"`"]
		if said == nil {
			t.Errorf("nothing is said of %s", r)
			said = make([]string, 3)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", r, map[bool]string{true: "yes", false: "no"}[r.HasPeriod()], said[2])
	}
	holdSection(t, file, "Types", table.String())
}
