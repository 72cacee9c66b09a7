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

	"partnerapi/domain"
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
		{"import", aClient + "\n" + aRobot + aPartner, false, `^3 lines in .*: 2 created, 0 updated, 0 unchanged, 1 rejected\n$`,
			`^line 3: object must be one of partner, .*, exposure\n$`, "1 of 3 lines were rejected"},
		{"import", aClient + aPartner, true, `: 0 created, 0 updated, 2 unchanged, 0 rejected\n$`, "^$", ""},
		{"ingest", noSignal + "\n" + noSignal, false, `^2 lines in .*: 0 applied, 0 repeated, 2 rejected\n$`,
			`^line 1: type must be one of .*\nline 3: type must be one of .*\n$`, "2 of 2 lines were rejected"},
		{"ingest", "", false, `^0 lines`, "^$", ""},
		{"ingest", noSignal, true, `1 rejected\n$`, `^line 1: type must be one of .*\n$`, "1 of 1 lines were rejected"}, // and no bar
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
		{"--dry-run", `^dry run, nothing changed: .*: 1 created, 0 updated, 0 unchanged, 2 rejected\n$`},
		{"--dry-run", `^dry run, nothing changed: .*: 1 created, 0 updated, 0 unchanged, 2 rejected\n$`},
		{"", `^3 lines in .*: 1 created, 0 updated, 0 unchanged, 2 rejected\n$`},
		{"", `^3 lines in .*: 0 created, 0 updated, 1 unchanged, 2 rejected\n$`},
	} {
		args := append([]string{"import", file, "--errors=" + refused}, strings.Fields(tt.flag)...)
		out, errs, err := c.run(t.Context(), nil, args...)
		if err == nil || err.Error() != "2 of 3 lines were rejected" || !strings.HasPrefix(errs, "line 2: must be a JSON object\nline 3: object must be one of ") || strings.Count(errs, "\n") != 2 || !regexp.MustCompile(tt.out).MatchString(out) {
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
		"import -":           "run the command again with the same lines; lines that were applied are not applied twice",
		"import - --dry-run": "nothing changed",
		"ingest -":           "run the command again with the same lines; no signal is applied twice",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := c.run(ctx, cutting{strings.NewReader(aPartner), cancel, never}, strings.Fields(args)...)
		if err == nil || err.Error() != "interrupted: "+want {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}

// TestImportCSV verifies that a table is imported, that its users have the same ids each time, and that faults are reported
// by the lines of the table.
func TestImportCSV(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := c.AddClient()
	table := fileOf(t, "\ufeffClient;E-Mail;First_Name;Last Name;Department;\r\n"+
		client.String()+";ana@example.com;Ana;\"Ruiz; née \"\"Paz\"\"\";;\r\n;;;\r\n"+client.UUID()+";Bo@example.com;Bo;;Sales\r\n")
	for _, want := range []string{"2 lines in", "2 created, 0 updated, 0 unchanged, 0 rejected"} {
		c.says([]string{"import", "--csv=user", "--dry-run", table}, want)
	}
	for _, want := range []string{"2 created, 0 updated, 0 unchanged", "0 created, 0 updated, 2 unchanged"} {
		c.says([]string{"import", "--csv", "user", table}, want)
	}
	c.says([]string{"export"}, `Ruiz; née \"Paz\"`, domain.UserID(uuid.NewSHA1(uuid.UUID(client), []byte("bo@example.com"))).String())
	c.refused(false, []string{"import", "--csv=user", fileOf(t, "client,email\n\n"+client.String()+",nobody\n")}, "line 3: email must be", "1 of 1 lines")
	c.refused(false, []string{"import", "--csv=users", table}, `--csv: "users" is not a kind of object; it must be one of partner`)
	c.refused(false, []string{"import", "--csv=user", fileOf(t, "client,mail\n")}, `contains names that are not fields of user or are repeated: "mail"`)
}

// TestManyRefusals verifies that a bad line that many others refer to does not flood the terminal: the first lines and a
// count by reason are printed, and the file has all.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"object":"user","id":%q,"client":"0197cafe-0000-7000-8000-000000000009","email":"u%d@example.com"}`+"\n", uuid.New(), i)
		if i%100 == 0 {
			fmt.Fprintf(&lines, `{"object":"robot%d"}`+"\n"+`{"object":"group","id":"x","field%d":1}`+"\n", i, i)
		}
	}
	file, all := fileOf(t, lines.String()), filepath.Join(t.TempDir(), "errors.ndjson")
	_, errs, err := c.run(t.Context(), nil, "import", file)
	if err == nil || err.Error() != "3060 of 3060 lines were rejected" || strings.Count(errs, "\nline ")+1 != 20 ||
		!strings.Contains(errs, "\n3060 lines were rejected (use --errors FILE to list all of them):\n    3000  client: there is no such client\n      30  object must be one of partner, ") ||
		!strings.HasSuffix(errs, "      22  other reasons\n") || strings.Count(errs, "\n") != 32 {
		t.Errorf("%v\n%s", err, errs)
	}
	_, errs, err = c.run(t.Context(), nil, "import", file, "--dry-run", "--errors", all)
	written, readErr := os.ReadFile(all)
	if err == nil || readErr != nil || strings.Count(errs, "\nline ")+1 != 20 || !strings.Contains(errs, "\n3060 lines were rejected ("+all+" lists all of them):\n    3000  ") || strings.Count(string(written), "\n") != 3060 {
		t.Errorf("%v, %v\n%s", err, readErr, errs)
	}
	out, errs, err := c.run(t.Context(), strings.NewReader("{\n  \"object\": \"client\"\n}\n"), "import", "-")
	if err == nil || out+errs != "" || !strings.HasPrefix(err.Error(), "the input is JSON that spans several lines") {
		t.Errorf("%q, %v", errs, err)
	}
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
