package operator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

// admins returns what admins list prints as JSON, as lines.
func (c *console) admins(args ...string) (lines []string) {
	c.t.Helper()
	var all []adminLine
	c.Must(json.Unmarshal([]byte(c.must(append([]string{"admins", "list", "--json"}, args...)...)), &all))
	for _, a := range all {
		lines = append(lines, strings.Join([]string{a.Email, a.Name, string(a.Role), a.Partner, domain.OrZero(a.Client)}, "|"))
	}
	return lines
}

// TestAdmins verifies that admins of a partner and of a client are added by the rules of import, listed and removed.
func TestAdmins(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := c.AddClient()
	var name string
	c.Scan("SELECT name FROM clients", nil, &name)
	c.Exec(`INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at)
		VALUES ($1, gen_random_uuid(), 'grace@hill.example', 'viewer', now(), now() + interval '1 day')`, client)

	partner := c.partner("Partner").ID.String()
	c.must("partners", "create", "Other")
	id := strings.TrimSpace(c.must("admins", "add", "Ada@Hill.EXAMPLE", "--name= Ada Lovelace ", "--role=owner", "--partner="+partner))
	var added adminLine
	c.Must(json.Unmarshal([]byte(c.must("admins", "add", "grace@hill.example", "--name=Grace", "--client="+name, "--json")), &added))
	if added.Client == nil || *added.Client != name || *added.ClientID != client || added.Role != domain.FullRole || time.Since(added.CreatedAt.Time) > time.Hour {
		t.Errorf("added %+v", added)
	}
	c.must("admins", "add", "ada@hill.example", "--name=Ada", "--role=viewer", "--client="+client.UUID())
	var open int
	c.Scan("SELECT count(*) FROM admin_invites WHERE accepted_at IS NULL", nil, &open)
	if open != 0 {
		t.Errorf("%d invites are open", open)
	}
	want := []string{"ada@hill.example|Ada Lovelace|owner|Partner|", "ada@hill.example|Ada|viewer|Partner|" + name, "grace@hill.example|Grace|admin|Partner|" + name}
	for _, flags := range [][]string{nil, {"--partner=partner"}} {
		if got := c.admins(flags...); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%v: got %q, want %q", flags, got, want)
		}
	}
	if got := c.admins("--client=" + client.String()); strings.Join(got, "\n") != strings.Join(want[1:], "\n") {
		t.Errorf("of the client: %q", got)
	}
	c.says([]string{"admins", "list"}, "EMAIL", id, "Ada Lovelace")

	for says, args := range map[string][]string{
		"belongs to an admin of this partner": {"ADA@hill.example", "--name=A", "--partner=partner"},
		"already used by":                     {"grace@hill.example", "--name=A", "--client=" + name},
		"email must be":                       {"no address", "--name=A", "--partner=partner"},
		"name must":                           {"a@b.example", "--name=a\x01b", "--partner=partner"},
		"name must not be blank":              {"a@b.example", "--name= ", "--partner=partner"},
		`"` + name + `" belongs to another partner: Partner`: {"a@b.example", "--name=A", "--client=" + name, "--partner=Other"},
		`belongs to another partner`:                         {"a@b.example", "--name=A", "--client=" + client.String(), "--partner=Other"},
		`no client "Nobody"`:                                 {"a@b.example", "--name=A", "--client=Nobody"},
	} {
		c.refused(false, append([]string{"admins", "add"}, args...), says)
	}
	c.refused(true, []string{"admins", "add", "a@b.example", "--name=A", "--role=king"}, "role")

	c.refused(false, []string{"admins", "remove", "ada@hill.example"}, "the email address of 2 admins", id)
	c.refused(false, []string{"admins", "remove", "nobody@hill.example"}, "there is no admin")
	c.refused(false, []string{"admins", "remove", "nobody"}, "neither the ID nor the email address")
	c.must("admins", "remove", "ADA@hill.example", "--client="+name)
	c.must("admins", "remove", id)
	c.must("admins", "remove", added.ID.UUID(), "--partner=partner")
	if left := c.admins(); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	c.audited("partners create partner name", "admins add admin email name role", "admins add admin email name role", "admins add admin email name role",
		"admins remove admin", "admins remove admin", "admins remove admin")
}
