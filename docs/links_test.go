package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	blocks   = regexp.MustCompile("(?ms)^```.*?^```$")
	spans    = regexp.MustCompile("`[^`\n]+`")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// dashes stand for spaces; on the pages also for what GitHub keeps.
var dashes = strings.NewReplacer(" ", "-", "_", "-")

// TestLinks wants what documents link to in the repository to be there, headings too. It also
// runs where version 1 was removed.
func TestLinks(t *testing.T) {
	t.Parallel()
	found := 0
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text := spans.ReplaceAllString(blocks.ReplaceAllString(read(t, file), ""), "")
			for _, link := range links.FindAllStringSubmatch(text, -1) {
				if strings.Contains(link[1], ":") {
					continue // elsewhere
				}
				found++
				name, fragment, _ := strings.Cut(link[1], "#")
				target := file
				if name != "" {
					target = filepath.Join(filepath.Dir(file), name)
				}
				if _, err := os.Stat(target); err != nil || fragment != "" && !hasHeading(read(t, target), fragment) {
					t.Errorf("%s links to %s, which is not there", file, link[1])
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d links were found", found)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hasHeading reports whether a text has a heading that a fragment names.
func hasHeading(text, fragment string) bool {
	for _, heading := range headings.FindAllStringSubmatch(blocks.ReplaceAllString(text, ""), -1) {
		if dashes.Replace(unlinked.ReplaceAllString(strings.ToLower(heading[1]), "")) == dashes.Replace(fragment) {
			return true
		}
	}
	return false
}
