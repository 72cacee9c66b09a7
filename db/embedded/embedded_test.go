package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fast are settings for tests that do not pull the plug of the machine.
var fast = map[string]string{"fsync": "off", "shared_buffers": "16MB"}

// config adds what the tests have in common.
func config(cfg Config) Config {
	if cfg.Settings == nil {
		cfg.Settings = fast
	}
	cfg.BinDir = os.Getenv("PARTNERAPI_POSTGRES_BIN")
	return cfg
}

// needPrograms skips a test on a machine without PostgreSQL's programs, where
// TEST_DATABASE_URL names a server for the tests that can use any.
func needPrograms(t *testing.T) {
	t.Helper()
	if os.Getenv("TEST_DATABASE_URL") == "" {
		return
	}
	if _, err := Programs(os.Getenv("PARTNERAPI_POSTGRES_BIN")); err != nil {
		t.Skip(err)
	}
}

func begin(t *testing.T, cfg Config) *Server {
	t.Helper()
	needPrograms(t)
	s, err := Start(t.Context(), config(cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, s) })
	return s
}

func end(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// query runs statements on a connection of their own, and returns the last one's first column.
func query(t *testing.T, url string, statements ...string) string {
	t.Helper()
	texts, err := queryColumn(t.Context(), url, statements...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(texts, " ")
}

func alive(t *testing.T, dir string) bool {
	t.Helper()
	_, alive, err := folder(dir).postmaster()
	if err != nil {
		t.Fatal(err)
	}
	return alive
}

func TestKeepsItsDataAndItsAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "and", strings.Repeat("long", 40)) // beyond a socket's 107 bytes
	var log bytes.Buffer
	first := begin(t, Config{Dir: dir, Log: &log})
	if got := query(t, first.URL(), "create table kept (v text)", "insert into kept values ('Zoë')", "select v from kept"); got != "Zoë" {
		t.Fatalf("read %q", got)
	}
	if got := query(t, first.URL(), "select current_setting('data_checksums') || current_setting('fsync') || current_database() || current_user"); got != "onoffpartnerapipartnerapi_app" {
		t.Errorf("settings %q", got)
	}
	if want := "creating a database in " + dir; !strings.HasPrefix(log.String(), want) {
		t.Errorf("logged %q, want %q", log.String(), want)
	}
	end(t, first)
	end(t, first)
	if alive(t, dir) {
		t.Fatal("it runs on after Stop")
	}
	log.Reset()
	second := begin(t, Config{Dir: dir, Log: &log})
	if got := query(t, second.URL(), "select v from kept"); got != "Zoë" || log.Len() != 0 {
		t.Errorf("after a restart: read %q, logged %q", got, log.String())
	}
	if second.URL() != first.URL() {
		t.Errorf("the address moved from %s to %s", first.URL(), second.URL())
	}
	info, err := os.Stat(folder(dir).passwordFile())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password's mode is %o", info.Mode().Perm())
	}
}

func TestCancelledStart(t *testing.T) {
	needPrograms(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if alive(t, dir) {
		t.Error("it runs")
	}
}

// program writes a script that prints a version, as postgres -V does.
func program(t *testing.T, root string, major int) string {
	t.Helper()
	dir := filepath.Join(root, strconv.Itoa(major), "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %d.1 (Somewhere)'\n", name, major)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	old, mid, young := program(t, root, 13), program(t, root, 15), program(t, root, 17)
	empty := filepath.Join(root, "empty")
	for _, test := range []struct {
		name    string
		binDir  string
		folders []string
		want    int
		dir     string
		err     string
	}{
		{name: "the first one", folders: []string{mid, young}, dir: mid},
		{name: "the one of the data", folders: []string{mid, young}, want: 17, dir: young},
		{name: "too old", folders: []string{old, young}, dir: young},
		{name: "broken", folders: []string{empty, young}, dir: young},
		{name: "the folder that is named", binDir: young, folders: []string{mid}, dir: young},
		{name: "the folder that is named, empty", binDir: empty, folders: []string{mid}, err: empty},
		{name: "only too old", folders: []string{old}, err: "PostgreSQL 14 or later is required, but the binaries found are of version 13"},
		{name: "none of the data's", folders: []string{mid, young}, want: 16, err: "install PostgreSQL 16"},
		{name: "none", err: "run `make postgres`"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := find(test.binDir, test.folders, test.want)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || got.dir != test.dir {
				t.Errorf("got %v, %v, want %s", got, err, test.dir)
			}
		})
	}
}

func TestPlacesFindFetchedBinaries(t *testing.T) {
	root := t.TempDir()
	dir := program(t, filepath.Join(root, ".postgres"), 17)
	if err := os.Rename(dir, filepath.Join(root, ".postgres", "bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "db", "embedded")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv("PATH", "")
	got := binaryFolders()
	if len(got) == 0 || got[len(got)-1] != filepath.Join(root, ".postgres", "bin") {
		t.Errorf("looked in %v", got)
	}
}
