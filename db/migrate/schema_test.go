package migrate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/pg"
	"partnerapi/v2/v2test"
)

var update = flag.Bool("update", false, "write docs/schema.md instead of comparing it")

const schemaFile = "../../docs/schema.md"

// subjects are the headings of docs/schema.md with their tables.
var subjects = []struct {
	name   string
	tables []string
}{
	{"Partners, keys and the audit trail", []string{
		"partners", "admins", "admin_invites", "api_keys", "api_key_clients", "idempotency_records", "audit_entries",
	}},
	{"Clients", []string{
		"clients", "client_risks", "risk_history",
	}},
	{"Users", []string{
		"users", "user_blocks", "user_risks", "groups", "collections", "collection_members",
	}},
	{"Training", []string{
		"courses", "default_program", "program_courses", "assignments", "waiting_assignments",
	}},
	{"Frameworks", []string{
		"framework_assignments", "framework_courses",
	}},
	{"Policies", []string{
		"policies", "policy_signatures",
	}},
	{"Simulated phishing and reported mails", []string{
		"phishing_templates", "template_uses", "phishing_results", "phishing_days", "reported_emails", "email_classifications",
	}},
	{"Exposures", []string{
		"breaches", "exposures",
	}},
	{"Mails", []string{
		"outbox", "mail_requests", "partner_mails", "sent_emails", "mail_switches", "monthly_mailings",
	}},
	{"Reports", []string{
		"reports",
	}},
	{"Directories", []string{
		"directory_connections", "directory_accounts", "sync_runs", "sync_accounts",
	}},
	{"Signals and imports", []string{
		"signals", "import_lines",
	}},
	{"Events and webhooks", []string{
		"events", "event_head", "published_events", "webhooks", "deleted_webhooks", "webhook_deliveries",
	}},
	{"Cells and moves", []string{
		"cell", "moves", "moved_keys", "resting_clients",
	}},
	{"Of earlier releases", []string{"river_job", "river_leader", "river_migration", "river_notification", "river_queue"}},
	{"The service itself", []string{
		"periodic_jobs", "daily_refreshes", "recounts", "secrets", "migrations",
	}},
}

const tablesSQL = `
	SELECT c.relname AS name, array_to_string(ARRAY(
		SELECT quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) ||
			CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END ||
			CASE WHEN a.attidentity <> '' THEN ' GENERATED AS IDENTITY' ELSE '' END ||
			coalesce(CASE WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' ELSE ' DEFAULT ' END ||
				pg_get_expr(d.adbin, d.adrelid) || CASE WHEN a.attgenerated <> '' THEN ') STORED' ELSE '' END, '')
		FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
	) || ARRAY(
		SELECT 'CONSTRAINT ' || quote_ident(n.conname) || ' ' || pg_get_constraintdef(n.oid) FROM pg_constraint AS n
		WHERE n.conrelid = c.oid AND n.contype IN ('p', 'u', 'f', 'c', 'x')
		ORDER BY array_position(ARRAY['p', 'u', 'x', 'f', 'c'], n.contype::text), n.conname COLLATE "C"
	), E',\n\t') AS columns, array_to_string(ARRAY(
		SELECT pg_get_indexdef(i.indexrelid) || E';\n' FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
		WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint AS n WHERE n.conindid = i.indexrelid AND n.conrelid = c.oid)
		ORDER BY x.relname COLLATE "C"
	) || ARRAY(
		SELECT pg_get_triggerdef(t.oid) || E';\n' FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
		ORDER BY t.tgname COLLATE "C"
	), '') AS others
	FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'goose_db_version'`

// TestSchemaDocument holds docs/schema.md to a database that was migrated.
func TestSchemaDocument(t *testing.T) {
	t.Parallel()
	type table struct{ Name, Columns, Others string }
	all, err := pg.All[table](t.Context(), worldtest.New(t).DB, "read the schema", pg.SQL(tablesSQL))
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]table{}
	for _, found := range all {
		tables[found.Name] = found
	}

	var text strings.Builder
	text.WriteString("# Schema\n\nThe tables as the migrations leave them, by subject. Written by `make schema` from a migrated " +
		"database; a test compares it.\n")
	for _, s := range subjects {
		fmt.Fprintf(&text, "\n## %s\n", s.name)
		for _, name := range s.tables {
			found, ok := tables[name]
			if !ok {
				t.Errorf("there is no table %s: remove it from subjects in schema_test.go", name)
			}
			delete(tables, name)
			fmt.Fprintf(&text, "\n```sql\nCREATE TABLE %s (\n\t%s\n);\n%s```\n", name, found.Columns, found.Others)
		}
	}
	for name := range tables {
		t.Errorf("add the table %s to subjects in schema_test.go", name)
	}

	got := strings.ReplaceAll(text.String(), "public.", "")
	if *update && !t.Failed() {
		if err := os.WriteFile(schemaFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(schemaFile)
	if err != nil || got != string(kept) {
		t.Errorf("docs/schema.md is stale (make schema): %v\n%s", err, v2test.Diff(string(kept), got))
	}
}
