package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSampleWidth: samples of what the site shows, for partners and operators, fit their column, of 80 characters, so
// that a reader need not scroll them.
func TestSampleWidth(t *testing.T) {
	t.Parallel()
	const most = 80
	var names []string
	for _, pattern := range []string{
		"*/*.md", "migrating.md", "operating.md", "versions.md", "scale.md", "breaches.md", "flags.md", "metrics.md",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = slices.Concat(names, found)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		inSample := false
		for i, line := range strings.Split(string(source), "\n") {
			if strings.HasPrefix(line, "```") {
				inSample = !inSample
			} else if width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); inSample && width > most {
				t.Errorf("%s:%d: %d characters: %s", name, i+1, width, line)
			}
		}
	}
}
