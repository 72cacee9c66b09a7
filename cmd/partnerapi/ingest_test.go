package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

// TestIngest: signals come from a file or the standard input, once; the exit
// status says whether any line was refused.
func TestIngest(t *testing.T) {
	url := dbtest.Private(t).URL()
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
	if code, _, errs := ingest(file, ""); code != 1 || !strings.Contains(errs, "line 1: type") || !strings.Contains(errs, "100%") {
		t.Errorf("a file: %d\n%s", code, errs)
	}
	for _, file := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if code, _, errs := ingest(file, ""); code != 1 || errs == "" {
			t.Errorf("%s: %d %s", file, code, errs)
		}
	}
}

// TestUntil: the end of a context ends a read that waits for input.
func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waiting, input := io.Pipe()
	defer input.Close()
	r := until(ctx, waiting)
	go func() {
		_, _ = io.WriteString(input, "line\n")
		cancel()
	}()
	if text, err := io.ReadAll(r); err != context.Canceled || len(text) > len("line\n") {
		t.Errorf("%q, %v", text, err)
	}
}
