package main

import (
	"strings"
	"testing"

	"partnerapi/db/seed"
	"partnerapi/domain"
)

// TestEnableTemplates: what is enabled is what a client may be sent, until all
// is enabled again.
func TestEnableTemplates(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	if err := d.LoadTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := seed.Demo(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	client := keys.Client.String()
	caller := &domain.Caller{AllClients: true}
	if err := d.SQL().QueryRow("SELECT partner_id FROM clients WHERE id = $1", keys.Client).Scan(&caller.Partner); err != nil {
		t.Fatal(err)
	}
	options := func() int {
		t.Helper()
		tenant, err := d.Tenant(domain.WithCaller(t.Context(), caller), keys.Client)
		if err != nil {
			t.Fatal(err)
		}
		options, err := tenant.TemplateOptions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(options)
	}
	all := options()
	if got := must(t, "templates", "enable", flag, client, "it", "finance", "it"); !strings.HasSuffix(got, " ("+client+") is sent templates of finance, it\n") {
		t.Error(got)
	}
	if n := options(); n == 0 || n >= all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
	refused(t, 1, []string{"templates", "enable", flag, client, "it", "sport"}, `"sport"`, "there are delivery, executive, finance")
	refused(t, 1, []string{"templates", "enable", flag, domain.ClientID{15: 1}.String(), "it"}, "no client")
	if got := must(t, "templates", "enable", flag, client, "all"); !strings.Contains(got, "delivery") || options() != all {
		t.Errorf("%s: %d of %d", got, options(), all)
	}
}
