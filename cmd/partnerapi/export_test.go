package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

// TestExport: what export writes, to a file or the standard output, import takes as
// nothing new; a file is complete or not there.
func TestExport(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, tablesSchema)
	command := func(in string, args ...string) (code int, out, errs string) {
		var outs, complaints bytes.Buffer
		args = append([]string{args[0], "--database-url", url}, args[1:]...)
		code = run(t.Context(), args, strings.NewReader(in), &outs, &complaints)
		return code, outs.String(), complaints.String()
	}
	const partner = "0197cafe-0000-7000-8000-000000000001"
	code, out, errs := command(`{"object":"partner","id":"`+partner+`","name":"One"}
{"object":"partner","id":"0197cafe-0000-7000-8000-000000000002","name":"Two"}
{"object":"client","id":"0197cafe-0000-7000-8000-000000000003","partner":"`+partner+`","name":"Acme"}`, "import", "-")
	if code != 0 {
		t.Fatal(code, out, errs)
	}

	code, all, errs := command("", "export")
	if code != 0 || strings.Count(all, `"object":"partner"`) != 2 || !strings.Contains(errs, "client: 1 lines\n") {
		t.Errorf("%d\n%s%s", code, all, errs)
	}
	if code, out, errs := command(all, "import", "-"); code != 0 || !strings.Contains(out, "0 created, 0 updated") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}

	dir := t.TempDir()
	file, signals := filepath.Join(dir, "one.ndjson"), filepath.Join(dir, "signals.ndjson")
	code, out, errs = command("", "export", file, "--partner", "one", "--signals", signals)
	text, err := os.ReadFile(file)
	if code != 0 || out != "" || err != nil || strings.Count(string(text), `"object":"partner"`) != 1 {
		t.Errorf("%d, %v\n%s%s%s", code, err, out, errs, text)
	}
	for _, args := range [][]string{
		{"export", file, "--partner", "none"}, {"export", filepath.Join(dir, "none", "x")},
		{"export", filepath.Join(dir, "other"), "--signals", dir},
	} {
		if code, _, errs := command("", args...); code != 1 || errs == "" {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v are left, %v", left, err)
	}
	if info, err := left[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
