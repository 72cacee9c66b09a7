package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lockRow is a row of the table of ranks: its rank and constant, what changes, and the functions that lock it.
var lockRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `(\\w+)` \\| (.+) \\| (.+) \\|$")

// TestLockTable verifies that the table of ranks in adding.md has the constants of db.LockRank in their order, and names
// tables and functions that exist.
func TestLockTable(t *testing.T) {
	t.Parallel()
	constants, functions := declaredIn(t, "../db")
	schema := read(t, "schema.md")
	rows := lockRow.FindAllStringSubmatch(read(t, "adding.md"), -1)
	var listed []string
	for i, row := range rows {
		listed = append(listed, row[2])
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("%s: got rank %s, want %d", row[2], row[1], i+1)
		}
		for _, table := range spans.FindAllString(row[3], -1) {
			if !strings.Contains(schema, "\n### "+strings.Trim(table, "`")+"\n") {
				t.Errorf("%s: there is no table %s", row[2], table)
			}
		}
		for _, span := range spans.FindAllString(row[4], -1) {
			if name := strings.Trim(span, "`"); !strings.Contains(name, "/") && !functions[name] {
				t.Errorf("%s: there is no function %s below db", row[2], name)
			}
		}
	}
	if !slices.Equal(listed, constants) {
		t.Errorf("the table lists %v, and db.LockRank has %v", listed, constants)
	}
}

// declaredIn returns the constants of the type LockRank in their order, and the names of all functions of packages below a
// folder, those of methods with their type's.
func declaredIn(t *testing.T, folder string) (ranks []string, functions map[string]bool) {
	t.Helper()
	functions = map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				functions[methodOf(d)+d.Name.Name] = true
			case *ast.GenDecl:
				ranks = append(ranks, ranksIn(d)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ranks, functions
}

// methodOf returns the name of a method's type with a period; empty for a function and for a method of a generic type.
func methodOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// ranksIn returns the names of a declaration of constants whose first one is a LockRank; none of another declaration.
func ranksIn(d *ast.GenDecl) (names []string) {
	if d.Tok != token.CONST {
		return nil
	}
	if of, ok := d.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); !ok || of.Name != "LockRank" {
		return nil
	}
	for _, spec := range d.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			names = append(names, name.Name)
		}
	}
	return names
}
