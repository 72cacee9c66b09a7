package main

import (
	"context"
	"crypto/rand"
	"encoding/csv"
	"fmt"
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
		{[]string{"serve", "--trusted-proxies=10.0.0.0/8,proxy"}, `"proxy"`},
		{[]string{"serve", "--trusted-proxies=10.0.0.0/40"}, "--trusted-proxies"},
		{[]string{"serve", "--scanner-networks=10.0.0.0/8,scanner"}, `--scanner-networks: "scanner"`},
		{[]string{"serve", "--smtp-url=http://mail.example.com"}, "--smtp-url"},
		{[]string{"serve", "--no-work", "--smtp-url=smtp://mail.example.com?starttls=perhaps"}, "starttls"},
		{[]string{"serve", "--mail-from=nobody"}, `--mail-from: the sender "nobody"`},
		{[]string{"work", "--mail-from=nobody"}, "--mail-from"},
		{[]string{"work", "--public-url=https://example.com", "--smtp-url=smtp://someone:ses%ame@mail.example.com"}, "--smtp-url"},
		{[]string{"serve", "--encryption-key=sesame"}, "--encryption-key"},
		{[]string{"work", "--encryption-key=file:/nowhere/key"}, "/nowhere/key"},
		{[]string{"encryption-key", "rotate", "--old=file:/nowhere/key"}, "--old goes with --encryption-key"},
		{[]string{"encryption-key", "rotate", "--encryption-key=c2VzYW1l"}, "6 bytes instead of 32"},
		{[]string{"serve", "--public-url=example.com"}, `"example.com"`},
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
	refused(t, 1, []string{"migrate", "--direct-database-url=postgres://db.example/x"}, "--direct-database-url goes with --database-url")
	refused(t, 1, []string{"migrate", "--replica-url=postgres://db.example/x"}, "--replica-url goes with --database-url")
	help := must(t, "--help")
	for _, name := range []string{"serve", "migrate", "partners create", "partners list", "keys create", "keys list", "keys revoke", "seed", "openapi", "version"} {
		if !regexp.MustCompile(`\n  ` + name + `[ \n]`).MatchString(help) {
			t.Errorf("--help does not list %s:\n%s", name, help)
		}
	}
	if strings.Contains(help, "idmap") != older() {
		t.Errorf("--help, with version 1 %t:\n%s", older(), help)
	}
	got := must(t, "version")
	for _, part := range []string{"partnerapi " + version + "\n", "\ncommit: ", runtime.Version(), "\nserves: v2, releases 2.0, 2.1, 2.2, 2.3"} {
		if !strings.Contains(got, part) {
			t.Errorf("the version is %q, without %q", got, part)
		}
	}
}

func TestEnvironment(t *testing.T) {
	flag := databaseFlag(t)
	t.Setenv("PARTNERAPI_DATABASE_URL", strings.TrimPrefix(flag, "--database-url="))
	must(t, "partners", "create", "Acme")
	if got := must(t, "partners", "list", flag); !strings.Contains(got, "Acme") {
		t.Errorf("the database of the environment was not used:\n%s", got)
	}
	t.Setenv("PARTNERAPI_RELEASE", "2.1")
	if got := serving(t).out.String(); !strings.Contains(got, "v2 release 2.1 ") {
		t.Errorf("the greeting is %s", got)
	}
	if got := serving(t, "--release=2.2").out.String(); !strings.Contains(got, "v2 release 2.2 ") {
		t.Errorf("a flag does not go before the environment: %s", got)
	}
}

