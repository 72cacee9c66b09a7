package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// needRoot skips where the test runs as an ordinary user, who needs none of
// this.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as somebody else")
	}
}

// Root starts a server in every kind of folder: its own closed one, and one
// that is closed to all but its owner.
func TestAsRootBelowAClosedFolder(t *testing.T) {
	needRoot(t)
	nobody, group, err := lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		uid, gid int
	}{{"root's", 0, 0}, {"an ordinary user's", nobody, group}} {
		t.Run(test.name, func(t *testing.T) {
			open := t.TempDir()
			if err := os.Chmod(filepath.Dir(open), 0o755); err != nil { // made for this test too
				t.Fatal(err)
			}
			home := filepath.Join(open, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(home, test.uid, test.gid); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(home, "data")
			s := begin(t, Config{Dir: dir})
			query(t, s.URL(), "create table kept (v text)", "insert into kept values ('committed')")
			if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			again := begin(t, Config{Dir: dir})
			if got := query(t, again.URL(), "select v from kept"); got != "committed" {
				t.Errorf("read %q", got)
			}
			if uid, _, err := fileOwner(filepath.Join(dir, "pgdata")); err != nil || uid != test.uid {
				t.Errorf("the data are owned by %d, %v; want %d", uid, err, test.uid)
			}
		})
	}
}

func TestAsRootWithoutAnybodyWhoCan(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "data")
	_, err := chooseIdentity(binaries{dir: t.TempDir()}, dir)
	if err == nil || !strings.Contains(err.Error(), "refuses to run as root") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}
