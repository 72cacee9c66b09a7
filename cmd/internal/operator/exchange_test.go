package operator

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const (
	aPartner = `{"object":"partner","id":"0197cafe-0000-7000-8000-000000000001","name":"P"}` + "\n"
	aClient  = `{"object":"client","id":"0197cafe-0000-7000-8000-000000000002","partner":"0197cafe-0000-7000-8000-000000000001","name":"C"}` + "\n"
	aRobot   = `{"object":"robot"}` + "\n"
	noSignal = `{"id": "1", "type": "course_passed", "at": "2026-01-02T03:04:05Z"}` + "\n"
)

// TestLines: objects and signals come from a file or the standard input, and the error says
// whether any line was refused.
func TestLines(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for _, tt := range []struct {
		command, lines   string
		file             bool
		out, errs, fails string
	}{
		{"import", aClient + "\n" + aRobot + aPartner, false, `^3 lines in .*: 2 created, 0 updated, 0 unchanged, 1 refused\n$`,
			`^line 3: object must be one of partner, .*, exposure\n$`, "1 of 3 lines were refused"},
		{"import", aClient + aPartner, true, `: 0 created, 0 updated, 2 unchanged, 0 refused\n$`, "^$", ""},
		{"ingest", noSignal + "\n" + noSignal, false, `^2 lines in .*: 0 taken, 0 repeated, 2 refused\n$`,
			`^line 1: type must be one of .*\nline 3: type must be one of .*\n$`, "2 of 2 lines were refused"},
		{"ingest", "", false, `^0 lines`, "^$", ""},
		{"ingest", noSignal, true, `1 refused\n$`, `^line 1: type must be one of .*\n$`, "1 of 1 lines were refused"}, // and no bar
	} {
		from := "-"
		if tt.file {
			from = fileOf(t, tt.lines)
		}
		out, errs, err := c.run(t.Context(), strings.NewReader(tt.lines), tt.command, from)
		said := regexp.MustCompile(tt.out).MatchString(out) && regexp.MustCompile(tt.errs).MatchString(errs)
		if !said || (err == nil) != (tt.fails == "") || err != nil && err.Error() != tt.fails {
			t.Errorf("%s %q: %q, %q, %v", tt.command, tt.lines, out, errs, err)
		}
		c.refused(false, []string{tt.command, t.TempDir()})
		c.refused(false, []string{tt.command, filepath.Join(t.TempDir(), "none")}, "none")
	}
}

// TestImportDryRun: a dry run changes nothing, and the refused lines are in a file that
// only its owner can read.
func TestImportDryRun(t *testing.T) {
	t.Parallel()
	c, dir := newConsole(t), t.TempDir()
	file, refused := filepath.Join(dir, "platform.ndjson"), filepath.Join(dir, "errors.ndjson")
	text := aPartner + "nonsense\n" + `{"object":"robot\u202e<"}` + "\n"
	c.Must(os.WriteFile(file, []byte(text), 0o600))
	for _, tt := range []struct{ flag, out string }{
		{"--dry-run", `^dry run, nothing was changed: .*: 1 created, 0 updated, 0 unchanged, 2 refused\n$`},
		{"--dry-run", `^dry run, nothing was changed: .*: 1 created, 0 updated, 0 unchanged, 2 refused\n$`},
		{"", `^3 lines in .*: 1 created, 0 updated, 0 unchanged, 2 refused\n$`},
		{"", `^3 lines in .*: 0 created, 0 updated, 1 unchanged, 2 refused\n$`},
	} {
		args := append([]string{"import", file, "--errors=" + refused}, strings.Fields(tt.flag)...)
		out, errs, err := c.run(t.Context(), nil, args...)
		if err == nil || err.Error() != "2 of 3 lines were refused" || errs != "" || !regexp.MustCompile(tt.out).MatchString(out) {
			t.Fatalf("%q, %q: %v", out, errs, err)
		}
		if got := c.must("partners", "list", "--json"); strings.Contains(got, `"P"`) == (tt.flag != "") {
			t.Errorf("%v: there are %s", args, got)
		}
		written, err := os.ReadFile(refused)
		if err != nil || !strings.HasPrefix(string(written), `{"line":2,"reason":"must be a JSON object"}`+"\n"+`{"line":3,"reason":"object must be one of `) {
			t.Errorf("the file has %s: %v", written, err)
		}
		if info, err := os.Stat(refused); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v: %v", info, err)
		}
	}
	if got := c.must("audit", "--json"); strings.Count(got, `"operation": "import"`) != 2 {
		t.Errorf("a dry run leaves an entry, or an import none: %s", got)
	}

	_, recipe, _ := strings.Cut(importGuide(t), "$ sed ")
	recipe, _, _ = strings.Cut(recipe, "\n```")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sed "+recipe+" && cat again.ndjson")
	cmd.Dir = dir
	if again, err := cmd.CombinedOutput(); err != nil || string(again) != text[strings.Index(text, "nonsense"):] {
		t.Errorf("the guide's command takes out %s: %v", again, err)
	}
}

