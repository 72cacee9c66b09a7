package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// filesRead are the flags and arguments that name files which commands read, and the
// folder that is the database's.
var filesRead = []string{
	"data-dir", "to-key", "report-font", "webhook-ca", "forward-ca", "secret-file", "credentials-file", "breaches import file", "import file", "ingest file",
	"templates import file", "catalogue import file", "idmap import file", "parity replay file",
}

// namesFile reports whether a flag or an argument is the name of a file.
func namesFile(v *kong.Value) bool {
	return v.Tag.Type == "path" || v.Tag.Type == "existingfile" || v.Name == "file" || v.Flag != nil && v.Flag.PlaceHolder == "FILE"
}

// TestWrittenFiles: only their owner can read the files that commands write, also those
// instead of files that others could read.
func TestWrittenFiles(t *testing.T) {
	t.Parallel()
	flag, dir := demonstration(t), t.TempDir()
	var client string
	if err := opened(t, flag).SQL().QueryRowContext(t.Context(), "SELECT id FROM clients LIMIT 1").Scan(&client); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, strings.ReplaceAll(name, " ", "-")) }
	if err := os.WriteFile(path("bad lines"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	writes := map[string][]string{
		"export file":      {"export", path("export file")},
		"export signals":   {"export", path("export file"), "--signals=" + path("export signals")},
		"import errors":    {"import", path("bad lines"), "--errors=" + path("import errors")}, // exits with 1
		"reports make out": {"reports", "make", client, "training_overview", "--out=" + path("reports make out")},
	}
	if older() {
		writes["idmap export file"] = []string{"idmap", "export", path("idmap export file")}
		writes["v1 status html"] = []string{"v1", "status", "--html=" + path("v1 status html")}
	}
	var found []string
	for name, command := range leaves(model(t).Node, "") {
		values := slices.Clone(command.Positional)
		for _, f := range command.Flags {
			values = append(values, f.Value)
		}
		for _, v := range values {
			full := name + " " + v.Name
			if namesFile(v) && !slices.Contains(filesRead, v.Name) && !slices.Contains(filesRead, full) {
				found = append(found, full)
			}
		}
	}
	slices.Sort(found)
	if named := slices.Sorted(maps.Keys(writes)); !slices.Equal(found, named) {
		t.Fatalf("the files %q are neither read nor tried here; these are: %q", found, named)
	}

	for name, args := range writes {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), 0o666); err != nil { // whatever the mask is
			t.Fatal(err)
		}
		r := command(t, append(args, flag)...)
		if info, err := os.Stat(path(name)); err != nil || info.Mode() != 0o600 || info.Size() == 0 {
			t.Errorf("%s is %v: %v; exit %d, %s", name, info, err, r.code, r.err)
		}
	}
}

// TestOneWayToWrite: output.NewFile is the one way in which commands make files.
func TestOneWayToWrite(t *testing.T) {
	t.Parallel()
	makes := map[string]bool{
		"../internal/output/files.go":  false, // output.NewFile
		"../internal/doctor/checks.go": false, // an empty file, which it deletes
	}
	for name, text := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := call.X.(*ast.Ident)
			if !ok || from.Name != "os" ||
				!slices.Contains([]string{"Create", "CreateTemp", "OpenFile", "WriteFile", "Chmod"}, call.Sel.Name) {
				return true
			}
			if _, excepted := makes[name]; excepted && call.Sel.Name == "CreateTemp" {
				makes[name] = true
			} else {
				t.Errorf("%s calls os.%s, not output.NewFile", name, call.Sel.Name)
			}
			return true
		})
	}
	for name, used := range makes {
		if !used {
			t.Errorf("%s need not be excepted", name)
		}
	}
}

// TestOneHTTPClient: commands call services by the package client.
func TestOneHTTPClient(t *testing.T) {
	t.Parallel()
	for name, text := range sources(t) {
		for _, own := range []string{"http.Client{", "http.DefaultClient", "http.Get(", "http.Post("} {
			if strings.Contains(text, own) {
				t.Errorf("%s uses %s, not the package client", name, own)
			}
		}
	}
}

// sources are the texts of the command's files and of those of its packages, by name,
// without tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.go", "../internal/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = string(text)
		}
	}
	return texts
}
