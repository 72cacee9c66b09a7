package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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
		inSample := false
		for i, line := range strings.Split(read(t, name), "\n") {
			if strings.HasPrefix(line, "```") {
				inSample = !inSample
			} else if width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); inSample && width > most {
				t.Errorf("%s:%d: %d characters: %s", name, i+1, width, line)
			}
		}
	}
}

var (
	citation = regexp.MustCompile(`decisions (\d+(?:\.\d+)*(?:(?:, | to | and )\d+(?:\.\d+)*)*)`)
	separate = regexp.MustCompile(`, | to | and `)
	section  = regexp.MustCompile(`^###? (\d+(?:\.\d+)?)\.? `)
	item     = regexp.MustCompile(`^(\d+)\. `)
)

// TestDecisionsCited: the sections and items of decisions.md that the code cites are there.
func TestDecisionsCited(t *testing.T) {
	t.Parallel()
	known, current := map[string]bool{}, ""
	for line := range strings.Lines(read(t, "decisions.md")) {
		if match := section.FindStringSubmatch(line); match != nil {
			current = match[1]
			known[current] = true
		} else if match := item.FindStringSubmatch(line); match != nil {
			known[current+"."+match[1]] = true
		}
	}
	cited := 0
	for folder, p := range packages(t) {
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			file := filepath.Join("..", folder, name)
			for _, match := range citation.FindAllStringSubmatch(read(t, file), -1) {
				for _, number := range separate.Split(match[1], -1) {
					cited++
					if !known[number] {
						t.Errorf("%s cites decisions %s, which is not there", file, number)
					}
				}
			}
		}
	}
	if cited < 100 {
		t.Errorf("only %d citations were found", cited)
	}
}

// ofV1 begins the paths that go with version 1.
var ofV1 = regexp.MustCompile("^(v1compat|idmap)")

// TestGlossary: the terms of CONTRIBUTING.md are in order, and what the last column names
// is there: packages, and the files and declarations of the package before them.
func TestGlossary(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(read(t, "../CONTRIBUTING.md"), "| Term | Here | Where |\n|---|---|---|\n")
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
		if declared.MatchString(read(t, file)) {
			return true
		}
	}
	return false
}