func importGuide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operate/import.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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

// TestInterrupted: what is cut short says how to go on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	c, never := newConsole(t), make(chan struct{})
	t.Cleanup(func() { close(never) })
	for args, want := range map[string]string{
		"import -":           "run it again with the same lines, what is applied is not applied twice",
		"import - --dry-run": "nothing was changed",
		"ingest -":           "run it again with the same lines, no signal is applied twice",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := c.run(ctx, cutting{strings.NewReader(aPartner), cancel, never}, strings.Fields(args)...)
		if err == nil || err.Error() != "interrupted: "+want {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}

// TestImportCSV: the lines that the guide's recipe makes of a table are users. Where Python is
// installed, they are what it makes.
func TestImportCSV(t *testing.T) {
	t.Parallel()
	recipe := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(importGuide(t))
	if recipe == nil {
		t.Fatal("the guide has no recipe")
	}
	c := newConsole(t)
	client := c.AddClient().UUID()
	line := func(email, more string) string {
		id := uuid.NewSHA1(uuid.MustParse(client), []byte(email))
		return fmt.Sprintf(`{"object": "user", "client": %q, "email": %q, %s, "id": %q}`+"\n", client, email, more, id)
	}
	lines := line("ana@example.com", `"first_name": "Ana", "last_name": "Ruiz, n\u00e9e \"Paz\""`) +
		line("bo@example.com", `"first_name": "Bo", "department": "Sales"`)
	if python, err := exec.LookPath("python3"); err == nil {
		table := fileOf(t, "\ufeffclient,email,first_name,last_name,department\r\n"+
			client+`,ana@example.com,Ana,"Ruiz, née ""Paz""",`+"\r\n"+client+",bo@example.com,Bo,,Sales\r\n")
		if made, err := exec.CommandContext(t.Context(), python, fileOf(t, recipe[1]), table).Output(); err != nil || string(made) != lines {
			t.Errorf("the recipe makes\n%s\nnot\n%s\n%v", made, lines, err)
		}
	}
	for _, want := range []string{"2 created, 0 updated, 0 unchanged", "0 created, 0 updated, 2 unchanged"} {
		c.says([]string{"import", fileOf(t, lines)}, want)
	}
	c.says([]string{"export"}, `Ruiz, née \"Paz\"`)
}

// TestExport: what export writes, to a file or the standard output, import takes as
// nothing new; a file is complete or not there.
func TestExport(t *testing.T) {
	t.Parallel()
	c, dir := newConsole(t), t.TempDir()
	c.must("import", fileOf(t, aPartner+aClient))
	all, errs, err := c.run(t.Context(), nil, "export")
	if err != nil || strings.Count(all, `"object":"partner"`) != 2 || !strings.Contains(errs, "client: 1 lines\n") {
		t.Errorf("%v\n%s%s", err, all, errs)
	}
	c.says([]string{"import", fileOf(t, all)}, "0 created, 0 updated")

	file, signals := filepath.Join(dir, "one.ndjson"), filepath.Join(dir, "signals.ndjson")
	out := c.must("export", file, "--partner", "p", "--signals", signals)
	text, err := os.ReadFile(file)
	if out != "" || err != nil || strings.Count(string(text), `"object":"partner"`) != 1 {
		t.Errorf("%v\n%s%s", err, out, text)
	}
	for _, args := range [][]string{
		{"export", file, "--partner", "none"}, {"export", filepath.Join(dir, "none", "x")},
		{"export", filepath.Join(dir, "other"), "--signals", dir},
	} {
		c.refused(false, args)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Fatalf("%v are left, %v", left, err)
	}
	if info, err := left[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
