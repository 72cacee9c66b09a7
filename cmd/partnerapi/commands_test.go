package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"fly"}, "fly"},
		{[]string{"serve", "--fly"}, "--fly"},
		{[]string{"keys"}, "create"},
		{[]string{"partners", "create"}, "name"},
		{[]string{"partners", "create", "  "}, "blank"},
		{[]string{"partners", "create", strings.Repeat("ä", 201)}, "200"},
		{[]string{"serve", "--release=9"}, `"9"`},
		{[]string{"serve", "--log-level=loud"}, "--log-level"},
		{[]string{"serve", "--log-format=xml"}, "log-format"},
		{[]string{"serve", "--drain=-1s"}, "--drain"},
		{[]string{"serve", "--trusted-proxies=10.0.0.0/8,proxy"}, `"proxy"`},
		{[]string{"serve", "--trusted-proxies=10.0.0.0/40"}, "--trusted-proxies"},
		{[]string{"serve", "--scanner-networks=10.0.0.0/8,scanner"}, `--scanner-networks: "scanner"`},
		{[]string{"serve", "--smtp-url=http://mail.example.com"}, "--smtp-url"},
		{[]string{"serve", "--no-work", "--smtp-url=smtp://mail.example.com?starttls=perhaps"}, "starttls"},
		{[]string{"serve", "--mail-from=nobody"}, `--mail-from: the sender "nobody"`},
		{[]string{"work", "--mail-from=nobody"}, "--mail-from"},
		{[]string{"work", "--public-url=https://example.com", "--smtp-url=smtp://someone:ses%ame@mail.example.com"}, "--smtp-url"},
		{[]string{"serve", "--encryption-key=sesame"}, "--encryption-key"},
		{[]string{"serve", "--webhook-ca=main_test.go"}, "no certificate"},
		{[]string{"serve", "--report-store=s3://"}, "contains no bucket"},
		{[]string{"work", "--report-store=s3://"}, "--report-store"},
		{[]string{"work", "--encryption-key=file:/nowhere/key"}, "/nowhere/key"},
		{[]string{"encryption-key", "rotate", "--old=file:/nowhere/key"}, "--old requires --encryption-key"},
		{[]string{"encryption-key", "rotate", "--encryption-key=c2VzYW1l"}, "6 bytes instead of 32"},
		{[]string{"serve", "--public-url=example.com"}, `"example.com"`},
		{[]string{"serve", "--support-url=help.example.com"}, "--support-url"},
		{[]string{"serve", "--support-url=javascript:x"}, "--support-url"},
		{[]string{"serve", "--support-url=mailto:"}, "--support-url"},
		{[]string{"serve", "--public-url=//example.com"}, `"//example.com"`},
		{[]string{"serve", "--public-url=ftp://example.com"}, "--public-url"},
		{[]string{"work", "--public-url=//example.com"}, `"//example.com"`},
		{[]string{"work", "--smtp-url=smtp://mail.example.com"}, "--public-url"},
		{[]string{"work", "--workers=0"}, "--workers"},
		{[]string{"seed", "--users=1"}, "--clients"},
		{[]string{"seed", "--clients=0", "--users=1"}, "at least 1"},
		{[]string{"openapi", "v3"}, `"v3"`},
		{[]string{"openapi", "v2", "--release=1"}, `"1"`},
	} {
		refused(t, 2, tt.args, tt.says)
	}
	refused(t, 1, []string{"migrate", "--direct-database-url=postgres://db.example/x"}, "--direct-database-url requires --database-url")
	refused(t, 1, []string{"migrate", "--replica-url=postgres://db.example/x"}, "--replica-url requires --database-url")
	refused(t, 1, []string{"serve", databaseFlag(t), "--listen=127.0.0.1:0", "--report-store=file:///dev/null"}, "--report-store", "is not a directory")
	help := must(t, "--help")
	for _, name := range []string{"serve", "migrate", "partners create", "partners list", "keys create", "keys list", "keys revoke", "seed", "openapi", "version"} {
		if !regexp.MustCompile(`\n  ` + name + `[ \n]`).MatchString(help) {
			t.Errorf("--help does not list %s:\n%s", name, help)
		}
	}
	if strings.Contains(help, "idmap") != older() {
		t.Errorf("--help, with version 1 %t:\n%s", older(), help)
	}
	says(t, must(t, "version"),
		"partnerapi "+builtVersion()+"\n", "\ncommit: ", runtime.Version(), "\nserves: v2, releases 2.0, 2.1, 2.2, 2.3, 2.4, 2.5")
	var program struct {
		Version, Commit string
		BuiltWith       string `json:"built_with"`
		Serves          []string
	}
	if err := json.Unmarshal([]byte(must(t, "version", "--json")), &program); err != nil || program.Version != builtVersion() ||
		program.Commit == "" || program.BuiltWith == "" || len(program.Serves) == 0 {
		t.Errorf("the version is %+v: %v", program, err)
	}
}

