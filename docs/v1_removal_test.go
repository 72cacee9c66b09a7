package docs_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goMark ends a line of Go that make remove-v1 deletes. It is in two parts, so that it does not delete this line.
const goMark = "// v1" + "-line"

// TestRemovedLines verifies that make remove-v1 deletes the comment above a marked line, and no other comment.
func TestRemovedLines(t *testing.T) {
	t.Parallel()
	const source = `package keys // as documents say

// Key is a key.
type Key struct {
	// Name names it.
	Name string
	// Phase is the phase of v1.
	//
	// A new key is on.
	Phase string MARK
	Other int // of both
}

// phases are the phases.
var phases = []string{ MARK
	"on", MARK
} MARK

// A comment of nothing.

var list = []int{
	old, MARK
	1, // of both
	// The last.
}
`
	const want = `package keys // as documents say

// Key is a key.
type Key struct {
	// Name names it.
	Name  string
	Other int // of both
}

// A comment of nothing.

var list = []int{
	1, // of both
	// The last.
}
`
	if got := withoutMarked(t, strings.ReplaceAll(source, "MARK", goMark)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRemovedComments verifies that make remove-v1 leaves no file of Go with the doc comment of a deleted declaration.
func TestRemovedComments(t *testing.T) {
	t.Parallel()
	marked := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		source := read(t, path)
		if !strings.Contains(source, goMark+"\n") {
			return nil
		}
		marked++
		before, after := looseComments(t, source), looseComments(t, withoutMarked(t, source))
		for _, comment := range after {
			if !slices.Contains(before, comment) {
				t.Errorf("%s: the removal of version 1 leaves a comment without its declaration:\n%s", path, comment)
			}
		}
		return nil
	})
	if err != nil || marked < 5 {
		t.Errorf("read %d files with marked lines: %v", marked, err)
	}
}

// withoutMarked returns a file of Go as make remove-v1 leaves it.
func withoutMarked(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "source.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), "awk", "-f", "../tools/without_v1_go.awk", file).Output()
	if err == nil {
		text, err = format.Source(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// looseComments returns the comments of a file of Go that stand on lines of their own and document nothing.
func looseComments(t *testing.T, source string) (texts []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	documents := map[*ast.CommentGroup]bool{file.Doc: true}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			documents[n.Doc] = true
		case *ast.FuncDecl:
			documents[n.Doc] = true
		case *ast.ImportSpec:
			documents[n.Doc] = true
		case *ast.ValueSpec:
			documents[n.Doc] = true
		case *ast.TypeSpec:
			documents[n.Doc] = true
		case *ast.Field:
			documents[n.Doc] = true
		}
		return true
	})
	for _, comment := range file.Comments {
		line := source[:set.Position(comment.Pos()).Offset]
		line = line[strings.LastIndexByte(line, '\n')+1:]
		if !documents[comment] && strings.TrimSpace(line) == "" {
			texts = append(texts, comment.Text())
		}
	}
	return texts
}
