package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestParityAlone: what the guides tell an integrator to run for a comparison runs in a process of
// its own, with nothing but the key, which may only read, and the address: no database, no
// configuration, not even a home. It leaves nothing in its folder.
func TestParityAlone(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	bin := program(t)
	for _, document := range []string{"docs/guide/moving-from-v1.md", "docs/operate/parity.md"} {
		var commands []string
		for _, block := range fenced.FindAllStringSubmatch(fileText(t, document), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
				if strings.Contains(line, "partnerapi parity") {
					commands = append(commands, strings.TrimSpace(line))
				}
			}
		}
		if len(commands) != 2 {
			t.Fatalf("%s shows %q", document, commands)
		}
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "requests.txt"), "GET /v1/clients?limit=5\n/v1/partner\n")
		run := func(line string) []byte {
			t.Helper()
			line = strings.NewReplacer("papi_…", "pk_demo_readonly", "https://partner.example", s.address, "FILE", "requests.txt").Replace(line)
			sh := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			sh.Dir, sh.Stderr, sh.Env = dir, t.Output(), []string{"PATH=" + bin}
			out, err := sh.Output()
			if err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
			return out
		}
		var report struct {
			Operations []struct{ Compared int }
		}
		if out := run(commands[0] + " --sample=1 --json"); json.Unmarshal(out, &report) != nil || len(report.Operations) < 10 || report.Operations[0].Compared == 0 {
			t.Errorf("%s: %s", document, out)
		}
		says(t, string(run(commands[1])), "GET /v1/partner")
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s leaves %v: %v", document, left, err)
		}
	}
}
