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
	// tick is the polling interval while a server starts or stops.
	tick = 20 * time.Millisecond
	// fastStop is the time limit of a fast shutdown. After it follows an immediate shutdown, and the next start has to
	// recover.
	fastStop = 30 * time.Second
)

// postmaster is the main process of a server, as read from postmaster.pid.
type postmaster struct {
	pid  int
	port int // 0 until the server has written it
}

func (d folder) pidFile() string { return filepath.Join(d.data(), "postmaster.pid") }

// postmaster reads postmaster.pid, and reports whether its process is a running server of the folder. Without the file,
// or if it is incomplete, pid is 0.
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
		p.port, _ = strconv.Atoi(strings.TrimSpace(lines[3])) // 0 while the line is incomplete
	}
	return p, serves(p.pid, d.data()), nil
}

// forgetStale removes the postmaster.pid of a killed server if its process id now belongs to another process:
// PostgreSQL would take that process for the server and refuse to start. If no process has the id, the file stays:
// PostgreSQL handles it, and then also checks for running children of the killed server.
func (d folder) forgetStale() error {
	p, alive, err := d.postmaster()
	if err != nil || alive || p.pid == 0 {
		return err
	}
	reap(p.pid) // a killed child of this process keeps its process id until it is reaped
	if errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) {
		return nil
	}
	return os.Remove(d.pidFile())
}

// join waits until the running server of the folder accepts connections, sets s to it, and returns true. It returns
// false if no server runs, or if the server exits during the wait.
func (s *Server) join(ctx context.Context) (bool, error) {
	password, err := os.ReadFile(s.dir.passwordFile())
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
			return false, fmt.Errorf("wait for the running server (process %d, log %s): %w", p.pid, s.dir.logFile(), err)
		}
	}
}

// stop ends the server of the folder, if one runs, and waits until it has exited. It tries a fast shutdown (SIGINT),
// then an immediate one (SIGQUIT), each for fastStop.
func (d folder) stop() error {
	p, alive, err := d.postmaster()
	if err != nil || !alive {
		return err
	}
	signal, deadline := syscall.SIGINT, time.Now().Add(fastStop)
	for {
		if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d: %w", p.pid, err)
		}
		for time.Now().Before(deadline) {
			if reap(p.pid) || !serves(p.pid, d.data()) {
				return nil
			}
			if err := domain.Pause(context.Background(), tick); err != nil {
				return err
			}
		}
		if signal == syscall.SIGQUIT {
			return fmt.Errorf("process %d does not end", p.pid)
		}
		signal, deadline = syscall.SIGQUIT, time.Now().Add(fastStop)
	}
}

// reap reports whether the process is a child of this process and has exited. If so, it releases the process id.
func reap(pid int) bool {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return err == nil && got == pid
}

// probe reports whether the server accepts connections. It returns false while the server starts, recovers or shuts
// down, and true if all connections are in use. Trying again does not help after an error.
func probe(ctx context.Context, password string, port int) (bool, error) {
	if port == 0 { // the server has not written it yet
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, address(name, password, port, "postgres"))
	if err == nil {
		return true, conn.Close(ctx)
	}
	switch refusal, ok := errors.AsType[*pgconn.PgError](err); {
	case !ok || refusal.Code == "57P03": // no answer from PostgreSQL, or cannot_connect_now
		return false, nil
	case refusal.Code == "53300": // too_many_connections
		return true, nil
	}
	return false, fmt.Errorf("connect to port %d: %w", port, err)
}
