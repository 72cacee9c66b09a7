//go:build slow

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestParity: parity ends with 0 where both versions say the same, with 1 and what
// differs where they do not, and with 2 where nothing could be compared or a line of a file
// cannot be read.
func TestParity(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	lie := lying(t, s.address)
	parity := func(at string, args ...string) []string {
		return append(append([]string{"parity"}, args...), "--url="+at, "--key=pk_demo_all")
	}
	says(t, must(t, parity(s.address, "compare", "--sample=1", "--v1-url="+s.address)...), "GET /v1/clients ")
	says(t, must(t, parity(s.address, "--writes=1", "--json")...), `"POST /v1/users/{user_id}"`)
	says(t, command(t, parity(lie, "--sample=1", "--json")...).out, `"field": "client_name",`, `"kind": "client",`, `"v1": "Another",`)
	refused(t, 1, parity(lie, "--sample=1"), "differing values: 1")

	refused(t, 2, []string{"parity", "--url=" + s.address, "--key=pk_nobody"}, "rejects the key")
	refused(t, 2, []string{"parity", "--url=" + s.address}, "no API key")
	for words, args := range map[string][]string{
		"--sample must be": {"--sample=0"}, "--all": {"--sample=3", "--all"}, "omit --v1-url": {"--all", "--writes=1", "--v1-url=" + s.address},
		"has access to no client 999999": {"--writes=999999"}, `--writes: the key can access no client named "zebra"`: {"--writes=zebra"}, "--v1-url": {"--tolerate=email"},
	} {
		refused(t, 2, parity(s.address, args...), words)
	}

	replay := func(content, at string) []string {
		file := filepath.Join(t.TempDir(), "requests")
		writeFile(t, file, content)
		return parity(at, "replay", file)
	}
	const good = "GET /v1/clients?limit=5\n/v1/partner\n\n"
	says(t, must(t, append(replay(good, s.address), "--json")...), `"operation": "GET /v1/clients"`)
	const har = `{"log": {"entries": [{"request": {"method": "GET", "url": "https://x.example/api/v1/clients?limit=5"}}, {"request": {"method": "GET", "url": "https://x.example/"}}]}}`
	must(t, replay(har, s.address)...)
	refused(t, 1, replay(good, lie), "differing values: 1")
	for content, says := range map[string]string{
		"":                                "nothing was compared",
		`{"log": {"entries": []}}`:        "nothing was compared",
		"nonsense\n":                      ":1: not of the form",
		good + "POST /v1/clients\n":       ":4: not of the form",
		good + "GET /v1/nothing\n":        ":4: not a read request to v1",
		good + "/v2/clients\n":            ":4: not of the form",
		`{"log": {"entries": [{}]}}`:      ":1: the entry has no request",
		`{"log": {"entries": [{"reques`:   "neither a HAR file",
		"127.0.0.1 - - [x] \"GET /v1/a\"": ":1: not of the form",
	} {
		refused(t, 2, replay(content, s.address), says)
	}
}

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
