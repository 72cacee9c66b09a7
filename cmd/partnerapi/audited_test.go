package main

import (
	"encoding/json"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/operator"
	"partnerapi/domain"
)

// changeNothing are the commands of this version that change nothing an entry of the
// audit trail would be about: they read, or are what the changes are made through.
var changeNothing = []string{
	"serve", "work", "doctor", "health", "migrate", "partners list", "branding show", "branding preview", "admins list", "keys list", "audit", "mail failed", "mail switches", "mail allowlist", "export",
	"reports make", "directory list", "webhooks list", "webhooks deliveries", "webhooks listen", "openapi", "mcp", "version",
	"completion", "__complete", "encryption-key new", "move status", "catalogue export",
}

// changed is what an entry of the audit trail says that was changed: a kind of object, and its fields.
type changed struct{ object, fields string }

// audited are the commands of this version that leave an entry, and that of the last example of their help. Those of
// move are held by TestMoveCommand.
var audited = map[string]changed{
	"partners rename": {"partner", "name"}, "partners archive": {"partner", "archived_at"}, "partners restore": {"partner", "archived_at"},
	"branding set": {"client", "display_name"}, "branding clear": {"client", ""},
	"admins add": {"admin", "email name role"}, "admins remove": {"admin", ""},
	"partners create": {"partner", "name"}, "move partner": {"partner", ""}, "move cancel": {"partner", ""},
	"keys create": {"key", "clients expires_at name scopes"}, "keys revoke": {"key", "revoked_at"}, "keys rotate": {"key", "old_text"},
	"mail enable": {"client", "monthly-report"}, "mail disable": {"client", "phish-reminder"},
	"templates enable":            {"client", "categories"},
	"directory connect microsoft": {"client", "credentials directory settings"},
	"directory connect google":    {"client", "credentials directory settings"},
	"directory run":               {"client", ""}, "directory disconnect": {"client", "directory"},
	"webhooks pause": {"webhook", "status"}, "webhooks resume": {"webhook", "status"},
	"mail retry": {}, "seed": {}, "breaches import": {}, "catalogue import": {}, "templates import": {}, "import": {},
	"encryption-key rotate": {},
}

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

// TestAudited: each command of this version either changes nothing, or leaves an entry (TestExamplesOfHelp). The example
// of ingest has no signal: TestAuditList.
func TestAudited(t *testing.T) {
	t.Parallel()
	for name := range leaves(newerModel(t), "") {
		if _, changes := audited[name]; changes == slices.Contains(changeNothing, name) && name != "ingest" {
			t.Errorf("%q is to leave an entry: %t", name, changes)
		}
	}
}

// entries are those that commands have left in the audit trail of a database, the oldest first.
func entries(t *testing.T, flag string) (all []operator.AuditLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, "audit", "--json", "--key=command", flag)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkAudited holds what a command left to audited: it names the user who ran it and what was changed.
func checkAudited(t *testing.T, name string, left []operator.AuditLine) {
	t.Helper()
	want := audited[name]
	if leaves := !slices.Contains(changeNothing, name); len(left) == 0 || !leaves {
		if leaves || len(left) > 0 {
			t.Errorf("%s leaves %+v", name, left)
		}
		return
	}
	e := left[len(left)-1]
	if e.Operation != name && e.Operation+" partner" != name || e.KeyPrefix != nil ||
		*e.SystemUser != database.SystemUser() || *e.SudoUser != "ada" ||
		strings.Join(e.Fields, " ") != want.fields || (e.Object == nil) != (want.object == "") ||
		e.Object != nil && (e.Object.Kind != want.object || e.Object.ID == "") {
		t.Errorf("%s leaves %+v of %+v", name, e, e.Object)
	}
	if want.object == "client" && (e.ClientID == nil || e.ClientID.String() != e.Object.ID) {
		t.Errorf("%s is said to be of the client %v", name, e.ClientID)
	}
}

// TestAuditList: the list says who ran a command, in both forms. What was refused, and so changed nothing, is not in it.
func TestAuditList(t *testing.T) {
	t.Setenv("SUDO_USER", "ada")
	flag := databaseFlag(t)
	client := insertClients(t, opened(t, flag), "Acme", "Hill")[0]
	must(t, "keys", "create", "--name=k", "--clients=all", "--scopes=read", "--from=10.0.0.0/8", flag)
	if all := entries(t, flag); len(all) != 1 || strings.Join(all[0].Fields, " ") != "clients name networks scopes" {
		t.Errorf("the entries are %+v", all)
	}
	signals := filepath.Join(t.TempDir(), "signals")
	writeFile(t, signals, `{"id":"a1","type":"phishing_clicked","at":"2026-01-02T00:53:31Z","result_id":"phr_01hrcssyngez2rfxjq1vdbavap"}`)
	command(t, "ingest", signals, flag)
	checkAudited(t, "ingest", entries(t, flag)[1:])
	must(t, "mail", "enable", "hill", "certificate", flag)
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

	all := must(t, "audit", flag)
	refused(t, 1, []string{"keys", "revoke", flag, "pk_nobody00"}, "no active key")
	refused(t, 1, []string{"directory", "disconnect", flag, "hill"}, "no directory")
	refused(t, 1, []string{"webhooks", "pause", flag, domain.WebhookID{1}.String()}, "no webhook")
	refused(t, 1, []string{"keys", "create", flag, "--partner=acme", "--name=n", "--scopes=read", "--clients=" + domain.ClientID{1}.String()}, "clients")
	if got := must(t, "audit", flag); got != all {
		t.Errorf("refused commands leave entries:\n%s", got)
	}
}
