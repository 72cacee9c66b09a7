package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
)

// hostile is a text that no terminal may get, and shown is what it becomes in a line.
const (
	hostile = "550 no\x1b[2J\r\n\u202egpj\u200b\U000e0041\u009b31m"
	shown   = `550 no\u{1b}[2J\r\n\u{202e}gpj\u{200b}\u{e0041}\u{9b}31m`
)

// plant puts the hostile text wherever commands read text from outside.
func plant(t *testing.T, d *db.DB) (client domain.ClientID, hook domain.WebhookID) {
	t.Helper()
	client = insertClients(t, d, "Acme", "Hill")[0]
	if _, err := d.CreateKey(t.Context(), db.NewKey{Partner: partnerNamed(t, d, "Acme"), Name: hostile, Scopes: []domain.Scope{domain.Read}}); err != nil {
		t.Fatal(err)
	}
	hook = subscribed(t, d, "Acme")
	for _, sql := range []string{
		`UPDATE clients SET name = $1`, `UPDATE partners SET name = $1`,
		`INSERT INTO brands (id, display_name) VALUES (gen_random_uuid(), $1)`,
		`UPDATE webhooks SET url = $1, description = $1`,
		`UPDATE webhook_deliveries SET reason = $1, tries = jsonb_build_array(jsonb_build_object('at', now(), 'response', $1::text))`,
		`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
			SELECT id, gen_random_uuid(), $1, '', '', '', 'active', 'standard', 'en', 'manual', 500, now(), now() FROM clients`,
		`INSERT INTO mail_requests (client_id, id, user_id, type, created_at, failed_at, failure)
			SELECT client_id, gen_random_uuid(), id, 'welcome', now(), now(), $1 FROM users`,
		`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			SELECT id, 'google', jsonb_build_object('domain', $1::text), '', now(), now(), now() FROM clients`,
		`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, finished_at, updated_at, error)
			SELECT id, gen_random_uuid(), 'failed', 'api', now(), now(), now(), $1 FROM clients`,
	} {
		execute(t, d, sql, hostile)
	}
	entry := domain.AuditEntry{
		Prefix: "pk_aaaaaaaa", Operation: "users.update", Method: "PATCH", Path: "/v2/users/" + hostile, RequestID: hostile,
		Object: domain.AuditObject{Kind: "breach", ID: hostile}, Client: client,
	}
	if err := d.Audit(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	return client, hook
}

func partnerNamed(t *testing.T, d *db.DB, name string) domain.PartnerID {
	t.Helper()
	id, err := database.FindPartner(t.Context(), d, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// visibleOnly wants nothing invisible in what a command printed.
func visibleOnly(t *testing.T, args []string, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%v prints %U: %q", args, r, text)
			return
		}
	}
}

// TestCommandsPrintNoControls: whatever the database holds, no command prints a control
// or an invisible character, its tables have a line for each row, and its JSON says the text
// as it is. Every command that lists prints JSON with --json, and one that is new says which
// it is.
func TestCommandsPrintNoControls(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	client, hook := plant(t, opened(t, flag))
	holdsText := []string{"partners list", "branding show", "keys list", "audit", "mail failed", "directory list", "webhooks list", "webhooks deliveries"}
	more := map[string][]string{
		"mail switches": {client.String()}, "mail allowlist": {client.String()}, "branding show": {"--service"}, "webhooks deliveries": {hook.String()}, "migrate": {"--status"}, "idmap lookup": {"client", "1"},
		"openapi": nil, "parity compare": nil, "parity replay": nil, "doctor": {"--recount"},
		"partners create": nil, "admins add": nil, "keys create": nil, "keys rotate": nil, "version": nil, // TestMadeInJSON
	}
	for name, command := range leaves(model(t).Node, "") {
		lists := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "json" })
		if lists == slices.Contains(listNothing, name) {
			t.Errorf("%s has --json: %t; every command that lists has it, and the others are named here", name, lists)
		}
		args, named := more[name]
		if !lists || named && args == nil { // of another thing than this database
			continue
		}
		args = append(append(strings.Fields(name), args...), flag)
		text := must(t, append(args, "--json")...)
		visibleOnly(t, args, text)
		if !json.Valid([]byte(text)) {
			t.Errorf("%s prints\n%s", name, text)
		}
		if slices.Contains(holdsText, name) {
			wantRows(t, args, text)
		}
	}

	exported := must(t, "export", flag)
	visibleOnly(t, []string{"export"}, exported)
	for line := range strings.Lines(exported) {
		if !json.Valid([]byte(line)) {
			t.Errorf("exported %s", line)
		}
	}
	for _, args := range [][]string{
		{"mail", "enable", client.String(), "certificate", flag}, {"directory", "disconnect", client.String(), flag},
		{"keys", "revoke", hostile, flag}, {"mail", "failed", "--since=" + hostile, flag}, {hostile}, {"serve", "--" + hostile},
	} {
		r := command(t, args...)
		visibleOnly(t, args, r.out+r.err)
	}
}

// wantRows wants the table of a command to have a line for each object of its JSON, and both
// to have the hostile text.
func wantRows(t *testing.T, args []string, text string) {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if quoted, _ := json.Marshal(hostile); !strings.Contains(remarshal(t, list), strings.Trim(string(quoted), `"`)) {
		t.Errorf("%v does not print the text in JSON:\n%s", args, text)
	}
	table := must(t, args...)
	visibleOnly(t, args, table)
	if len(list) == 0 || strings.Count(table, "\n") != 1+len(list) || !strings.Contains(table, shown) {
		t.Errorf("%v prints\n%s", args, table)
	}
}

func remarshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listNothing are the commands without --json: they change something, run on, or print
// a file or lines of JSON.
var listNothing = []string{
	"branding set", "branding clear", "branding preview", "serve", "work", "health", "keys revoke", "mail retry", "mail enable", "mail disable", "seed",
	"breaches import", "catalogue export", "catalogue import", "export", "import", "ingest", "reports make", "templates import", "templates enable",
	"directory connect microsoft", "directory connect google", "directory disconnect", "directory run", "webhooks pause",
	"webhooks resume", "webhooks listen", "mcp", "completion", "__complete", "encryption-key new",
	"encryption-key rotate", "partners rename", "partners archive", "partners restore", "admins remove",
	"idmap import", "idmap export", "v1 announce", "v1 postpone", "v1 remind", "v1 cancel", "v1 phase",
	"move partner", "move cancel", "v1 brownout add", "v1 brownout cancel", "v1 end",
}
