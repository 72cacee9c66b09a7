package operator

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// partner returns the partner of a name as partners list has it.
func (c *console) partner(name string) (p partnerLine) {
	c.t.Helper()
	var all []partnerLine
	c.Must(json.Unmarshal([]byte(c.must("partners", "list", "--json")), &all))
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	c.t.Fatalf("partners list has no %q: %+v", name, all)
	return p
}

// audited checks that the last entries of commands are of these operations and fields.
func (c *console) audited(want ...string) {
	c.t.Helper()
	var all []AuditLine
	c.Must(json.Unmarshal([]byte(c.must("audit", "--key=command", "--json")), &all))
	var got []string
	for _, e := range all[max(len(all)-len(want), 0):] {
		kind := ""
		if e.Object != nil {
			kind = e.Object.Kind
		}
		got = append(got, strings.TrimSpace(e.Operation+" "+kind+" "+strings.Join(e.Fields, " ")))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("got entries %q, want %q", got, want)
	}
}

// TestRenamePartner verifies that a partner is renamed by the rules of import, by its name or ID.
func TestRenamePartner(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.must("partners", "create", "Acme")
	c.must("partners", "create", "Tidewater")
	id := c.partner("Acme").ID
	c.must("partners", "rename", "ACME", "  Acme Security ")
	c.must("partners", "rename", id.UUID(), "acme security") // its own name in another spelling
	if c.partner("acme security").ID != id {
		t.Error("another partner was renamed")
	}
	c.refused(false, []string{"partners", "rename", id.String(), " TIDEWATER"}, "the partner "+c.partner("Tidewater").ID.String()+" already has the name")
	c.refused(false, []string{"partners", "rename", "Acme", "x"}, `no partner "Acme"`)
	c.refused(true, []string{"partners", "rename", "Acme", " "}, "blank")
	c.refused(false, []string{"partners", "rename", id.String(), "a\u2028b"}, "control characters")
	c.audited("partners rename partner name", "partners rename partner name")
}

// TestArchivePartner verifies that an archived partner's keys and clients are out of use, that nothing can be added to
// it, and that a restored one has the clients back that were archived with it.
func TestArchivePartner(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	early, late := c.AddClient(), c.AddClient() // of the partner "Partner"
	c.Exec("UPDATE clients SET archived_at = created_at WHERE id = $1", early)
	c.Exec("UPDATE partners SET client_count = 1")
	p := c.partner("Partner")
	key := strings.TrimSpace(c.must("keys", "create", "--name=k", "--clients=all", "--scopes=read"))
	revoked := strings.TrimSpace(c.must("keys", "create", "--name=old", "--clients=all", "--scopes=read"))
	c.must("keys", "revoke", revoked[:13])
	c.must("partners", "create", "Other")
	const says = " and 1 client, and revoked 1 API key; 0 webhooks end with the keys."

	valid := func() bool {
		_, err := c.DB.CallerByDigest(t.Context(), db.KeyDigest(key))
		return err == nil
	}
	if got := c.must("partners", "archive", "--dry-run", "partner"); !strings.HasPrefix(got, "dry run: archived "+p.ID.String()+says) || !valid() {
		t.Errorf("the dry run says %q", got)
	}
	c.says([]string{"partners", "archive", "partner"}, "archived "+p.ID.String()+says)
	if got := c.partner("Partner"); got.ArchivedAt == nil || got.Clients != 0 || valid() {
		t.Errorf("got %+v, key valid: %v", got, valid())
	}
	if got := c.must("partners", "list"); !regexp.MustCompile(`(?m)^Partner +0 +\S+ +20\d\d-\d\d-\d\d`).MatchString(got) {
		t.Errorf("the list is\n%s", got)
	}
	if got := c.must("keys", "list"); regexp.MustCompile(`(?m) -  +-$`).MatchString(got) {
		t.Errorf("a key is not revoked:\n%s", got)
	}

	c.refused(false, []string{"partners", "archive", "partner"}, "already archived")
	c.audited("partners create partner name", "partners archive partner archived_at")
	c.refused(false, []string{"keys", "create", "--partner=partner", "--name=k", "--clients=all", "--scopes=read"}, "the partner is archived")
	c.refused(false, []string{"admins", "add", "a@b.example", "--name=A", "--partner=partner"}, "the partner is archived")
	c.must("keys", "create", "--name=k", "--clients=all", "--scopes=read") // of the other partner, the only one left
	for _, line := range []string{
		`{"object":"client","id":"` + domain.ClientID{7}.UUID() + `","partner":"` + p.ID.UUID() + `","name":"New"}`,
		`{"object":"client","id":"` + late.UUID() + `","archived":false}`,
	} {
		c.refused(false, []string{"import", fileOf(t, line+"\n")}, "partner is archived")
	}
	c.must("import", fileOf(t, `{"object":"client","id":"`+late.UUID()+`","industry":"Retail"}`+"\n"))

	c.must("partners", "restore", p.ID.String())
	var others int
	c.Scan("SELECT count(*) FROM clients WHERE (archived_at IS NULL) <> (id = $1)", []any{late}, &others)
	if got := c.partner("Partner"); got.ArchivedAt != nil || got.Clients != 1 || others != 0 || valid() {
		t.Errorf("got %+v, %d clients in another state, key valid: %v", got, others, valid())
	}
	c.refused(false, []string{"partners", "restore", "partner"}, "not archived")
	c.audited("partners restore partner archived_at")
}
