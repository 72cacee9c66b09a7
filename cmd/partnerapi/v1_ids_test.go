package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportNumbers: what is exported, to the standard output as to a file, is
// imported without moving anything, from a file as from the standard input.
func TestExportNumbers(t *testing.T) {
	t.Parallel()
	flag, dir := demonstration(t), t.TempDir()
	printed := must(t, "idmap", "export", flag)
	if !strings.HasPrefix(printed, "kind,number,id\nclient,1,cli_") || strings.Count(printed, "\n") < 20 {
		t.Fatalf("exported %.300s", printed)
	}
	for _, kind := range []string{"collection", "group", "policy", "report", "template"} {
		if !strings.Contains(printed, "\n"+kind+",") {
			t.Errorf("%q is not exported", kind)
		}
	}
	if got := must(t, "idmap", "export", flag, "-"); got != printed {
		t.Errorf("with - it is %.300s", got)
	}

	path := filepath.Join(dir, "numbers.csv")
	said := must(t, "idmap", "export", flag, path)
	written, err := os.ReadFile(path)
	if err != nil || string(written) != printed || !strings.HasPrefix(said, path+": ") {
		t.Errorf("the file, of which it says %q, has %.300s, %v", said, written, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
	if got := must(t, "idmap", "import", flag, path); !strings.Contains(got, ": moved 0 objects to their numbers, ") {
		t.Errorf("import: %s", got)
	}

	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"idmap", "import", flag, "-"}, strings.NewReader(printed), &out, &errs); code != 0 || !strings.Contains(out.String(), ": moved 0 objects") {
		t.Errorf("exit %d, %s%s", code, &out, &errs)
	}
	refused(t, 1, []string{"idmap", "export", flag, filepath.Join(dir, "nowhere", "numbers.csv")}, "nowhere")
}
