package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outsider is an integrator who has the program, a key and an address, and nothing else: no
// database, no configuration, not even a home.
type outsider struct {
	t *testing.T
	// bin is the folder of the program, and dir the one that it is run in.
	bin, dir string
}

func newOutsider(t *testing.T) outsider {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	i := outsider{t, t.TempDir(), t.TempDir()}
	if err := os.Symlink(self, filepath.Join(i.bin, "partnerapi")); err != nil {
		t.Fatal(err)
	}
	return i
}

// commands are those that a document shows for parity, each a line.
func (i outsider) commands(document string) (lines []string) {
	i.t.Helper()
	for _, block := range fenced.FindAllStringSubmatch(fileText(i.t, document), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
			if strings.Contains(line, "partnerapi parity") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) != 2 {
		i.t.Fatalf("%s shows %q", document, lines)
	}
	return lines
}

// run runs a command as a document shows it, with a key, an address and a file, and returns its
// exit status and what it printed. It leaves nothing in the folder.
func (i outsider) run(line, key, address string, more ...string) (code int, out, errs string) {
	i.t.Helper()
	line = strings.NewReplacer("papi_…", key, "https://partner.example", address, "FILE", "requests.txt").Replace(strings.TrimSpace(line))
	sh := exec.CommandContext(i.t.Context(), "/bin/sh", "-c", line+" "+strings.Join(more, " "))
	var printed, said bytes.Buffer
	sh.Dir, sh.Stdout, sh.Stderr = i.dir, &printed, &said
	sh.Env = []string{"PATH=" + i.bin, asCommand + "=1"}
	before := i.files()
	err := sh.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		i.t.Fatal(err)
	}
	if after := i.files(); !slices.Equal(before, after) {
		i.t.Errorf("%s leaves %q", line, after)
	}
	return code, printed.String(), said.String()
}

// files are the names in the folder.
func (i outsider) files() (names []string) {
	i.t.Helper()
	entries, err := os.ReadDir(i.dir)
	if err != nil {
		i.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestParityAlone: what the guides tell an integrator to run for a comparison runs in a process of
// its own, in an empty folder, with nothing but the key and the address, also where the key may
// only read. It says what differs, and tells a wrong key from a difference.
func TestParityAlone(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	i := newOutsider(t)
	for _, document := range []string{"docs/guide/moving-from-v1.md", "docs/operate/parity.md"} {
		lines := i.commands(document)
		code, out, errs := i.run(lines[0], "pk_demo_readonly", s.address, "--sample=1", "--json")
		if code != 0 {
			t.Fatalf("%s: exit %d: %s%s", document, code, out, errs)
		}
		var report struct {
			Operations []struct {
				Operation           string
				Compared, Different int
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Operations) < 10 || report.Operations[0].Compared == 0 {
			t.Errorf("%s: %v: %s", document, err, out)
		}
		if err := os.WriteFile(filepath.Join(i.dir, "requests.txt"), []byte("GET /v1/clients?limit=5\n/v1/partner\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs = i.run(lines[1], "pk_demo_readonly", s.address); code != 0 || !strings.Contains(out, "GET /v1/partner") {
			t.Errorf("%s: the replay: exit %d: %s%s", document, code, out, errs)
		}
		if err := os.Remove(filepath.Join(i.dir, "requests.txt")); err != nil {
			t.Fatal(err)
		}
	}

	compare := i.commands("docs/guide/moving-from-v1.md")[0]
	if code, out, errs := i.run(compare, "pk_demo_all", lying(t, s.address), "--sample=1"); code != 1 || !strings.Contains(out, "Another") {
		t.Errorf("of a service that differs: exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := i.run(compare, "pk_nobody", s.address); code != 2 || !strings.Contains(errs, "does not take the key") {
		t.Errorf("with a wrong key: exit %d: %s", code, errs)
	}
	if code, _, errs := i.run(compare, "", s.address); code != 2 || !strings.Contains(errs, "no API key") {
		t.Errorf("without a key: exit %d: %s", code, errs)
	}
}
