package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"go.yaml.in/yaml/v3"
)

// TestVoice applies the rules in tools/vale/styles to the English that Vale does not read: string literals and struct
// tags of the program, and its English templates. docs/schema.md, which Vale reads, has the comments of the database.
//
// tools/vale/exceptions.txt lists what is allowed, a pattern of findings on each line, for Vale too (make vale).
func TestVoice(t *testing.T) {
	t.Parallel()
	rules := voiceRules(t)
	exceptions := voiceExceptions(t)
	read := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if entry.IsDir() {
			if path != ".." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"tools", "testdata", "node_modules"}, entry.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		for _, piece := range proseOf(t, path) {
			read++
			for _, rule := range rules {
				for _, found := range rule.in(t, piece.text) {
					finding := fmt.Sprintf("%s:%d: write %q for %q", name, piece.line+strings.Count(piece.text[:found.at], "\n"), rule.instead, found.text)
					if !slices.ContainsFunc(exceptions, func(e *regexp.Regexp) bool { return e.MatchString(finding) }) {
						t.Error(finding)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 5000 {
		t.Errorf("got %d pieces of text, want at least 5000", read)
	}
}

// A piece is text that people read, and the line of its file on which it begins.
type piece struct {
	text string
	line int
}

// proseOf returns the string literals of a Go file that is no test, or the whole of an English template.
func proseOf(t *testing.T, path string) []piece {
	t.Helper()
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, "_test.go"):
		return nil
	case strings.HasSuffix(base, ".go"):
		return literals(t, path)
	case strings.HasSuffix(base, ".tmpl") && !strings.HasPrefix(base, "es.") && !strings.HasPrefix(base, "fr-ca."):
		return []piece{{text: read(t, path), line: 1}}
	}
	return nil
}

// literals returns the string literals of a Go file, tags of fields among them.
func literals(t *testing.T, path string) []piece {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var pieces []piece
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, piece{text: text, line: files.Position(literal.Pos()).Line})
		}
		return true
	})
	return pieces
}

// A voiceRule is a pattern of words that are not to be used, and what to write instead.
type voiceRule struct {
	pattern *regexp2.Regexp
	instead string
}

type voiceMatch struct {
	text string
	at   int
}

// in returns what the rule finds in text.
func (r voiceRule) in(t *testing.T, text string) []voiceMatch {
	t.Helper()
	var found []voiceMatch
	match, err := r.pattern.FindStringMatch(text)
	for ; match != nil && err == nil; match, err = r.pattern.FindNextMatch(match) {
		at, _ := match.ByteRange()
		found = append(found, voiceMatch{text: match.String(), at: at})
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// voiceRules reads the rules of Vale.
func voiceRules(t *testing.T) []voiceRule {
	t.Helper()
	files, err := filepath.Glob("../tools/vale/styles/Voice/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	var rules []voiceRule
	for _, file := range files {
		var style struct{ Swap map[string]string }
		if err := yaml.Unmarshal([]byte(read(t, file)), &style); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for pattern, instead := range style.Swap {
			rules = append(rules, voiceRule{pattern: regexp2.MustCompile(pattern, regexp2.None), instead: instead})
		}
	}
	return rules
}

// voiceExceptions reads the patterns of the findings that are allowed.
func voiceExceptions(t *testing.T) []*regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("../tools/vale/exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var exceptions []*regexp.Regexp
	for line := range strings.Lines(string(text)) {
		exceptions = append(exceptions, regexp.MustCompile(strings.TrimSuffix(line, "\n")))
	}
	return exceptions
}
