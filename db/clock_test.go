package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var machineClock = regexp.MustCompile(`time\.(Now|Since|Until)\(|SystemClock`)

// TestOneClock: leases and due times go by the database's clock (DB.Now, or now() in a
// statement). The packages that write them ask the machine for no time, but for how far
// the two clocks differ.
func TestOneClock(t *testing.T) {
	var found []string
	for _, pattern := range []string{"*.go", "outbox/*.go", "reports/*.go", "doctor/*.go", "migrate/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if machineClock.Match(text) && !strings.HasSuffix(file, "_test.go") {
				found = append(found, filepath.ToSlash(file))
			}
		}
	}
	if !slices.Equal(found, []string{"doctor/server.go"}) {
		t.Errorf("the machine is asked for the time by %v", found)
	}
}
