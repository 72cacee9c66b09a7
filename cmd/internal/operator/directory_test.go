package operator

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// TestDirectoryCommands connects clients to a Google Workspace and syncs them.
func TestDirectoryCommands(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	accounts := directorytest.New()
	google := directorytest.NewGoogle(accounts)
	t.Cleanup(google.Close)
	reached := []string{
		"--google-url=" + google.Endpoints().Google, "--encryption-key=" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
	}
	acme, twin, other := domain.ClientID{15: 1}, domain.ClientID{15: 2}, domain.ClientID{15: 3}
	partner := domain.PartnerID{15: 9}
	c.Add("partners", fixture.Row{"id": partner, "name": "Two", "name_key": "two"})
	c.Add("clients", fixture.Row{"id": acme, "partner_id": c.Partner, "name": "Acme", "name_key": "acme"},
		fixture.Row{"id": twin, "partner_id": c.Partner, "name": "Twin", "name_key": "twin"},
		fixture.Row{"id": other, "partner_id": partner, "name": "Twin", "name_key": "twin"})
	key, empty := fileOf(t, string(google.Credentials())), fileOf(t, "\n")
	connect := func(client, file string) []string {
		return append([]string{"directory", "connect", client, "google", "--credentials-file=" + file, "--admin=admin@example.com"}, reached...)
	}
	run := func(args ...string) []string {
		return append(append([]string{"directory", "run", "Acme"}, args...), reached...)
	}
	unkeyed := connect("Acme", key)
	c.refused(false, unkeyed[:len(unkeyed)-1], "partnerapi encryption-key")
	broken := fileOf(t, "sesame")
	c.refused(false, connect("Acme", broken), broken, "not JSON")
	c.refused(false, connect("Acme", empty), "is empty")
	c.refused(false, connect("Acme", filepath.Join(empty, "x")), empty)
	c.refused(false, connect("Nobody", key), `no client "Nobody"`)
	c.refused(false, connect("twin", key), "2 clients have the name", "of Partner", "of Two")
	c.refused(false, run(), "not configured")
	c.refused(false, []string{"directory", "disconnect", "acme"}, "has no directory")

	c.says(connect("acme", key), acme.String())
	c.must(connect(acme.UUID(), key)...)
	c.refused(false, []string{"directory", "connect", acme.String(), "microsoft", "--tenant=t", "--app-id=a", "--secret-file=" + key, reached[1]},
		"disconnect that first")
	c.says([]string{"directory", "list"}, "Acme", "never")
	if got := c.must("directory", "list"); strings.Contains(got, "service_account") {
		t.Errorf("lists %s", got)
	}

	for i := range 30 {
		accounts.Put(directorytest.Account{ID: fmt.Sprint(i), Email: fmt.Sprintf("u%d@example.com", i)})
	}
	accounts.Put(directorytest.Account{ID: "bad", Email: "nobody"}, directorytest.Account{ID: "none"},
		directorytest.Account{ID: "unlicensed", Email: "unlicensed@example.com", NoMailbox: true})
	out, errs, err := c.run(t.Context(), nil, run()...)
	if err != nil || out != "30 created, 0 updated, 0 deactivated, 0 merged, 0 unchanged, 2 without_email\n" || !strings.Contains(errs, "skipped nobody: not a valid email address") {
		t.Errorf("%s%s: %v", out, errs, err)
	}
	for i := range 10 {
		accounts.Remove(fmt.Sprint(i))
	}
	c.refused(false, run(), "deactivate 10 of the directory's 30", "--force")
	c.says(run("--force"), "0 created, 0 updated, 10 deactivated, 0 merged, 20 unchanged, 2 without_email\n")
	c.says([]string{"directory", "list"}, "completed")
	c.says([]string{"directory", "list", "--json"}, `"without_email": 2`)
	c.must("directory", "disconnect", "Acme")
	if got := c.must("directory", "list"); strings.Count(got, "\n") != 1 {
		t.Errorf("lists %s", got)
	}
	c.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", acme)
	for _, client := range []string{"Acme", acme.String()} {
		c.refused(false, connect(client, key), "it is archived")
	}
}
