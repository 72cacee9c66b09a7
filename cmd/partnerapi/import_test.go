package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

// TestImport: objects come from a file or the standard input; the exit status says
// whether any line was refused.
func TestImport(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, tablesSchema)
	take := func(file, lines string) (code int, out, errs string) {
		var outs, complaints bytes.Buffer
		code = run(t.Context(), []string{"import", "--database-url", url, file}, strings.NewReader(lines), &outs, &complaints)
		return code, outs.String(), complaints.String()
	}
	const uuid = "0197cafe-0000-7000-8000-00000000000"
	partner := `{"object":"partner","id":"` + uuid + `1","name":"P"}` + "\n"
	client := `{"object":"client","id":"` + uuid + `2","partner":"` + uuid + `1","name":"C"}` + "\n"
	bad := `{"object":"robot"}` + "\n"

	code, out, errs := take("-", client+"\n"+bad+partner)
	if code != 1 || !strings.HasPrefix(out, "3 lines in ") || !strings.HasSuffix(out, ": 2 created, 0 updated, 0 unchanged, 1 refused\n") ||
		errs != "line 3: object: \"robot\" is unknown\npartnerapi: 1 of 3 lines were refused\n" {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	file := filepath.Join(t.TempDir(), "objects.ndjson")
	if err := os.WriteFile(file, []byte(client+partner), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := take(file, ""); code != 0 || !strings.HasSuffix(out, ": 0 created, 0 updated, 2 unchanged, 0 refused\n") || errs != "" {
		t.Errorf("again: %d\n%s%s", code, out, errs)
	}
	for _, file := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if code, _, errs := take(file, ""); code != 1 || errs == "" {
			t.Errorf("%s: %d %s", file, code, errs)
		}
	}
}

// TestImportDryRun: a dry run changes nothing, and the refused lines are in a file that
// only its owner can read.
func TestImportDryRun(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), t.TempDir()
	file, errors := filepath.Join(dir, "platform.ndjson"), filepath.Join(dir, "errors.ndjson")
	text := `{"object":"partner","id":"0197cafe-0000-7000-8000-000000000001","name":"P"}` + "\nnonsense\n" + `{"object":"robot\u202e<"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--dry-run"}, {"--dry-run"}, nil, nil} {
		r := command(t, append([]string{"import", flag, file, "--errors=" + errors}, args...)...)
		created := "1 created, 0 updated, 0 unchanged, 2 refused\n"
		if args == nil && !strings.Contains(must(t, "audit", "--json", flag), `"import"`) {
			t.Error("an import leaves no entry")
		}
		if r.code != 1 || strings.HasPrefix(r.out, "dry run, nothing was changed: ") != (args != nil) || r.err != "partnerapi: 2 of 3 lines were refused\n" {
			t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
		}
		if !strings.HasSuffix(r.out, created) && !(args == nil && strings.HasSuffix(r.out, "0 created, 0 updated, 1 unchanged, 2 refused\n")) {
			t.Errorf("%v: %s", args, r.out)
		}
		if got := must(t, "partners", "list", flag, "--json"); strings.Contains(got, `"P"`) == (args != nil) {
			t.Errorf("%v: there are %s", args, got)
		}
		written, err := os.ReadFile(errors)
		if err != nil || !strings.HasPrefix(string(written), `{"line":2,"reason":"is not a JSON object"}`+"\n"+`{"line":3,"reason":"object: `) {
			t.Errorf("the file has %s: %v", written, err)
		}
		if info, err := os.Stat(errors); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v: %v", info, err)
		}
	}
	if got := must(t, "audit", "--json", flag); strings.Count(got, `"operation": "import"`) != 2 {
		t.Errorf("a dry run leaves an entry: %s", got)
	}

	guide, err := os.ReadFile("../../docs/operate/import.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(guide), "$ sed ")
	recipe, _, _ = strings.Cut(recipe, "\n")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sed "+recipe+" && cat again.ndjson")
	cmd.Dir = dir
	if again, err := cmd.CombinedOutput(); err != nil || string(again) != text[strings.Index(text, "nonsense"):] {
		t.Errorf("the guide's command takes out %s: %v", again, err)
	}
}

// cutting is an input that has some lines, and interrupts the command then.
type cutting struct {
	lines io.Reader
	cut   context.CancelFunc
	never chan struct{}
}

func (c cutting) Read(p []byte) (int, error) {
	if n, err := c.lines.Read(p); err == nil {
		return n, nil
	}
	c.cut()
	<-c.never
	return 0, io.EOF
}

// TestInterrupted: an import and an ingest end with one line, which says how to go on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	flag, never := databaseFlag(t), make(chan struct{})
	t.Cleanup(func() { close(never) })
	for args, want := range map[string]string{
		"import":           "run it again with the same lines, what is applied is not applied twice",
		"import --dry-run": "nothing was changed",
		"ingest":           "run it again with the same lines, no signal is applied twice",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errs bytes.Buffer
		in := cutting{strings.NewReader(`{"object":"partner","id":"0197cafe-0000-7000-8000-000000000001","name":"P"}` + "\n"), cancel, never}
		code := run(ctx, append(strings.Fields(args), flag, "-"), in, &out, &errs)
		if _, last, _ := strings.Cut(errs.String(), "partnerapi: "); code != 1 || last != "interrupted: "+want+"\n" {
			t.Errorf("%s: exit %d: %q, not %q", args, code, errs.String(), want)
		}
	}
}

// TestImportExample: the guide's examples are taken whole on a fresh database.
func TestImportExample(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	guide := func(name string) string { return filepath.Join("../../docs/operate", name) }
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"import", guide("import-example.ndjson"), "--dry-run"}, "14 created, 0 updated, 0 unchanged, 0 refused"},
		{[]string{"import", guide("import-example.ndjson")}, "14 created, 0 updated, 0 unchanged, 0 refused"},
		{[]string{"breaches", "import", guide("import-example-breaches.json")}, "1 added"},
		{[]string{"import", guide("import-example-exposures.ndjson")}, "1 created, 0 updated, 0 unchanged, 0 refused"},
		{[]string{"import", guide("import-example.ndjson")}, "0 created, 0 updated, 14 unchanged, 0 refused"},
	} {
		if got := must(t, append(tt.args, flag)...); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s", tt.args, got)
		}
	}
}

// TestImportCSV: the guide's recipe makes lines of a table.
func TestImportCSV(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/operate/import.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(guide)
	if recipe == nil {
		t.Fatal("the guide has no recipe")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	flag := databaseFlag(t)
	client := insertClients(t, opened(t, flag), "Acme", "Hill")[0]
	table := "\ufeffclient,email,first_name,last_name,department\r\n" +
		client.UUID() + `,ana@example.com,Ana,"Ruiz, née ""Paz""",` + "\r\n" + client.UUID() + ",bo@example.com,Bo,,Sales\r\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"users.py": string(recipe[1]), "users.csv": table} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "users.py", "users.csv")
	cmd.Dir = dir
	lines, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, lines)
	}
	for _, want := range []string{"2 created, 0 updated, 0 unchanged", "0 created, 0 updated, 2 unchanged"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"import", flag, "-"}, bytes.NewReader(lines), &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("exit %d: %s%s, want %s of\n%s", code, &out, &errs, want, lines)
		}
	}
	if got := must(t, "export", flag); !strings.Contains(got, `Ruiz, née \"Paz\"`) {
		t.Errorf("exported\n%s", got)
	}
}
