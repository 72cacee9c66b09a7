package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneClock: leases and due times go by the database's clock (DB.Now, or now() in a
// statement): neither this package nor that of jobs asks the machine for the time.
func TestOneClock(t *testing.T) {
	measures := "condition.go" // how far the two clocks differ
	var files []string
	for _, pattern := range []string{"*.go", "../job/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == measures {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, machine := range []string{"time.Now(", "time.Since(", "time.Until(", "SystemClock"} {
			if strings.Contains(string(text), machine) {
				t.Errorf("%s has %s", file, machine)
			}
		}
	}
}
