package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// filesRead are the flags and arguments that name files which commands read, and the
// folder that is the database's.
var filesRead = []string{
	"branding set logo", "data-dir", "to-key", "report-font", "webhook-ca", "forward-ca", "secret-file", "credentials-file", "breaches import file", "import file", "ingest file",
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
	writeFile(t, path("bad lines"), "nonsense\n")
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
		writeFile(t, path(name), "")
		if err := os.Chmod(path(name), 0o666); err != nil { // whatever the mask is
			t.Fatal(err)
		}
		r := command(t, append(args, flag)...)
		if info, err := os.Stat(path(name)); err != nil || info.Mode() != 0o600 || info.Size() == 0 {
			t.Errorf("%s is %v: %v; exit %d, %s", name, info, err, r.code, r.err)
		}
	}
}

// TestOneWay: what commands do in one way stands in the files that do it, and in no other.
func TestOneWay(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		// Files: by output.NewFile. doctor tries a folder by an empty one, which it deletes.
		`\bos\.CreateTemp\(`:                        {"../internal/doctor/checks.go", "../internal/output/files.go"},
		`\bos\.(Create|OpenFile|WriteFile|Chmod)\(`: nil,
		// Tables: by output.NewTable.
		`"text/tabwriter"`: nil,
		// Requests: by the package client.
		`\bhttp\.(Client\{|DefaultClient\b|Get\(|Post\()`: nil,
	} {
		var got []string
		for name, text := range sources(t) {
			if regexp.MustCompile(pattern).MatchString(text) {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is in %q, not in %q", pattern, got, want)
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
