package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestEnvironmentFile verifies that a file of variables is read as systemd reads it.
func TestEnvironmentFile(t *testing.T) {
	t.Parallel()
	got := environmentFile([]byte(`# a comment
; another one
PARTNERAPI_A=plain
 PARTNERAPI_B = with spaces around 
PARTNERAPI_C="in \"double\" \\ quotes \n"
PARTNERAPI_D='in single \ quotes'
PARTNERAPI_E=a\ b\"c
PARTNERAPI_F=on two \
lines
PARTNERAPI_G=
PARTNERAPI_H=postgres:///x?host=/run&a=b#c
no variable
PARTNERAPI_A=again
PARTNERAPI_I="
`))
	want := [][2]string{
		{"PARTNERAPI_B", "with spaces around"}, {"PARTNERAPI_C", `in "double" \ quotes \n`}, {"PARTNERAPI_D", `in single \ quotes`},
		{"PARTNERAPI_E", `a b"c`}, {"PARTNERAPI_F", "on two lines"}, {"PARTNERAPI_G", ""}, {"PARTNERAPI_H", "postgres:///x?host=/run&a=b#c"},
		{"PARTNERAPI_A", "again"}, {"PARTNERAPI_I", `"`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInstalledSettings verifies which commands take the settings of an installation, that the environment goes before
// them, and that nothing of them is used once a database is chosen. It is not parallel: it sets variables.
func TestInstalledSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "partnerapi.env")
	writeFile(t, file, "PARTNERAPI_DATABASE_URL=postgres:///file\nPARTNERAPI_RELEASE=2.1\nPARTNERAPI_SMTP_URL=smtp://file\n")
	at := installation{settings: file, data: "/data"}
	for _, c := range []struct {
		line, set string // set is a variable of the environment
		adopted   bool
	}{
		{"keys list", "", true}, {"serve", "", true}, {"doctor --json", "", true}, {"health", "", true}, {"migrate", "PARTNERAPI_RELEASE=2.2", true},
		{"import - --dry-run", "", true}, {"audit --since=1h", "PARTNERAPI_DEMO=", true},
		{"serve --demo", "", false}, {"keys list --database-url=postgres:///x", "", false}, {"keys list --data-dir x", "", false},
		{"serve", "PARTNERAPI_DATABASE_URL=postgres:///x", false}, {"serve", "PARTNERAPI_DATA_DIR=/x", false}, {"serve", "PARTNERAPI_DEMO=true", false},
		{"version", "", false}, {"--version", "", false}, {"", "", false}, {"help keys", "", false}, {"keys list --help", "", false},
		{"completion bash", "", false}, {"mcp --url http://127.0.0.1", "", false}, {"nonsense", "", false},
	} {
		for _, name := range []string{"DATABASE_URL", "DATA_DIR", "DEMO", "RELEASE", "SMTP_URL"} {
			t.Setenv("PARTNERAPI_"+name, "")
			if err := os.Unsetenv("PARTNERAPI_" + name); err != nil {
				t.Fatal(err)
			}
		}
		release := "2.1"
		if name, value, ok := strings.Cut(c.set, "="); ok {
			t.Setenv(name, value)
			if name == "PARTNERAPI_RELEASE" {
				release = value
			}
		}
		var said bytes.Buffer
		if err := at.adopt(strings.Fields(c.line), &said); err != nil {
			t.Fatal(err)
		}
		if adopted := os.Getenv("PARTNERAPI_SMTP_URL") != ""; adopted != c.adopted || strings.Contains(said.String(), file) != c.adopted {
			t.Errorf("%q with %q: adopted %v, want %v; it says %q", c.line, c.set, adopted, c.adopted, &said)
		}
		if c.adopted && (os.Getenv("PARTNERAPI_RELEASE") != release || os.Getenv("PARTNERAPI_DATA_DIR") != "/data") {
			t.Errorf("%q with %q: the release is %s, the data %s", c.line, c.set, os.Getenv("PARTNERAPI_RELEASE"), os.Getenv("PARTNERAPI_DATA_DIR"))
		}
	}

	var said bytes.Buffer
	at.settings = filepath.Join(dir, "none")
	if err := at.adopt([]string{"serve"}, &said); err != nil || said.Len() > 0 {
		t.Errorf("without the file: %v, %s", err, &said)
	}
}
