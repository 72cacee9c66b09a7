package migrate_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/pg"
	"partnerapi/v2/v2test"
)

var update = flag.Bool("update", false, "write docs/schema.md instead of comparing it")

const schemaFile = "../../docs/schema.md"

// subject is a heading of docs/schema.md with its tables.
type subject struct {
	name   string
	tables []string
}

var subjectOrTable = regexp.MustCompile(`(?m)^-- subject: (.*)$|^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)`)

// renamed contains the current headings of subjects whose lines in released migrations differ.
var renamed = map[string]string{
	"Simulated phishing and reported mails": "Phishing simulations and reported emails",
	"Mails":                                 "Emails",
	"The service itself":                    "Service state",
}

// subjects reads the subjects of tables from the migrations.
func subjects(t *testing.T) (list []subject) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for _, line := range subjectOrTable.FindAllStringSubmatch(string(text), -1) {
			if name = cmp.Or(renamed[line[1]], line[1], name); line[1] != "" {
				continue
			}
			if _, known := place[name]; !known {
				place[name] = len(list)
				list = append(list, subject{name: name})
			}
			of := &list[place[name]]
			of.tables = append(of.tables, line[2])
		}
	}
	return list
}

const tablesSQL = `
	SELECT c.relname AS name, coalesce(obj_description(c.oid, 'pg_class'), '') AS comment, array_to_string(ARRAY(
		SELECT coalesce('-- ' || col_description(c.oid, a.attnum) || E'\n\t', '') ||
			quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) ||
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
		SELECT '-- ' || coalesce(obj_description(x.oid, 'pg_class'), '` + uncommented + `') || E'\n' ||
			pg_get_indexdef(i.indexrelid) || E';\n' FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
		WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint AS n WHERE n.conindid = i.indexrelid AND n.conrelid = c.oid)
		ORDER BY x.relname COLLATE "C"
	) || ARRAY(
		SELECT pg_get_triggerdef(t.oid) || E';\n' FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
		ORDER BY t.tgname COLLATE "C"
	), '') AS others
	FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations'`

// uncommented replaces the missing comment of an index.
const uncommented = "COMMENT ON INDEX is missing"

// table is a table of the database. Columns has its columns and constraints, and Others its indexes and triggers, as SQL
// with comments.
type table struct{ Name, Comment, Columns, Others string }

func readTables(t *testing.T, d *db.DB) map[string]table {
	t.Helper()
	all, err := pg.All[table](t.Context(), d, "read the schema", pg.SQL(tablesSQL))
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]table{}
	for _, found := range all {
		tables[found.Name] = found
	}
	return tables
}

// TestSchemaDocument verifies that docs/schema.md describes a migrated database.
func TestSchemaDocument(t *testing.T) {
	t.Parallel()
	tables := readTables(t, worldtest.New(t).DB)

	var text strings.Builder
	text.WriteString("# Schema\n\nThe tables after all migrations, by subject, with the comments in the database (`\\d+` in psql). " +
		"The comment on an index says what uses it. `make schema` generates this page from a migrated database, and a test " +
		"compares it.\n")
	for _, s := range subjects(t) {
		fmt.Fprintf(&text, "\n## %s\n", s.name)
		for _, name := range s.tables {
			found, ok := tables[name]
			if !ok {
				continue // a later migration dropped it
			}
			if s.name == "" || found.Comment == "" || strings.Contains(found.Others, uncommented) {
				t.Errorf("%s needs a line -- subject: above it, COMMENT ON TABLE, and COMMENT ON INDEX of each index", name)
			}
			fmt.Fprintf(&text, "\n### %s\n\n%s\n\n```sql\nCREATE TABLE %[1]s (\n\t%[3]s\n);\n%s```\n", name, found.Comment, found.Columns, found.Others)
		}
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
