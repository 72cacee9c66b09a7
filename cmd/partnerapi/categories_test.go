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
	options := func() int {
		t.Helper()
		options, err := d.TemplateOptions(t.Context(), keys.Client)
		if err != nil {
			t.Fatal(err)
		}
		return len(options)
	}
	all := options()
	if got := must(t, "templates", "enable", flag, client, "it", "finance", "it"); got != client+" is sent templates of finance, it\n" {
		t.Error(got)
	}
	if n := options(); n == 0 || n >= all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
	refused(t, 1, []string{"templates", "enable", flag, client, "it", "sport"}, `"sport"`, "there are delivery, executive, finance")
	refused(t, 1, []string{"templates", "enable", flag, domain.ClientID{15: 1}.String(), "it"}, "no such client")
	if got := must(t, "templates", "enable", flag, client, "all"); !strings.Contains(got, "delivery") || options() != all {
		t.Errorf("%s: %d of %d", got, options(), all)
	}
}
