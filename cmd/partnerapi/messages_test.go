package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlagAtFault verifies that a process which cannot start names the flag at fault, and no other one.
func TestFlagAtFault(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	below := "--data-dir=" + filepath.Join(file, "data") // which cannot be made
	database, listen := databaseFlag(t), "--listen=127.0.0.1:0"
	const unwritable = "--data-dir=/proc" // even for root; where it does not exist, it cannot be made
	for _, args := range [][]string{
		{"serve", database, listen, below}, {"serve", listen, below}, {"work", database, below},
		{"serve", database, listen, unwritable}, {"serve", listen, unwritable},
	} {
		r := command(t, args...)
		if _, fault, _ := strings.Cut(r.err, "partnerapi: "); r.code != 1 || !strings.HasPrefix(fault, "--data-dir: ") {
			t.Errorf("%v: exit %d: %s", args, r.code, r.err)
		}
	}
	refused(t, 1, []string{"serve", database, listen, "--data-dir=" + t.TempDir(), "--redis-url=redis://someone:sesame@127.0.0.1:1"},
		"--redis-url: connect to Redis at 127.0.0.1:1: ")
}

// TestPastedAddresses verifies that no flag shows the password of an address that belongs to another flag.
func TestPastedAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"redis://u:sesame@cache", "host=127.0.0.1,password=sesame", "host=127.0.0.1 password='sesame sesame'"} {
		for _, flag := range []string{"--report-store=", "--public-url=", "--support-url=", "--webhook-ca=", "--mcp-origins=", "--cell=", "--release=", "--listen="} {
			r := command(t, "serve", "--database-url=postgres://127.0.0.1:1/x", flag+address)
			if r.code == 0 || strings.Contains(r.out+r.err, "sesame") {
				t.Errorf("%s: exit %d: %s", flag, r.code, r.err)
			}
		}
	}
}

// TestDeniedCommand verifies that a command whose role lacks a privilege names the object and refers to doctor, which says
// what to run.
func TestDeniedCommand(t *testing.T) {
	t.Parallel()
	database := databaseFlag(t)
	d := opened(t, database)
	const role = "partnerapi_test_denied"
	execute(t, d, "DO $$ BEGIN CREATE ROLE "+role+"; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	execute(t, d, "GRANT USAGE ON SCHEMA public TO "+role)
	execute(t, d, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	execute(t, d, "REVOKE SELECT ON api_keys FROM "+role)
	t.Cleanup(func() {
		if _, err := d.SQL().ExecContext(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	separator := "?"
	if strings.Contains(database, "?") {
		separator = "&"
	}
	refused(t, 1, []string{"keys", "list", database + separator + "options=-c%20role%3D" + role},
		"lacks a right on the table api_keys; partnerapi doctor prints the GRANT statements")
}

// jsonLines checks that all lines of a text are objects of JSON, and returns them.
func jsonLines(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Errorf("no JSON: %s", line)
		}
		lines = append(lines, object)
	}
	return lines
}

// TestFailuresInJSON verifies that a process which logs in JSON writes its failure to start as JSON too, whatever it is.
func TestFailuresInJSON(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "--log-format=json", "--fly"}, {"serve", "--log-format", "json", "--workers=0"}, {"work", "--log-format=json", "--smtp-url=x"},
		{"serve", "--log-format=json", "--listen=127.0.0.1:99999"}, {"serve", "--listen=127.0.0.1:0", "--log-format=json", "--database-url=postgres://u:sesame@127.0.0.1:1/x"},
	} {
		r := command(t, args...)
		lines := jsonLines(t, r.err)
		if r.code == 0 || r.out != "" || len(lines) != 1 || lines[0]["level"] != "ERROR" || lines[0]["error"] == "" || strings.Contains(r.err, "sesame") {
			t.Errorf("%v: exit %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	t.Setenv("PARTNERAPI_LOG_FORMAT", "json")
	if r := command(t, "serve", "--fly"); len(jsonLines(t, r.err)) != 1 || r.code != 2 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	for _, args := range [][]string{{"serve", "--fly", "--log-format=text"}, {"keys", "--fly"}} {
		if r := command(t, args...); !strings.HasPrefix(r.err, "partnerapi: ") {
			t.Errorf("%v: %s", args, r.err)
		}
	}
}

// TestLogInJSON verifies that a process which logs in JSON writes nothing else, and that it names variables that no
// command reads, without their values.
func TestLogInJSON(t *testing.T) {
	t.Setenv("PARTNERAPI_DATABSE_URL", "sesame")
	r := serving(t, demonstration(t), "--demo", "--log-format=json")
	r.finish()
	if out := r.out.String(); out != "" {
		t.Errorf("on standard output: %s", out)
	}
	warned := false
	for _, line := range jsonLines(t, r.logs.String()) {
		variables, _ := line["variables"].(string)
		warned = warned || variables == "PARTNERAPI_DATABSE_URL (PARTNERAPI_DATABASE_URL?)" && line["level"] == "WARN"
	}
	if !warned || strings.Contains(r.logs.String(), "sesame") {
		t.Errorf("the log is\n%s", r.logs)
	}
	if err := os.Unsetenv("PARTNERAPI_DATABSE_URL"); err != nil {
		t.Fatal(err)
	}
}