// TestEnvironment: a variable says what a flag does not.
func TestEnvironment(t *testing.T) {
	flag := databaseFlag(t)
	t.Setenv("PARTNERAPI_DATABASE_URL", strings.TrimPrefix(flag, "--database-url="))
	t.Setenv("PARTNERAPI_RELEASE", "2.1")
	must(t, "partners", "create", "Acme")
	if got := must(t, "partners", "list", flag); !strings.Contains(got, "Acme") {
		t.Errorf("the database of the environment was not used:\n%s", got)
	}
	if got := serving(t, "--release=2.2").out.String(); !strings.Contains(got, "v2 release 2.2 ") {
		t.Errorf("a flag does not go before the environment: %s", got)
	}
}

// TestUnreachableDatabase wants errors that say what to do, and no passwords.
func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	for address, words := range map[string][]string{
		"postgres://someone:sesame@127.0.0.1:1/x":                      {"refused", "127.0.0.1:1", "--database-url", "running"}, // nobody listens there
		"postgres://someone:sesame@127.0.0.1:port/x":                   {"database URL", "port"},
		"postgres://someone:ses%ame@127.0.0.1/x":                       {"database URL"},
		"mysql://someone:sesame@127.0.0.1/x":                           {"database URL"},
		"postgres://someone:sesame@127.0.0.1/x?sslmode=sometimes":      {"database URL", "sslmode"},
		"host=127.0.0.1 port=1 user=someone password=sesame":           {"refused", "--database-url"},
		strings.Replace(dbtest.URL(t, emptySchema), "@", "sesame@", 1): {"password", "--database-url"},
	} {
		for _, args := range [][]string{{"partners", "list"}, {"serve", "--listen=127.0.0.1:0"}} {
			args = append(args, "--database-url="+address)
			r := command(t, args...)
			says(t, r.err, words...)
			if r.code != 1 || r.out != "" || strings.Contains(r.err, "sesame") || strings.Contains(r.err, "ses%ame") {
				t.Errorf("%v: exit %d, prints %q and %q", args, r.code, r.out, r.err)
			}
		}
	}
}

// emptySchema is a database without tables.
var emptySchema = dbtest.Schema{Name: "commandempty", Apply: func(context.Context, string) error { return nil }}

// TestOnlyServeAndMigrateChangeTables runs the other commands on nothing, and then migrates.
func TestOnlyServeAndMigrateChangeTables(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	nowhere := filepath.Join(t.TempDir(), "typo")
	for _, args := range [][]string{
		{"keys", "list"}, {"partners", "create", "Acme"}, {"work"}, {"seed", "--clients=1", "--users=1"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"},
	} {
		refused(t, 1, append(args, flag), "migrate first")
		refused(t, 1, append(args, "--data-dir="+nowhere), "there is no database in", nowhere)
	}
	if _, err := os.Stat(nowhere); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
	d := opened(t, flag).SQL()
	var tables int
	if err := d.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables were made: %v", tables, err)
	}

	first := must(t, "migrate", flag)
	status := must(t, "migrate", "--status", flag)
	if n := strings.Count(first, "applied "); n == 0 || n != strings.Count(first, "\n") || n != strings.Count(status, "applied ") {
		t.Errorf("first: %s, not all of\n%s", first, status)
	}
	if got := must(t, "migrate", flag); got != "nothing to do: the tables are up to date\n" {
		t.Errorf("second: %s", got)
	}
	if got := must(t, "partners", "list", flag); got != "NAME  CLIENTS  CREATED  ARCHIVED  ID\n" {
		t.Errorf("partners: %s", got)
	}

	// A later version of the program changed them.
	if _, err := d.ExecContext(t.Context(), "INSERT INTO schema_migrations (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"keys", "list"}, {"migrate"}, {"serve", "--listen=127.0.0.1:0"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"}, {"work"}} {
		refused(t, 1, append(args, flag), "9999", "newer version")
	}
}

