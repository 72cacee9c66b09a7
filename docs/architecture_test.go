// Package docs_test holds the code to what the documents say of it.
package docs_test

import (
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// room is a row of the import table.
type room struct {
	project    []string // packages of the project; everything where it is nil
	libraries  []string
	noLibrary  bool
	everything bool
}

// restricted are the libraries that only some rooms may import.
var restricted = map[string]string{"gin": "github.com/gin-gonic/gin", "bun": "github.com/uptrace/bun"}

const module = "partnerapi"

var quoted = regexp.MustCompile("`([^`]+)`")

// readTable reads the import table of architecture.md.
func readTable(t *testing.T) map[string]room {
	t.Helper()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "| package | may import of the project | may import |\n")
	if !ok {
		t.Fatal("architecture.md has no import table")
	}
	rooms := map[string]room{}
	for line := range strings.Lines(after) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		name := quoted.FindStringSubmatch(cells[1])
		if name == nil {
			continue
		}
		r := room{
			everything: strings.TrimSpace(cells[2]) == "everything",
			noLibrary:  strings.Contains(cells[3], "nothing but the standard library"),
			libraries:  strings.Fields(cells[3]),
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			r.project = append(r.project, m[1])
		}
		rooms[name[1]] = r
	}
	return rooms
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

// roomOf finds the row for a package: its own, or that of the nearest folder
// above it.
func roomOf(rooms map[string]room, path string) (string, bool) {
	for path != "" {
		if _, ok := rooms[path]; ok {
			return path, true
		}
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return "", false
}

func TestImports(t *testing.T) {
	rooms := readTable(t)
	checked := 0
	for path, p := range packages(t) {
		name, ok := roomOf(rooms, path)
		switch {
		case strings.HasSuffix(path, "test"):
			continue // exists for tests
		case !ok:
			t.Errorf("%s is not in the import table of docs/architecture.md", path)
			continue
		}
		checked++
		for _, imported := range p.Imports {
			if problem := forbidden(rooms, name, path, imported); problem != "" {
				t.Errorf("%s imports %s: %s", path, imported, problem)
			}
		}
	}
	if checked < len(rooms)/2 {
		t.Errorf("only %d packages were checked", checked)
	}
}

// forbidden says why a package must not import another; "" where it may.
func forbidden(rooms map[string]room, name, path, imported string) string {
	r := rooms[name]
	own, project := strings.CutPrefix(imported, module+"/")
	if project {
		target, _ := roomOf(rooms, own)
		if r.everything || target == name || strings.HasPrefix(own, path+"/") || slices.ContainsFunc(r.project, func(allowed string) bool {
			return target == allowed || strings.HasPrefix(own, allowed+"/") && len(target) < len(allowed)
		}) {
			return ""
		}
		return "the table does not let " + name + " import " + own
	}
	named := slices.ContainsFunc(r.libraries, func(library string) bool { return strings.HasPrefix(imported, library) })
	if r.noLibrary && !named && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return name + " has the standard library only, and what the table names"
	}
	for short, library := range restricted {
		if strings.HasPrefix(imported, library) && !slices.Contains(r.libraries, short) {
			return "only the rooms that the table names may import " + short
		}
	}
	return ""
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
	"cmd/internal/v1cmd/extension.go": "the registry's migrations speak database/sql",
	"cmd/internal/v1cmd/ids.go":       "imports and exports in a process of its own, on one connection",
	"cmd/internal/doctor/database.go": "reads the address",
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
			text, err := os.ReadFile(filepath.Join("..", folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if found := beside.Find(text); found != nil {
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