// TestUnreachableDatabase wants errors that say what to do, and no passwords.
func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	port := "1" // of nobody: only root could listen there
	for address, words := range map[string][]string{
		"postgres://someone:sesame@127.0.0.1:" + port + "/x":            {"refused", "127.0.0.1:" + port, "--database-url", "running"},
		"postgres://someone:sesame@127.0.0.1:port/x":                    {"database URL", "port"},
		"postgres://someone:ses%ame@127.0.0.1/x":                        {"database URL"},
		"mysql://someone:sesame@127.0.0.1/x":                            {"database URL"},
		"postgres://someone:sesame@127.0.0.1/x?sslmode=sometimes":       {"database URL", "sslmode"},
		"host=127.0.0.1 port=" + port + " user=someone password=sesame": {"refused", "--database-url"},
		strings.Replace(dbtest.URL(t, tablesSchema), "@", "sesame@", 1): {"password", "--database-url"},
	} {
		for _, args := range [][]string{{"partners", "list"}, {"serve", "--listen=127.0.0.1:0"}} {
			r := command(t, append(args, "--database-url="+address)...)
			if r.code != 1 || r.out != "" {
				t.Errorf("%s: exit %d, printed %q", address, r.code, r.out)
			}
			for _, word := range words {
				if !strings.Contains(r.err, word) {
					t.Errorf("%s: the error does not say %q: %s", address, word, r.err)
				}
			}
			if strings.Contains(r.err, "sesame") || strings.Contains(r.err, "ses%ame") {
				t.Errorf("the error shows the password: %s", r.err)
			}
		}
	}
}

// emptySchema is a database without tables.
var emptySchema = dbtest.Schema{Name: "commandempty", Apply: func(context.Context, string) error { return nil }}

func TestMigrate(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	if got := must(t, "migrate", flag); !strings.HasPrefix(got, "applied ") || strings.Count(got, "\n") != strings.Count(got, "applied ") {
		t.Errorf("first: %s", got)
	}
	if got := must(t, "migrate", flag); got != "nothing to do: the tables are up to date\n" {
		t.Errorf("second: %s", got)
	}
	if got := must(t, "partners", "list", flag); got != "NAME  CLIENTS  CREATED  ID\n" {
		t.Errorf("partners: %s", got)
	}
}

// TestOnlyServeAndMigrateChangeTables runs the other commands on nothing.
func TestOnlyServeAndMigrateChangeTables(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	nowhere := filepath.Join(t.TempDir(), "typo")
	for _, args := range [][]string{
		{"keys", "list"}, {"partners", "create", "Acme"}, {"work"}, {"seed", "--clients=1", "--users=1"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"},
	} {
		refused(t, 1, append(args, flag), "migrate first")
		refused(t, 1, append(args, "--data-dir="+nowhere), "no database here", nowhere)
	}
	if _, err := os.Stat(nowhere); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
	var tables int
	if err := opened(t, flag).SQL().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables were made: %v", tables, err)
	}
}

// TestNewerTables has a database changed by a later version of the program.
func TestNewerTables(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"INSERT INTO migrations (version_id, is_applied) VALUES (9999, true)",
	} {
		flag := databaseFlag(t)
		if _, err := opened(t, flag).SQL().ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"keys", "list"}, {"migrate"}, {"serve", "--listen=127.0.0.1:0"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"}, {"work"}} {
			refused(t, 1, append(args, flag), "9999", "newer version")
		}
	}
}

