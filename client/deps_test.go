package client_test

import (
	"go/build"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDependencies: a program that calls operations links the declarations, and nothing
// of the service. The imports are read from the files, of which the test cache takes note.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const module = "partnerapi/"
	own, others := map[string]bool{}, map[string]bool{}
	next := []string{"client", "v2/api"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if own[path] {
			continue
		}
		own[path] = true
		p, err := build.ImportDir(filepath.Join("..", filepath.FromSlash(path)), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range p.Imports {
			if of, ok := strings.CutPrefix(imported, module); ok {
				next = append(next, of)
			} else if strings.Contains(imported, ".") {
				others[imported] = true
			}
		}
	}
	for _, c := range []struct {
		of   string
		got  map[string]bool
		want []string
	}{
		{"the project", own, []string{"client", "domain", "domain/rule", "v2/api", "v2/op"}},
		{"others", others, []string{
			"github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext", "github.com/go-playground/validator/v10",
			"golang.org/x/net/http/httpguts", "golang.org/x/net/idna", "golang.org/x/text/cases",
			"golang.org/x/text/language", "golang.org/x/text/unicode/norm",
		}},
	} {
		if got := slices.Sorted(maps.Keys(c.got)); !slices.Equal(got, c.want) {
			t.Errorf("the client needs %v of %s, not %v", got, c.of, c.want)
		}
	}
}
