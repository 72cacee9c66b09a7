//go:build slow

package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOldFolderIsGivenToTheRole(t *testing.T) {
	dir := old(t)
	s := begin(t, Config{Dir: dir})
	owned(t, s)
	reachesNothing(t, s)
	end(t, s)
	if got := query(t, begin(t, Config{Dir: dir}).URL(), "SELECT v FROM kept ORDER BY id LIMIT 1"); got != "row" {
		t.Errorf("read %q", got)
	}
}

// What the superuser restored, and a password that was lost, are put right by the
// next process, while the server runs.
func TestForeignObjectsOfARunningServer(t *testing.T) {
	dir := old(t)
	first := begin(t, Config{Dir: dir})
	query(t, first.AdminURL(), "ALTER TABLE kept OWNER TO partnerapi", "CREATE TABLE restored (v text)")
	if err := os.Remove(folder(dir).rolePasswordFile()); err != nil {
		t.Fatal(err)
	}
	second := begin(t, Config{Dir: dir})
	owned(t, second)
	if first.PID() != second.PID() {
		t.Error("another server was started")
	}
}

func TestOtherMajorIsRefused(t *testing.T) {
	needPrograms(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "pgdata", "PG_VERSION")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), config(Config{Dir: dir}))
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL 9 created the data, but the binaries found are of version ") {
		t.Fatalf("error %v", err)
	}
	s := begin(t, Config{Dir: dir, Disposable: true})
	if got := query(t, s.URL(), "select 'new'"); got != "new" {
		t.Errorf("read %q", got)
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	needPrograms(t)
	_, err := Start(t.Context(), config(Config{Dir: t.TempDir(), Settings: map[string]string{"shared_buffers": "much"}}))
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("error %v", err)
	}
}