// TestServeWithoutRightsToTables has a role serve that may read and write rows
// and nothing else.
func TestServeWithoutRightsToTables(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	address, err := url.Parse(strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	d := opened(t, flag)
	role := "rows_" + strings.ToLower(rand.Text())
	for _, statement := range []string{
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"CREATE ROLE " + role + " LOGIN PASSWORD 'sesame'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO " + role,
	} {
		if _, err := d.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := d.SQL().ExecContext(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	address.User = url.UserPassword(role, "sesame")

	for _, args := range [][]string{{"--demo"}, {"--demo", "--no-migrate"}} {
		r := serving(t, append(args, "--database-url="+address.String())...)
		r.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
		r.get("/readyz", "").want(http.StatusOK)
		r.finish()
	}
}

func TestPartners(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	id := strings.TrimSpace(must(t, "partners", "create", flag, "Acme GmbH"))
	must(t, "partners", "create", flag, "Ümläut")
	list := must(t, "partners", "list", flag)
	if !regexp.MustCompile(`(?m)^Acme GmbH +0 +\d{4}-\d\d-\d\d +`+regexp.QuoteMeta(id)+`$`).MatchString(list) || !strings.Contains(list, "\nÜmläut ") {
		t.Errorf("%s is created, and the list is\n%s", id, list)
	}
	refused(t, 1, []string{"partners", "create", flag, "ACME gmbh"}, "exist")
}

func TestSeed(t *testing.T) {
	t.Parallel()
	var sums []string
	for range 2 {
		flag := databaseFlag(t)
		r := command(t, "seed", flag, "--clients=4", "--users=50")
		if r.code != 0 || !strings.HasPrefix(r.out, "added 4 clients with 50 users in ") || r.err != "seeding 4 clients and 50 users\n" {
			t.Fatalf("exit %d, printed %q and %q", r.code, r.out, r.err)
		}
		var sum string
		if err := opened(t, flag).SQL().QueryRowContext(t.Context(), `SELECT concat_ws(' ',
			(SELECT count(*) FROM clients), (SELECT count(*) FROM users), (SELECT md5(string_agg(u::text, ',' ORDER BY id)) FROM users AS u),
			(SELECT count(*) FROM assignments), (SELECT count(*) FROM phishing_results))`).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	if !strings.HasPrefix(sums[0], "4 50 ") || sums[0] != sums[1] {
		t.Errorf("the same seed makes %q and %q", sums[0], sums[1])
	}
}

// TestNumbers imports numbers and looks them up, where version 1 is there.
func TestNumbers(t *testing.T) {
	t.Parallel()
	if !older() {
		refused(t, 2, []string{"idmap", "lookup", "client", "1"}, "idmap")
		return
	}
	flag := demonstration(t)
	first := must(t, "idmap", "lookup", flag, "client", "1")
	id := strings.Fields(first)[2]
	if !strings.HasPrefix(first, "client 1 cli_") || !strings.Contains(first, "live") {
		t.Fatalf("client 1 is %s", first)
	}
	path := filepath.Join(t.TempDir(), "numbers.csv")
	file := func(rows ...[]string) []string {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := csv.NewWriter(f).WriteAll(append([][]string{{"kind", "number", "id"}}, rows...)); err != nil {
			t.Fatal(err)
		}
		return []string{"idmap", "import", flag, path}
	}
	move := file([]string{"client", "7001", id})
	if got := must(t, append(move, "--dry-run")...); got != "1 rows: would move 1 objects to their numbers, 0 had them already\n" {
		t.Errorf("dry run: %s", got)
	}
	if got := must(t, "idmap", "lookup", flag, "client", id); got != first {
		t.Errorf("the dry run left %s", got)
	}
	for _, want := range []string{"moved 1 objects to their numbers, 0 had", "moved 0 objects to their numbers, 1 had"} {
		if got := must(t, move...); !strings.Contains(got, want) {
			t.Errorf("import: %s", got)
		}
	}
	if got := must(t, "idmap", "lookup", flag, "client", id); !strings.HasPrefix(got, "client 7001 "+id) || !strings.Contains(got, "\nclient 1 "+id) || !strings.Contains(got, "tombstone") {
		t.Errorf("after the import:\n%s", got)
	}
	refused(t, 1, file([]string{"client", "7002", id}, []string{"client", "2", id}, []string{"client", "0", id}, []string{"dog", "5", id}), "4", "5", "nothing was imported")
	if got := must(t, "idmap", "lookup", flag, "client", "7001"); !strings.Contains(got, id) {
		t.Errorf("a refused import left %s", got)
	}
	refused(t, 1, []string{"idmap", "lookup", flag, "client", "7002"}, "no client 7002")
	refused(t, 1, []string{"idmap", "lookup", flag, "dog", "1"}, "dog")
	refused(t, 1, []string{"idmap", "lookup", flag, "client", "usr_1"}, "usr_1")
	refused(t, 2, []string{"idmap", "import", flag, fmt.Sprint(path, "-nowhere")}, "nowhere")

	r := serving(t, flag, "--demo")
	page := into[struct{ Items []numbered }](r.get("/v1/clients?limit=1", "pk_demo_all").want(200)).Items
	if len(page) != 1 || page[0].ID != 7001 {
		t.Errorf("v1 shows %v", page)
	}
	r.get("/v1/clients/1/users", "pk_demo_all").want(403)
}
