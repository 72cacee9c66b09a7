package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneClock: leases and due times go by the database's clock (DB.Now, or now() in a
// statement). The packages that write them ask the machine for no time.
func TestOneClock(t *testing.T) {
	measures := map[string]bool{"doctor/server.go": false} // how far the two clocks differ
	for _, pattern := range []string{"*.go", "outbox/*.go", "reports/*.go", "doctor/*.go", "migrate/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, machine := range []string{"time.Now(", "time.Since(", "time.Until(", "SystemClock"} {
				if !strings.Contains(string(text), machine) {
					continue
				}
				if _, excepted := measures[filepath.ToSlash(file)]; !excepted {
					t.Errorf("%s has %s", file, machine)
					continue
				}
				measures[filepath.ToSlash(file)] = true
			}
		}
	}
	for file, used := range measures {
		if !used {
			t.Errorf("%s need not be excepted", file)
		}
	}
}
