package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestExportNumbers: what is exported, to the standard output as to a file, is
// imported without moving anything, from a file as from the standard input.
func TestExportNumbers(t *testing.T) {
	t.Parallel()
	flag, dir := demonstration(t), t.TempDir()
	printed := must(t, "idmap", "export", flag)
	says(t, printed, "kind,number,id\nclient,1,cli_", "\ncollection,", "\ngroup,", "\npolicy,", "\nreport,", "\ntemplate,")
	path := filepath.Join(dir, "numbers.csv")
	says(t, must(t, "idmap", "export", flag, path), path+": ")
	written, err := os.ReadFile(path)
	if left, err2 := os.ReadDir(dir); err != nil || string(written) != printed || err2 != nil || len(left) != 1 {
		t.Errorf("the file has %.300s, %v; the folder has %v, %v", written, err, left, err2)
	}
	if got := must(t, "idmap", "export", flag, "-"); got != printed {
		t.Errorf("with - it is %.300s", got)
	}
	refused(t, 1, []string{"idmap", "export", flag, filepath.Join(dir, "nowhere", "numbers.csv")}, "nowhere")
	says(t, must(t, "idmap", "import", flag, path), ": moved 0 objects to their numeric IDs, ")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"idmap", "import", flag, "-"}, strings.NewReader(printed), &out, &errs); code != 0 || !strings.Contains(out.String(), ": moved 0 objects") {
		t.Errorf("exit %d, %s%s", code, &out, &errs)
	}
}

// TestStatusCommand: what shows who still calls version 1 takes each of its flags.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	file := filepath.Join(t.TempDir(), "status.html")
	says(t, must(t, "v1", "status", flag, "--days=1"), "In the last 1 day:")
	must(t, "v1", "phase", flag, "pk_demo_other", "read_only")
	says(t, must(t, "v1", "status", flag, "--key=pk_demo_o"),
		"pk_demo_other (pk_demo_other) did not call v1 in the last 400 days. It is in\nphase read_only.\n")
	if out := must(t, "v1", "status", flag, "--key=pk_demo_other", "--html="+file); out != "wrote "+file+"\n" {
		t.Errorf("printed %q", out)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(page), "It is in phase read_only.")
	refused(t, 1, []string{"v1", "status", flag, "--key=pk_nobody00"}, "pk_nobody00", "keys list")
	refused(t, 1, []string{"v1", "status", flag, "--key=pk_demo"}, "4 keys begin with", "keys list")
	refused(t, 2, []string{"v1", "status", flag, "--days=0"}, "--days", "400")
	refused(t, 2, []string{"v1", "status", flag, "--days=401"}, "--days")
	refused(t, 2, []string{"v1", "status", flag, "--json", "--html=" + file}, "--json", "--html")
	says(t, must(t, "v1", "status", "--help"), "half-way", "when you can delete v1")
}

// TestPublicURLOfDryRuns verifies that a dry run of emails prints links of the service's public URL, from the same
// variable as serve.
func TestPublicURLOfDryRuns(t *testing.T) {
	t.Setenv("PARTNERAPI_PUBLIC_URL", "https://api.example.com/base")
	database := databaseFlag(t)
	insertClients(t, opened(t, database), "Acme", "Hill")
	must(t, "admins", "add", "ada@acme.example", "--name=Ada", database)
	must(t, "v1", "announce", "--no-mail", "--sunset="+time.Now().AddDate(2, 0, 0).Format(time.DateOnly), database)
	got := must(t, "v1", "remind", "--dry-run", database)
	says(t, got, "To: ada@acme.example\n", "https://api.example.com/base/docs/guide/moving-from-v1")
	if strings.Contains(got, "127.0.0.1") {
		t.Errorf("links lead to this machine:\n%s", got)
	}
}

// TestPublicURLOfService verifies that a dry run without --public-url prints links of the service that sends emails, also
// after it stopped, and of the last one if there were several.
func TestPublicURLOfService(t *testing.T) {
	t.Parallel()
	database := databaseFlag(t)
	insertClients(t, opened(t, database), "Acme", "Hill")
	must(t, "admins", "add", "ada@acme.example", "--name=Ada", database)
	announce := []string{"v1", "announce", "--dry-run", "--sunset=" + time.Now().AddDate(2, 0, 0).Format(time.DateOnly), database}
	says(t, must(t, announce...), "http://127.0.0.1:8080/docs/guide/moving-from-v1") // no service yet
	first := serving(t, database)
	says(t, must(t, announce...), first.address+"/docs/guide/moving-from-v1")
	first.finish()
	serveAt := func(url string, more ...string) { // which cannot be called there
		t.Helper()
		r := inProcess(t, append([]string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir(), "--public-url=" + url, database}, more...)...)
		if r.out.await(regexp.MustCompile("serves v2 release"), r.ended) == nil {
			t.Fatalf("no greeting:\n%s", r.logs)
		}
		r.finish()
	}
	serveAt("https://api.example.com/base/")
	says(t, must(t, announce...), "https://api.example.com/base/docs/guide/moving-from-v1")
	serveAt("https://elsewhere.example.com", "--no-work") // it sends no emails
	says(t, must(t, announce...), "https://api.example.com/base/docs/guide/moving-from-v1")
	says(t, must(t, append(announce, "--public-url=https://flag.example.com")...), "https://flag.example.com/docs/guide/moving-from-v1")
}

// importNumbers verifies that the role of a database gives a client of the service a number, and that the next client
// gets one above it.
func importNumbers(t *testing.T, r *running, flag string) {
	t.Helper()
	lines := "kind,number,id\nclient,5000," + oldestClient(r) + "\n"
	path := filepath.Join(t.TempDir(), "numbers.csv")
	writeFile(t, path, lines)
	says(t, must(t, "idmap", "import", flag, path), ": moved 1 objects to their numeric IDs")
	made := r.do("POST", "/v1/clients", "pk_demo_all", fields{"company_name": "After the import"}).want(http.StatusCreated)
	says(t, string(made.body), `"id":5001`)
}
