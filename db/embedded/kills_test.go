//go:build slow

package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// restarted begins a server that commits a row, kills it, and begins one of the same folder, which must have the row. It
// returns both.
func restarted(t *testing.T, cfg Config) (first, second *Server) {
	t.Helper()
	first = begin(t, cfg)
	query(t, first.URL(), "create table kept (v text)", "insert into kept values ('committed')")
	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second = begin(t, Config{Dir: cfg.Dir})
	if got := query(t, second.URL(), "select v from kept"); got != "committed" {
		t.Errorf("read %q", got)
	}
	return first, second
}

func TestSurvivesItsKill(t *testing.T) {
	first, second := restarted(t, Config{Dir: t.TempDir(), Settings: map[string]string{"shared_buffers": "16MB"}})
	if first.PID() == second.PID() {
		t.Error("the killed server was joined")
	}
}

func TestNumberOfAKilledServerGivenAnew(t *testing.T) {
	dir := t.TempDir()
	end(t, begin(t, Config{Dir: dir}))
	stale := fmt.Sprintf("%d\n%s\n0\n1\n", os.Getpid(), folder(dir).data())
	if err := os.WriteFile(folder(dir).pidFile(), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, Config{Dir: dir})
	if s.PID() == os.Getpid() {
		t.Error("took this process for the server")
	}
}

func TestAKilledInitdbLeavesNothing(t *testing.T) {
	needPrograms(t)
	dir := t.TempDir()
	half := filepath.Join(dir, "initdb-1")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	begin(t, Config{Dir: dir})
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("%s: %v", half, err)
	}
}

// A start that is killed when part of the objects are changed is gone on with by the
// next one.
func TestSurvivesAKillAmongTheChanges(t *testing.T) {
	dir := old(t)
	s := &Server{dir: folder(dir)}
	if err := s.launch(t.Context(), config(Config{Dir: dir})); err != nil {
		t.Fatal(err)
	}
	reader, err := pgx.Connect(t.Context(), s.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.Background())
	for _, statement := range []string{"BEGIN", "LOCK TABLE parted IN ACCESS SHARE MODE"} {
		if _, err := reader.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- s.ensureDatabase(ctx) }()
	waits := "SELECT count(*)::text FROM pg_locks WHERE NOT granted AND relation = 'parted'::regclass"
	for query(t, s.admin, waits) == "0" {
		if err := domain.Pause(t.Context(), tick); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-stopped; err == nil {
		t.Fatalf("it was not cut short: %v", err)
	}
	owned(t, begin(t, Config{Dir: dir}))
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
			restarted(t, Config{Dir: dir})
			if uid, _, err := fileOwner(filepath.Join(dir, "pgdata")); err != nil || uid != test.uid {
				t.Errorf("the data are owned by %d, %v; want %d", uid, err, test.uid)
			}
		})
	}
}
