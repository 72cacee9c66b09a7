package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestTables: every operation that is declared is in one of the tables, once.
func TestTables(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			switch value := v.Values[0].(type) {
			case *ast.CallExpr:
				if isDeclaration(value) {
					declared = append(declared, v.Names[0].Name)
				}
			case *ast.CompositeLit:
				if strings.HasSuffix(v.Names[0].Name, "Operations") {
					for _, element := range value.Elts {
						listed = append(listed, element.(*ast.Ident).Name)
					}
				}
			}
			return true
		})
	}
	slices.Sort(declared)
	slices.Sort(listed)
	for _, name := range declared {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is declared, but in no table (operations.go)", name)
		}
	}
	if len(slices.Compact(slices.Clone(listed))) != len(listed) || len(declared) < len(api.Operations) {
		t.Errorf("%d operations are declared, and in the tables are %v", len(declared), listed)
	}
}

// isDeclaration reports whether a call is op.Declare, or one like it.
func isDeclaration(call *ast.CallExpr) bool {
	generic, ok := call.Fun.(*ast.IndexListExpr)
	if !ok {
		return false
	}
	of, ok := generic.X.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(of.Sel.Name, "Declare")
}

// TestIDs: no two operations have one id, or one method and path, and those that read need no
// key that may write.
func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range api.Operations {
		m := o.Meta()
		for _, text := range []string{m.ID, m.Method + " " + m.Path} {
			if seen[text] {
				t.Errorf("two operations are %s", text)
			}
			seen[text] = true
		}
		if (m.Method == "GET") == (m.Scope == domain.Write) {
			t.Errorf("%s needs the scope %s", m.ID, m.Scope)
		}
	}
}
