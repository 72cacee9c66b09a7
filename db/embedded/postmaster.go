package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

const (
	// tick is how often the state of a server that starts or stops is looked at.
	tick = 20 * time.Millisecond
	// fastStop is how long a fast shutdown may take before the server is made
	// to drop everything at once and to recover at its next start.
	fastStop = 30 * time.Second
)

// postmaster is a server's main process, as its postmaster.pid says.
type postmaster struct {
	pid  int
	port int // 0 until the server has written it
}

func (d folder) pidFile() string { return filepath.Join(d.data(), "postmaster.pid") }

// postmaster reads what the folder says of its server, and whether that one
// lives. A file that is not there, or half-written, says pid 0.
func (d folder) postmaster() (p postmaster, alive bool, err error) {
	text, err := os.ReadFile(d.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	lines := strings.Split(string(text), "\n")
	if p.pid, err = strconv.Atoi(strings.TrimSpace(lines[0])); err != nil || p.pid <= 0 {
		return postmaster{}, false, nil
	}
	if len(lines) > 3 {
		p.port, _ = strconv.Atoi(strings.TrimSpace(lines[3])) // 0 while it is half-written
	}
	return p, serves(p.pid, d.data()), nil
}

// forgetStale removes the postmaster.pid of a killed server if its process id now
// belongs to another process: PostgreSQL would take that one for the server and refuse
// to start. A free process id is left to PostgreSQL, which also looks for living
// children of the dead server.
func (d folder) forgetStale() error {
	p, alive, err := d.postmaster()
	if err != nil || alive || p.pid == 0 {
		return err
	}
	reap(p.pid) // a killed child of this process keeps its number until then
	if errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) {
		return nil
	}
	return os.Remove(d.pidFile())
}

// join waits for the running server of the folder to accept connections. It returns
// false if none runs, or the one that ran has ended.
func (s *Server) join(ctx context.Context) (bool, error) {
	password, err := os.ReadFile(s.dir.password())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for {
		p, alive, err := s.dir.postmaster()
		if err != nil || !alive {
			return false, err
		}
		accepts, err := probe(ctx, string(password), p.port)
		if err != nil {
			return false, err
		}
		if accepts {
			return true, s.use(p, string(password))
		}
		if err := domain.Pause(ctx, tick); err != nil {
			return false, fmt.Errorf("wait for the running server (process %d, log %s): %w", p.pid, s.dir.log(), err)
		}
	}
}

// stop ends the server of the folder, if one runs, and waits for its end.
func (d folder) stop() error {
	p, alive, err := d.postmaster()
	if err != nil || !alive {
		return err
	}
	how, patience := syscall.SIGINT, time.Now().Add(fastStop)
	for {
		if err := syscall.Kill(p.pid, how); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d: %w", p.pid, err)
		}
		for time.Now().Before(patience) {
			if reap(p.pid) || !serves(p.pid, d.data()) {
				return nil
			}
			if err := domain.Pause(context.Background(), tick); err != nil {
				return err
			}
		}
		if how == syscall.SIGQUIT {
			return fmt.Errorf("process %d does not end", p.pid)
		}
		how, patience = syscall.SIGQUIT, time.Now().Add(fastStop)
	}
}

// reap reports whether a child of this process has ended, and releases its process id.
// It is false for a process that another one started.
func reap(pid int) bool {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return err == nil && got == pid
}

// probe reports whether the server accepts connections: false while it starts, recovers
// or shuts down. An error is permanent.
func probe(ctx context.Context, password string, port int) (bool, error) {
	if port == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, address(name, password, port, "postgres"))
	if err == nil {
		return true, conn.Close(ctx)
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code == "57P03" { // cannot_connect_now
		return false, nil
	}
	if refused.Code == "53300" { // too_many_connections
		return true, nil
	}
	return false, fmt.Errorf("connect to port %d: %w", port, err)
}
