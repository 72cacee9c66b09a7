package main

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/operator"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// changeNothing are the commands of this version that change nothing an entry of the
// audit trail would be about: they read, or are what the changes are made through.
var changeNothing = []string{
	"serve", "work", "doctor", "health", "migrate", "partners list", "keys list", "audit", "mail failed", "mail switches", "export",
	"reports make", "directory list", "webhooks list", "webhooks deliveries", "webhooks listen", "openapi", "mcp", "version",
	"completion", "__complete", "encryption-key new", "move status", "catalogue export",
}

// ofOtherTests leave an entry as another command here does, or as their own tests say.
var ofOtherTests = []string{"directory connect microsoft", "move partner", "move cancel"}

// leaves are the commands below a node, by their names without arguments.
func leaves(of *kong.Node, before string) iter.Seq2[string, *kong.Node] {
	return func(yield func(string, *kong.Node) bool) {
		for _, child := range of.Children {
			name := before
			if child.Type == kong.CommandNode {
				name = strings.TrimSpace(before + " " + child.Name)
			}
			if len(child.Children) == 0 && !yield(name, child) {
				return
			}
			for name, leaf := range leaves(child, name) {
				if !yield(name, leaf) {
					return
				}
			}
		}
	}
}

// TestCommandsAreAudited: each command of this version either changes nothing, or
// leaves an entry that names the user who ran it and what was changed.
func TestCommandsAreAudited(t *testing.T) {
	t.Setenv("SUDO_USER", "ada")
	flag, dir := databaseFlag(t), t.TempDir()
	d := opened(t, flag)
	client := insertClients(t, d, "Acme", "Hill")[0]
	must(t, "keys", "create", "--name=k", "--clients=all", "--scopes=read", flag)
	hook := subscribed(t, d, "Acme")
	accounts := directorytest.NewGoogle(directorytest.New())
	t.Cleanup(accounts.Close)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	google := "--google-url=" + accounts.Endpoints().Google
	key := "--encryption-key=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	credentials := "--credentials-file=" + file("key", string(accounts.Credentials()))
	template := `[{"name": "A", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "{{url}}", "deception_score": 1, "indicators": {"x": {"fear": 1}}}]`
	breach := `[{"Name": "Forum", "Title": "A forum", "DataClasses": ["Names"]}]`
	object := `{"object":"client","id":"` + client.UUID() + `","industry":"Retail"}`
	signal := `{"id":"a1","type":"phishing_clicked","at":"2026-01-02T00:53:31Z","result_id":"phr_01hrcssyngez2rfxjq1vdbavap"}`
	mail := "0197cafe-0000-7000-8000-000000000002"

	changing := map[string]struct {
		args   []string
		object string
		fields []string
	}{
		"partners create":          {[]string{"Brick"}, "partner", []string{"name"}},
		"keys create":              {[]string{"--partner=acme", "--name=n", "--clients=all", "--scopes=read", "--from=10.0.0.0/8"}, "key", []string{"clients", "name", "networks", "scopes"}},
		"keys revoke":              {nil, "key", []string{"revoked_at"}},
		"mail enable":              {[]string{"hill", "certificate"}, "client", []string{"certificate"}},
		"mail disable":             {[]string{"hill", "monthly-report"}, "client", []string{"monthly-report"}},
		"mail retry":               {[]string{mail}, "mail", nil},
		"seed":                     {[]string{"--clients=1", "--users=0"}, "", nil},
		"breaches import":          {[]string{file("breaches", breach)}, "", nil},
		"catalogue import":         {[]string{file("catalogue", "")}, "", nil},
		"templates import":         {[]string{"--language=en", "--category=own", file("templates", template)}, "", nil},
		"templates enable":         {[]string{"hill", "all"}, "client", []string{"categories"}},
		"import":                   {[]string{file("objects", object)}, "", nil},
		"ingest":                   {[]string{file("signals", signal)}, "", nil},
		"directory connect google": {[]string{credentials, "--admin=a@b.c", google, key}, "client", []string{"credentials", "directory", "settings"}},
		"directory run":            {[]string{"hill", google, key}, "client", nil},
		"directory disconnect":     {[]string{"hill"}, "client", []string{"directory"}},
		"webhooks pause":           {[]string{hook.String()}, "webhook", []string{"status"}},
		"webhooks resume":          {[]string{hook.String()}, "webhook", []string{"status"}},
		"encryption-key rotate":    {[]string{key}, "", nil},
	}
	for name := range leaves(newerModel(t), "") {
		_, changes := changing[name]
		if !slices.Contains(ofOtherTests, name) && changes == slices.Contains(changeNothing, name) {
			t.Errorf("%q is to leave an entry: %t", name, changes)
		}
	}
	connect := func() {
		must(t, append([]string{"directory", "connect", "hill", "google", flag}, changing["directory connect google"].args...)...)
	}
	for _, name := range slices.Sorted(maps.Keys(changing)) {
		c := changing[name]
		words := strings.Fields(name)
		switch name {
		case "directory connect google":
			words = []string{"directory", "connect", "hill", "google"}
		case "directory run":
			connect()
		case "keys revoke":
			c.args = []string{must(t, "keys", "create", "--partner=acme", "--name=n", "--clients=all", "--scopes=read", flag)[:13]}
		}
		r := command(t, append(append(words, flag), c.args...)...)
		var entries []operator.AuditLine
		if err := json.Unmarshal([]byte(must(t, "audit", "--json", "--key=command", flag)), &entries); err != nil {
			t.Fatal(err)
		}
		e := entries[len(entries)-1]
		if e.Operation != name {
			t.Errorf("%s (exit %d, %s) leaves %+v", name, r.code, r.err, e)
			continue
		}
		if e.KeyPrefix != nil || *e.SystemUser != database.SystemUser() || *e.SudoUser != "ada" || !slices.Equal(e.Fields, c.fields) ||
			(e.Object == nil) != (c.object == "") || e.Object != nil && (e.Object.Kind != c.object || e.Object.ID == "") {
			t.Errorf("%s leaves %+v of %+v", name, e, e.Object)
		}
		if c.object == "client" && (e.ClientID == nil || *e.ClientID != client) {
			t.Errorf("%s is said to be of the client %v", name, e.ClientID)
		}
	}
	if got := must(t, "audit", flag, "--client=hill", "--since=1h"); !strings.Contains(got, "command "+database.SystemUser()+" (sudo ada)") ||
		strings.Contains(got, "keys create") || !strings.Contains(got, "client "+client.String()) {
		t.Errorf("the list is\n%s", got)
	}
	for form, args := range map[string][]string{`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  `: nil, `"at": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"`: {"--json"}} {
		if got := must(t, append([]string{"audit", flag}, args...)...); !regexp.MustCompile(form).MatchString(got) {
			t.Errorf("%v: no time is of the form %s:\n%s", args, form, got)
		}
	}
	if got := must(t, "audit", "--json", "--since=2199-01-01", flag); got != "[]\n" {
		t.Errorf("an empty list is %q", got)
	}

	// What changed nothing is not in the audit trail.
	must(t, "directory", "disconnect", flag, "hill")
	all := must(t, "audit", flag)
	refused(t, 1, []string{"keys", "revoke", flag, "pk_nobody00"}, "no key")
	refused(t, 1, []string{"directory", "disconnect", flag, "hill"}, "no directory")
	refused(t, 1, []string{"webhooks", "pause", flag, domain.WebhookID{1}.String()}, "no webhook")
	refused(t, 1, []string{"keys", "create", flag, "--partner=acme", "--name=n", "--scopes=read", "--clients=" + domain.ClientID{1}.String()}, "clients")
	if got := must(t, "audit", flag); got != all {
		t.Errorf("refused commands leave entries:\n%s", got)
	}
}
