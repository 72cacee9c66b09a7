package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/operator"
	"partnerapi/idmap"
)

// TestCommandsOfV1AreAudited: each command that retires version 1, and the import of its
// numbers, leaves an entry. What is refused leaves none.
func TestCommandsOfV1AreAudited(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	client := insertClients(t, d, "Acme", "Hill")[0]
	key := must(t, "keys", "create", "--name=k", "--clients=all", "--scopes=read", flag)[:13]
	numbers := filepath.Join(t.TempDir(), "numbers")
	if err := os.WriteFile(numbers, []byte("client,77,"+client.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	in := func(years int) string { return d.Now().AddDate(years, 0, 0).Format(time.DateOnly) }

	refused(t, 1, []string{"v1", "cancel", flag}, "")
	for _, c := range []struct {
		name, kind string
		args       []string
		fields     []string
	}{
		{"v1 announce", "", []string{"v1", "announce", "--sunset=" + in(2)}, []string{"sunset"}},
		{"v1 postpone", "", []string{"v1", "postpone", "--sunset=" + in(3)}, []string{"sunset"}},
		{"v1 phase", "key", []string{"v1", "phase", key, "off", "--until=" + in(1)}, []string{"phase", "until"}},
		{"v1 phase", "partner", []string{"v1", "phase", "--partner=acme", "brownout"}, []string{"phase"}},
		{"v1 phase", "", []string{"v1", "phase", "--all", "read_only"}, []string{"phase"}},
		{"v1 brownout add", "brownout", []string{"v1", "brownout", "add", "--start=" + in(1), "--for=10m"},
			[]string{"count", "every", "for", "keys", "start"}},
		{"v1 brownout cancel", "brownout", []string{"v1", "brownout", "cancel", "1"}, nil},
		{"v1 cancel", "", []string{"v1", "cancel"}, []string{"sunset"}},
		{"idmap import", "", []string{"idmap", "import", numbers}, nil},
	} {
		must(t, append(c.args, flag)...)
		var entries []operator.AuditLine
		if err := json.Unmarshal([]byte(must(t, "audit", "--json", "--key=command", flag)), &entries); err != nil {
			t.Fatal(err)
		}
		e := entries[len(entries)-1]
		if e.Operation != c.name || !slices.Equal(e.Fields, c.fields) || (e.Object == nil) != (c.kind == "") ||
			e.Object != nil && (e.Object.Kind != c.kind || e.Object.ID == "") || *e.SystemUser != database.SystemUser() {
			t.Errorf("%q leaves %+v of %+v", c.args, e, e.Object)
		}
	}
	number, err := idmap.New(d.DB, 0).Numbers(t.Context(), []idmap.IDKey{{Kind: idmap.Client, ID: idmap.UUID(client)}})
	if err != nil || len(number) != 1 {
		t.Errorf("after the import: %v, %v", number, err)
	}
}
