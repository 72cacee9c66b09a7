package dbtest

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db/embedded"
)

// Server is an embedded server for one test, which may kill it.
type Server struct {
	t   testing.TB
	cfg embedded.Config
	srv *embedded.Server
}

// Private starts an empty embedded server for this test alone, whatever server
// the other tests use; it is stopped at the test's end. What was committed
// survives Kill, as it would not a loss of power.
func Private(t testing.TB) *Server {
	t.Helper()
	NeedPrograms(t)
	s := &Server{t: t, cfg: embedded.Config{Dir: t.TempDir(), BinDir: binDir(), Settings: map[string]string{
		"fsync": "off", "shared_buffers": "32MB",
	}}}
	s.srv = s.start()
	t.Cleanup(func() {
		if err := s.srv.Stop(); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return s
}

// NeedPrograms skips a test of embedded servers on a machine without PostgreSQL's
// programs, where TEST_DATABASE_URL names a server for the other tests. Without
// that variable the test continues, and fails.
func NeedPrograms(t testing.TB) {
	t.Helper()
	if os.Getenv("TEST_DATABASE_URL") == "" {
		return
	}
	if _, err := embedded.Programs(binDir()); err != nil {
		t.Skipf("TEST_DATABASE_URL is set, and this test needs its own server: %v", err)
	}
}

// URL is the postgres:// address of the server's one database, which is empty
// at first. It outlasts Kill and Start, unless another program takes the port
// in between.
func (s *Server) URL() string { return s.srv.URL() }

// Kill ends the server at once, as kill -9 does, with all its processes: those
// that serve a connection would else answer for a moment longer.
func (s *Server) Kill() {
	s.t.Helper()
	backends, err := s.backends()
	if err != nil {
		s.t.Fatalf("dbtest: list the server's processes: %v", err)
	}
	if err := syscall.Kill(s.srv.PID(), syscall.SIGKILL); err != nil {
		s.t.Fatalf("dbtest: kill the server: %v", err)
	}
	for _, pid := range backends {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the server
	}
}

func (s *Server) backends() ([]int, error) {
	conn, err := pgx.Connect(s.t.Context(), s.URL())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(s.t.Context(), "SELECT pid FROM pg_stat_activity")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// Start starts a killed server anew, and returns when it has recovered.
func (s *Server) Start() {
	s.t.Helper()
	next := s.start()
	// The old use is given up second: it must not be the last one.
	err := s.srv.Stop()
	s.srv = next
	if err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
}

func (s *Server) start() *embedded.Server {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the server takes too long"))
	defer cancel()
	srv, err := embedded.Start(ctx, s.cfg)
	if err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	return srv
}
