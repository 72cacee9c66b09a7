package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db"
)

// TestCatalogue: what one cell's catalogue has is in the other one's with its ids, however
// often it is imported; wrong lines are reported by their numbers and keep no others.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	from, to := cellFlag(t, "00"), cellFlag(t, "01")
	old, now := opened(t, from), opened(t, to)
	must(t, "templates", "import", from, "--language=en", "--category=parcels", catalogueFile(t, []byte(aTemplate)))
	must(t, "breaches", "import", from, catalogueFile(t, []byte(`[{"Name": "B", "Title": "B", "DataClasses": ["Passwords"]}]`)))
	lines := must(t, "catalogue", "export", from)

	wrong := "none\n" + `{"kind": "planet", "row": {}}` + "\n" + `{"kind": "breach", "row": {"name": null}}` + "\n"
	refused(t, 1, []string{"catalogue", "import", to, catalogueFile(t, []byte(wrong+lines))}, "line 1: ", "line 2: the kind \"planet\"", "line 3: ", "3 lines of")
	for _, query := range []string{
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM phishing_templates AS t WHERE NOT own",
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM courses AS t",
		"SELECT coalesce(json_agg(t ORDER BY name), '[]')::text FROM breaches AS t",
	} {
		if a, b := textIn(t, old, query), textIn(t, now, query); a != b || a == "[]" {
			t.Errorf("%s says\n%.300s\nand in the other cell\n%.300s", query, a, b)
		}
	}
	if a, b := must(t, "catalogue", "export", to), lines; a != b {
		t.Error("the export of the other cell is another one")
	}
	if out := must(t, "catalogue", "import", to, catalogueFile(t, []byte(lines))); !strings.Contains(out, "0 added, 0 changed, 0 wrong") {
		t.Errorf("once more: %s", out)
	}
	if out := must(t, "audit", to); strings.Count(out, " catalogue import ") != 2 {
		t.Errorf("the audit trail is %s", out)
	}
}

const aTemplate = `[{"name": "Parcel", "subject": "Your parcel", "from_address": "post@example.com", "deception_score": 2,
	"html": "<a href=\"{{url}}\">Track it</a>", "text": "{{url}}", "indicators": {"sender": {"internal": 2}}}]`

func textIn(t *testing.T, d *db.DB, query string) (text string) {
	t.Helper()
	if err := d.SQL().QueryRow(query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func catalogueFile(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "catalogue")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
