package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofV1 begins the paths that go with version 1.
var ofV1 = regexp.MustCompile("^(v1compat|idmap)")

// TestGlossary: the terms of CONTRIBUTING.md are in order, and what the last column names
// is there: packages, and the files and declarations of the package before them.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| Term | Here | Where |\n|---|---|---|\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no glossary")
	}
	last := ""
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		if cells[1] < last {
			t.Errorf("%q comes after %q", cells[1], last)
		}
		last = cells[1]
		dir := ""
		for _, name := range quoted.FindAllStringSubmatch(cells[3], -1) {
			switch info, err := os.Stat(filepath.Join("..", name[1])); {
			case err == nil && info.IsDir(), ofV1.MatchString(name[1]):
				dir = name[1]
			case !ofV1.MatchString(dir) && !holds(t, filepath.Join("..", dir), name[1]):
				t.Errorf("%s: %s has no %s", strings.TrimSpace(last), dir, name[1])
			}
		}
	}
	if last == "" {
		t.Error("the glossary has no terms")
	}
}

// holds reports whether a folder has a file of the name, or a declaration in its files.
func holds(t *testing.T, dir, name string) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )` + regexp.QuoteMeta(name) + `\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) {
			return true
		}
	}
	return false
}