// TestServingRole verifies that a role that may read and write rows and advance sequences, and nothing else, serves and
// runs commands. A table on which it lacks a right makes the service not ready, and doctor says what to run.
func TestServingRole(t *testing.T) {
	t.Parallel()
	owner := demonstration(t)
	address, err := url.Parse(strings.TrimPrefix(owner, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	d := opened(t, owner)
	role := "rows_" + strings.ToLower(rand.Text())
	for _, statement := range []string{
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"CREATE ROLE " + role + " LOGIN PASSWORD 'sesame'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA public TO " + role,
	} {
		execute(t, d, statement)
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := d.SQL().ExecContext(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	address.User = url.UserPassword(role, "sesame")
	flag := "--database-url=" + address.String()

	r := serving(t, "--demo", flag)
	r.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	r.get("/readyz", "").want(http.StatusOK)
	importNumbers(t, r, flag) // v1-line

	execute(t, d, "CREATE TABLE granted_to_nobody (id int)")
	execute(t, d, "REVOKE UPDATE ON webhooks FROM "+role)
	if got := r.get("/readyz", "").want(http.StatusServiceUnavailable); !strings.Contains(string(got.body), "partnerapi doctor prints the GRANT statements") {
		t.Errorf("it says %s", got.body)
	}
	if found := r.logs.await(regexp.MustCompile(`the role lacks rights on granted_to_nobody, webhooks; .* (GRANT SELECT.*) TO \\"`+role), r.ended); found == nil {
		t.Errorf("the log does not say which rights:\n%s", r.logs)
	}
	_, grants, _ := strings.Cut(command(t, "doctor", flag).out, "run as the owner of the tables: ")
	grants, _, found := strings.Cut(grants, "; for the tables of later versions")
	if !found {
		t.Fatal("doctor does not say what to run")
	}
	execute(t, d, grants)
	r.get("/readyz", "").want(http.StatusOK)
	// Tables of a later version are not this one's.
	execute(t, d, "INSERT INTO schema_migrations (version_id, is_applied) VALUES (9999, true)")
	execute(t, d, "REVOKE SELECT ON granted_to_nobody FROM "+role)
	r.get("/readyz", "").want(http.StatusOK)
	r.finish()
}

// TestEncodings verifies that an empty database with another encoding than UTF8 is refused before anything is created,
// and that one with tables is served with a warning.
func TestEncodings(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	address, err := url.Parse(strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	used := address.Path[1:]
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := "encoded_" + strings.ToLower(rand.Text())
		execute(t, d, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE 'C' TEMPLATE template0")
		t.Cleanup(func() {
			if _, err := d.SQL().ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		address.Path = "/" + name
		empty := "--database-url=" + address.String()
		for _, args := range [][]string{{"migrate"}, {"serve", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir()}} {
			refused(t, 1, append(args, empty), encoding, "createdb --encoding=UTF8 --template=template0")
		}
		if tables := must(t, "migrate", "--status", empty); strings.Contains(tables, "applied") {
			t.Errorf("%s: it was migrated: %s", encoding, tables)
		}
	}

	// As version 1.0 accepted it.
	execute(t, d, "UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1') WHERE datname = $1", used)
	r := serving(t, flag)
	r.finish()
	says(t, r.logs.String(), "the database cannot store every character", "encoding=LATIN1", "docs/operating.md, Encoding")
}

// TestMigrateSaysWhatIsToCome: without changing anything, and with what is locked.
func TestMigrateSaysWhatIsToCome(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	for range 2 {
		says(t, must(t, "migrate", "--dry-run", flag), "missing 00001_schema.sql\n")
		says(t, must(t, "migrate", "--dry-run", flag), "missing v1/0001_schema.sql\n        locks clients: SHARE ROW EXCLUSIVE, a moment\n") // v1-line
	}
	must(t, "migrate", flag)
	if got := must(t, "migrate", "--dry-run", flag); got != "nothing to do: the tables are up to date\n" {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--status", flag); strings.Contains(got, "missing") || !strings.HasPrefix(got, "applied 00001_schema.sql\n") {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--dry-run", "--json", flag); got != `{"migrations":[]}`+"\n" {
		t.Errorf("as JSON: %s", got)
	}
}

// TestDatabasesOfBefore: every command refuses a database of a version before 1.0, and
// says the way.
func TestDatabasesOfBefore(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	execute(t, opened(t, flag), `CREATE TABLE migrations AS SELECT 98 AS version_id, true AS is_applied`)
	for _, args := range [][]string{
		{"migrate"}, {"migrate", "--status"}, {"migrate", "--dry-run"}, {"keys", "list"}, {"work"},
		{"serve", "--listen=127.0.0.1:0"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"}, {"serve", "--demo", "--listen=127.0.0.1:0"},
	} {
		refused(t, 1, append(args, flag), "before 1.0", "export", "import", "no keys", "docs/versions.md")
	}
}
