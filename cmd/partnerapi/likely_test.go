package main

import (
	"os"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestDidYouMean: what nothing is called ends with what is likely meant.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	insertClients(t, d, "Acme", "Hill Bakery", "Lighthouse Shipping")
	insertClients(t, d, "Brick & Sons", "Other")
	for _, tt := range []struct {
		code       int
		line, want string
	}{
		{2, "servee", `did you mean "serve"?`},
		{2, "key list", `did you mean "keys"?`},
		{2, "keys lst", `did you mean "list"?`},
		{2, "help keyz", `did you mean "keys"?`},
		{2, "keys list --jsn", `did you mean "--json"?`},
		{1, "mail switches HIL/BAKERY", `or its name, did you mean "Hill Bakery"?`},
		{1, "mail switches lighthouse", `or its name, did you mean "Lighthouse Shipping"?`},
		{1, "directory run hill/bakeri", `did you mean "Hill Bakery"?`},
		{1, "mail switches zebra", "or its name\n"},
		{1, "mail switches cli_01h455vb4pex5vsknk084sn02q", `there is no client "cli_01h455vb4pex5vsknk084sn02q"`},
		{1, "webhooks list --partner=acmee", `shows all, did you mean "Acme"?`},
		{1, "export --partner=sons", `shows all, did you mean "Brick & Sons"?`},
		{1, "export --partner=zebra", "shows all\n"},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=hill/baker", `--clients: there is no client "hill baker"`},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=usr_01m7y3nn85edyb80dbaa8e2evb", "there is no client \"usr_01m7y3nn85edyb80dbaa8e2evb\""},
		{1, "keys create --partner=Acme --name=n --scopes=read --clients=othr", "or its name\n"}, // another partner's
		{2, "reports make hill executive_sumary --out=" + os.DevNull, `did you mean "executive_summary"?`},
	} {
		args := strings.Fields(tt.line)
		for i := range args {
			if !strings.HasPrefix(tt.line, "reports") {
				args[i] = strings.ReplaceAll(args[i], "/", " ")
			}
		}
		if tt.code == 1 {
			args = append(args, flag)
		}
		if r := command(t, args...); r.code != tt.code || !strings.Contains(r.err, tt.want) {
			t.Errorf("%s: exit %d: %s", tt.line, r.code, r.err)
		}
	}
}

// TestNamedByIDOrName: a command takes a client and a partner by id, UUID or name. A name of
// several clients, and one that is archived, name none.
func TestNamedByIDOrName(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	clients := insertClients(t, d, "Acme", "Hill", "Vale")
	insertClients(t, d, "Brick", "Hill")
	partner := partnerNamed(t, d, "Acme")
	for _, name := range []string{partner.String(), strings.ToUpper(partner.UUID()), "acme"} {
		if got := must(t, "export", "--partner="+name, flag); !strings.Contains(got, clients[0].String()) || strings.Contains(got, "Brick") {
			t.Errorf("exported of %s:\n%s", name, got)
		}
	}
	for _, name := range []string{clients[0].String(), clients[0].UUID(), "hill", "Vale, " + clients[0].String()} { // Brick has a Hill too
		key := newKey(t, flag, "--partner="+partner.UUID(), "--name="+name, "--scopes=read", "--clients="+name)
		var reached int
		if err := d.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM api_keys AS k JOIN api_key_clients AS c ON c.key_id = k.id
			WHERE k.prefix = $1 AND c.client_id = $2`, prefix(key), clients[0]).Scan(&reached); err != nil || reached != 1 {
			t.Errorf("the key for %s reaches %d: %v", name, reached, err)
		}
	}

	vale := clients[1]
	if out := must(t, "mail", "disable", flag, strings.ToUpper(vale.UUID()), "certificate"); out != "Vale ("+vale.String()+"): certificate is off\n" {
		t.Errorf("says %q", out)
	}
	must(t, "mail", "enable", flag, "VALE", "monthly-report")
	got := must(t, "mail", "switches", flag, vale.String())
	if !strings.HasPrefix(got, "KIND             STATE\n") || !strings.Contains(got, "\ncertificate      off\n") || strings.Count(got, " on\n") != len(domain.ServiceMails)-1 || !strings.Contains(got, "\nreport-link      off\n") {
		t.Errorf("%s", got)
	}
	if got := must(t, "mail", "switches", flag, clients[0].String()); strings.Count(got, " off\n") != 2 {
		t.Errorf("another client's changed: %s", got)
	}
	refused(t, 1, []string{"mail", "switches", flag, "Hill"}, "2 clients", clients[0].String())
	refused(t, 1, []string{"mail", "disable", flag, "Nobody", "certificate"}, "Nobody", "GET /v2/clients")
	refused(t, 2, []string{"mail", "disable", flag, "Vale", "welcome"}, "phish-reminder")
	refused(t, 2, []string{"mail", "disable", flag, "Vale"})
	execute(t, d, "UPDATE clients SET archived_at = now() WHERE id = $1", vale)
	refused(t, 1, []string{"mail", "switches", flag, vale.String()}, "no client", "archived")
}
