// Package docs_test holds the code to what the documents say of it.
package docs_test

import (
	"errors"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "partnerapi"

// libraries are those that rules name in short.
var libraries = map[string]string{"gin": "github.com/gin-gonic/gin", "bun": "github.com/uptrace/bun"}

// rules are the import rules of architecture.md.
type rules struct {
	allowed    map[string][]string // of a package, by its path; "" for everything
	importers  map[string][]string // who alone imports a package or library
	ofDomain   []string            // the libraries of domain
	statements int
}

var (
	quoted  = regexp.MustCompile("`([^`]+)`")
	comment = regexp.MustCompile(`\s*<!--.*?-->`)
	alone   = regexp.MustCompile(`^(?:but )?(.+?) (?:is|are) imported by (.+) alone`)
	outside = regexp.MustCompile(`golang\.org/[a-z/]+`)
)

// readRules reads the rules: a list item each.
func readRules(t *testing.T) rules {
	t.Helper()
	_, after, ok := strings.Cut(read(t, "architecture.md"), "## Import rules\n")
	text, _, ended := strings.Cut(after, "\n## ")
	if !ok || !ended {
		t.Fatal("architecture.md has no import rules")
	}
	r := rules{allowed: map[string][]string{}, importers: map[string][]string{}}
	for line := range strings.Lines(text) {
		item, ok := strings.CutPrefix(comment.ReplaceAllString(line, ""), "- ")
		if !ok {
			continue
		}
		r.statements++
		for part := range strings.SplitSeq(item, "; ") {
			r.add(t, part)
		}
	}
	return r
}

func (r *rules) add(t *testing.T, part string) {
	t.Helper()
	if found := alone.FindStringSubmatch(part); found != nil {
		names := namesOf(found[1])
		if library := libraries[found[1]]; library != "" {
			names = []string{library}
		}
		for _, name := range names {
			r.importers[name] = namesOf(found[2])
		}
		return
	}
	of, what, ok := strings.Cut(part, ":")
	switch {
	case strings.HasPrefix(part, "of libraries, "):
		r.ofDomain = outside.FindAllString(part, -1)
	case !ok:
		t.Errorf("the rule %q is not understood", part)
	default:
		for _, name := range namesOf(of) {
			r.allowed[name] = namesOf(what)
			if strings.TrimRight(strings.TrimSpace(what), ".") == "everything" {
				r.allowed[name] = []string{""}
			}
		}
	}
}

func namesOf(text string) (names []string) {
	for _, found := range quoted.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// within reports whether a package is one of the folders, or below one.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
	})
}

// packages returns the project's packages by their path below the module. They
// are read from the files, of every operating system and build tag: the test
// cache takes note of files and folders that a test opens, not of those that a
// go list run by it does.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	reading := build.Default
	reading.UseAllFiles = true
	all := map[string]*build.Package{}

	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir() || path == "..":
			return err
		case notPackages(path, entry.Name()):
			return fs.SkipDir
		}
		p, err := reading.ImportDir(path, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		if len(p.GoFiles) > 0 {
			all[strings.TrimPrefix(filepath.ToSlash(path), "../")] = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// notPackages reports whether a folder is one that the go command passes over, one
// that make builds or runs in, or the modules of the tools.
func notPackages(path, name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" ||
		path == filepath.Join("..", "bin") || path == filepath.Join("..", "data") ||
		path == filepath.Join("..", "tools")
}

// ruleFor returns what a package may import of the project.
func (r *rules) ruleFor(path string) ([]string, bool) {
	for ; path != "."; path = filepath.ToSlash(filepath.Dir(path)) {
		if allowed, ok := r.allowed[path]; ok {
			return allowed, true
		}
	}
	return nil, false
}

// TestImports holds the imports of every package to the rules of architecture.md.
func TestImports(t *testing.T) {
	r, all := readRules(t), packages(t)
	if r.statements < 8 || r.statements > 12 {
		t.Errorf("%d rules", r.statements)
	}
	for path, p := range all {
		if strings.HasSuffix(path, "test") {
			continue // exists for tests
		}
		for _, imported := range p.Imports {
			if problem := r.forbidden(path, imported); problem != "" {
				t.Errorf("%s imports %s: %s", path, imported, problem)
			}
		}
	}
	for name := range r.named() {
		exists := func(path string) bool { return within(path, []string{name}) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), exists) {
			t.Errorf("a rule names %s, which is not there", name)
		}
	}
}

// forbidden says why a package must not import another; "" where it may.
func (r *rules) forbidden(path, imported string) string {
	own, project := strings.CutPrefix(imported, module+"/")
	for name, importers := range r.importers {
		if within(strings.TrimPrefix(imported, module+"/"), []string{name}) && !within(path, importers) {
			return "that is imported by " + strings.Join(importers, ", ") + " alone"
		}
	}
	if !project {
		if path == "domain" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") && !within(imported, r.ofDomain) {
			return "of libraries, domain has " + strings.Join(r.ofDomain, " and ")
		}
		return ""
	}
	allowed, ok := r.ruleFor(path)
	switch {
	case !ok:
		return "no rule of architecture.md is for " + path
	case !within(own, append([]string{path}, allowed...)):
		return "the rules let it import of the project " + strings.Join(allowed, ", ")
	}
	return ""
}

// named returns the packages that rules name.
func (r *rules) named() map[string]bool {
	named := map[string]bool{}
	for _, lists := range []map[string][]string{r.allowed, r.importers} {
		for name, others := range lists {
			for _, name := range append([]string{name}, others...) {
				named[name] = name != "" && !strings.Contains(name, ".")
			}
		}
	}
	maps.DeleteFunc(named, func(_ string, own bool) bool { return !own })
	return named
}

// TestPackageComments: every package says what it is.
func TestPackageComments(t *testing.T) {
	for path, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", path)
		}
	}
}

// beside are the ways to a database past the gate of db/pg, which shares the
// connections fairly and bounds them.
var beside = regexp.MustCompile(`\.SQL\(\)|\.Pool\(\)|pgx/v5/(pgxpool|stdlib)"|pgx\.Connect|sql\.Open\(`)

// mayPassTheGate are the files that may use them, and why. Packages for tests are free.
var mayPassTheGate = map[string]string{
	"db/migrate/migrate.go":           "goose speaks database/sql",
	"cmd/internal/doctor/database.go": "reads the address",
	"cmd/internal/database/denied.go": "reads the name of the role",
}

// TestGate: nothing reaches the pool of connections beside its gate, but for what is
// explained.
func TestGate(t *testing.T) {
	t.Parallel()
	passes := map[string]bool{}
	for folder, p := range packages(t) {
		if folder == "db/pg" || strings.Contains(folder, "test") {
			continue
		}
		for _, name := range p.GoFiles {
			if found := beside.FindString(read(t, filepath.Join("..", folder, name))); found != "" {
				file := folder + "/" + name
				passes[file] = true
				if mayPassTheGate[file] == "" {
					t.Errorf("%s passes the gate by, with %s", file, found)
				}
			}
		}
	}
	for file := range mayPassTheGate {
		if _, err := os.Stat(filepath.Join("..", file)); err != nil {
			continue // it goes with version 1
		}
		if !passes[file] {
			t.Errorf("%s need not be excepted", file)
		}
	}
}
