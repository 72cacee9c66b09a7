package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// TestImportProgress: a word now and then where there is no bar.
func TestImportProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	words := &lineProgress{progress{to: &out}}
	for _, n := range []int{1, 100_000, 150_000, 200_000} {
		words.applied(n, 300_000)
	}
	bar := &lineProgress{progress{to: &out, bar: func(done, total int) { fmt.Fprintf(&out, "\r%d/%d", done, total) }}}
	bar.applied(2, 4)
	bar.makeRoom()
	if got := out.String(); got != "100000 of 300000 lines applied\n200000 of 300000 lines applied\n\r2/4\n" {
		t.Errorf("%q", got)
	}
}
