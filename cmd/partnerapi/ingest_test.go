package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/cmd/internal/output"
	"partnerapi/db/dbtest"
)

// TestIngest: signals come from a file or the standard input, once; the exit
// status says whether any line was refused.
func TestIngest(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, tablesSchema)
	ingest := func(file, lines string) (code int, out, errs string) {
		var outs, complaints bytes.Buffer
		code = run(t.Context(), []string{"ingest", "--database-url", url, file}, strings.NewReader(lines), &outs, &complaints)
		return code, outs.String(), complaints.String()
	}
	bad := `{"id": "1", "type": "course_passed", "at": "2026-01-02T03:04:05Z"}` + "\n"
	if code, out, errs := ingest("-", bad+"\n"+bad); code != 1 || !strings.Contains(out, "2 lines in ") || !strings.Contains(out, ": 0 taken, 0 repeated, 2 refused") ||
		!strings.HasPrefix(errs, "line 1: type: \"course_passed\" is unknown\nline 3: type") || !strings.Contains(errs, "2 of 2 lines were refused") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if code, out, errs := ingest("-", ""); code != 0 || !strings.HasPrefix(out, "0 lines") || errs != "" {
		t.Errorf("nothing: %d\n%s%s", code, out, errs)
	}
	file := filepath.Join(t.TempDir(), "signals.ndjson")
	if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "line 1: type: \"course_passed\" is unknown\npartnerapi: 1 of 1 lines were refused\n" // and no bar, for nobody looks
	if code, _, errs := ingest(file, ""); code != 1 || errs != want {
		t.Errorf("a file: %d\n%s", code, errs)
	}
	for _, file := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if code, _, errs := ingest(file, ""); code != 1 || errs == "" {
			t.Errorf("%s: %d %s", file, code, errs)
		}
	}
}

// TestProgress: a bar where there is one, which leaves its line to what is
// written beside it; else a word now and then.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &output.Progress{To: &out, Size: 200, Bar: func(done, total int) { fmt.Fprintf(&out, "\r%d/%d", done, total) }}
	p.MakeRoom()
	p.Applied(1, 100)
	p.MakeRoom()
	p.MakeRoom()
	p.Applied(2, 200)
	p.MakeRoom() // the bar ended its line
	if got := out.String(); got != "\r100/200\n\r200/200" {
		t.Errorf("%q", got)
	}
	out.Reset()
	p = &output.Progress{To: &out, Size: 200}
	for _, lines := range []int{1, output.LinesBetween - 1, output.LinesBetween + 5, 2*output.LinesBetween + 4, 2*output.LinesBetween + 5} {
		p.Applied(lines, 1)
	}
	if got := out.String(); got != "100005 lines\n200005 lines\n" {
		t.Errorf("%q", got)
	}
	if output.IsTerminal(&out) {
		t.Error("a buffer is a terminal")
	}
}
