package operator

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"partnerapi/cmd/internal/cli"
	"partnerapi/domain"
)

const aTemplate = `[{"name": "Parcel", "subject": "Your parcel", "from_address": "post@example.com", "deception_score": 2,
	"html": "<a href=\"{{url}}\">Track it</a>", "text": "{{url}}", "indicators": {"sender": {"internal": 2}}}]`

// TestCatalogue: what one cell's catalogue has is in the other one's with its ids, however
// often it is imported; wrong lines are reported by their numbers and keep no others.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	from, to := newConsole(t), newConsole(t)
	from.must("templates", "import", "--language=en", "--category=parcels", fileOf(t, aTemplate))
	from.says([]string{"breaches", "import", "../../../docs/operate/import-example-breaches.json"}, "1 added")
	lines := from.must("catalogue", "export")

	wrong := "none\n" + `{"kind": "planet", "row": {}}` + "\n" + `{"kind": "breach", "row": {"name": null}}` + "\n"
	to.refused(false, []string{"catalogue", "import", fileOf(t, wrong+lines)}, "line 1: ", "line 2: the kind \"planet\"", "line 3: ", "3 lines of")
	for _, query := range []string{
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM phishing_templates AS t WHERE NOT own",
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM courses AS t",
		"SELECT coalesce(json_agg(t ORDER BY name), '[]')::text FROM breaches AS t",
	} {
		var a, b string
		from.Get(query, nil, &a)
		if to.Get(query, nil, &b); a != b || a == "[]" {
			t.Errorf("%s says\n%.300s\nand in the other cell\n%.300s", query, a, b)
		}
	}
	if to.must("catalogue", "export") != lines {
		t.Error("the export of the other cell is another one")
	}
	to.says([]string{"catalogue", "import", fileOf(t, lines)}, "0 added, 0 changed, 0 wrong")
	if out := to.must("audit"); strings.Count(out, " catalogue import ") != 2 {
		t.Errorf("the audit trail is %s", out)
	}
}

// TestEnableTemplates: what is enabled is what a client may be sent, until all
// is enabled again.
func TestEnableTemplates(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.Must(c.LoadTemplates(t.Context()))
	id := c.AddClient()
	client := id.String()
	options := func() int {
		t.Helper()
		tenant, err := c.Tenant(c.As(t.Context()), id)
		c.Must(err)
		options, err := tenant.TemplateOptions(t.Context())
		c.Must(err)
		return len(options)
	}
	all := options()
	if got := c.must("templates", "enable", client, "it", "finance", "it"); !strings.HasSuffix(got, " ("+client+") is sent templates of finance, it\n") {
		t.Error(got)
	}
	if n := options(); n == 0 || n >= all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
	c.refused(false, []string{"templates", "enable", client, "it", "sport"}, `"sport"`, "there are delivery, executive, finance")
	c.refused(false, []string{"templates", "enable", domain.ClientID{15: 1}.String(), "it"}, "no client")
	c.says([]string{"templates", "enable", client, "all"}, "delivery")
	if n := options(); n != all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
}

// TestSeed: what is added is said, and that nothing was where it was cut short.
func TestSeed(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	out, errs, err := c.run(t.Context(), nil, "seed", "--clients=4", "--users=50")
	if err != nil || !strings.HasPrefix(out, "added 4 clients with 50 users in ") || errs != "seeding 4 clients and 50 users\n" {
		t.Errorf("printed %q and %q: %v", out, errs, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	more := Seed{Clients: 5, Users: 20_000}
	more.DatabaseURL = strings.TrimPrefix(c.flag, "--database-url=")
	begun := cancelling{cancel}
	if err := more.Run(ctx, cli.Env{Out: io.Discard, Err: begun}); err == nil || err.Error() != "cancelled: nothing was added" {
		t.Error(err)
	}
	var clients, users int
	if c.Get("SELECT (SELECT count(*) FROM clients), (SELECT count(*) FROM users)", nil, &clients, &users); clients != 4 || users != 50 {
		t.Errorf("there are %d clients with %d users", clients, users)
	}
}

// cancelling cancels when it is told that the seeding begins.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("seeding")) {
		c.cancel()
	}
	return len(p), nil
}
