package db_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writesChangeTime matches SQL that writes a change time.
var writesChangeTime = regexp.MustCompile(`\b(updated_at|changed_at)\s*=[^=]|INSERT INTO[^)]*\b(updated_at|changed_at)\b|INSERT INTO audit_entries`)

// otherClock are the functions whose time is not one of a list: SwitchMail's table has none, and QueueMonthlyReports
// reads the clock for the month.
var otherClock = []string{"SwitchMail", "QueueMonthlyReports"}

// TestChangeTimesAreStamps verifies that no function with SQL that writes a change time reads the clock: the time must
// be the stamp of the transaction (Change.At, Stamped), or the horizon of lists would pass it.
func TestChangeTimesAreStamps(t *testing.T) {
	t.Parallel()
	checked := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "seed" || name == "dbtest" || name == "move" || name == "testdata" { // no callers poll meanwhile
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				writes, reads := changeTimes(f)
				if writes {
					checked++
				}
				if writes && reads && !slices.Contains(otherClock, f.Name.Name) {
					t.Errorf("%s: %s writes a change time and reads the clock", path, f.Name.Name)
				}
			}
		}
		return nil
	})
	if err != nil || checked < 30 {
		t.Errorf("checked %d functions, %v", checked, err)
	}
}

// changeTimes reports whether a function has SQL that writes a change time, and whether it calls a method Now.
func changeTimes(f *ast.FuncDecl) (writes, reads bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			writes = writes || n.Kind == token.STRING && writesChangeTime.MatchString(n.Value)
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Now" && len(n.Args) == 0 {
				reads = true
			}
		}
		return true
	})
	return writes, reads
}
