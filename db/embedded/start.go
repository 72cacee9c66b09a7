package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"partnerapi/domain"
)

const (
	// maxLog is the size, in bytes, from which a start sets the log aside.
	maxLog = 8 << 20
	// attempts bounds the starts when a port is snatched or the processes of a
	// killed server still hold its memory.
	attempts = 100
)

// start is one start of a server whose data are there.
type start struct {
	dir      folder
	bin      binaries
	as       identity
	settings map[string]string
	password string
	port     int // 0 for any
}

// errExited is a server that ended while it started.
var errExited = errors.New("the server did not start")

// transientFailures are the words that a failure worth another start leaves in the log.
var transientFailures = []string{"could not bind", "could not create any TCP/IP sockets", "shared memory block"}

// run starts the server and waits until it accepts connections. It starts the server again, up to attempts times in
// all, if it exits with a transient failure.
func (s start) run(ctx context.Context) (postmaster, error) {
	for try := 1; ; try++ {
		p, output, err := s.once(ctx, try)
		if err == nil {
			return p, nil
		}
		transient := slices.ContainsFunc(transientFailures, func(words string) bool { return strings.Contains(output, words) })
		if !errors.Is(err, errExited) || !transient || try == attempts {
			return postmaster{}, err
		}
		if err := domain.Pause(ctx, tick); err != nil {
			return postmaster{}, err
		}
	}
}

// once starts the server one time. said is what a failing one wrote to its log.
func (s start) once(ctx context.Context, try int) (p postmaster, said string, err error) {
	port, err := s.pickPort(try)
	if err != nil {
		return p, "", err
	}

	log, from, err := s.openLog()
	if err != nil {
		return p, "", err
	}
	defer log.Close()
	cmd := exec.Command(s.bin.path("postgres"), s.arguments(port)...)
	cmd.Dir, cmd.SysProcAttr = s.dir.data(), s.as.attr
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return p, "", err
	}

	pid := cmd.Process.Pid
	// It is to outlive this process: nothing waits for it but reap.
	if err := cmd.Process.Release(); err != nil {
		return p, "", err
	}
	p, err = s.await(ctx, pid)
	switch {
	case errors.Is(err, errExited):
		written, _ := io.ReadAll(io.NewSectionReader(log, from, maxLog)) // what can't be read isn't shown
		said = string(bytes.TrimSpace(written))
		return p, said, fmt.Errorf("%w (log: %s):\n%s", errExited, s.dir.log(), said)
	case err != nil:
		// This start does not wait for its end: the next one does.
		return p, "", errors.Join(err, syscall.Kill(pid, syscall.SIGINT))
	}
	return p, "", nil
}

// await waits until the started process accepts connections, or has exited.
func (s start) await(ctx context.Context, pid int) (postmaster, error) {
	for {
		if reap(pid) {
			return postmaster{}, errExited
		}
		p, alive, err := s.dir.postmaster()
		if err != nil {
			return p, err
		}
		if alive && p.pid == pid {
			accepts, err := probe(ctx, s.password, p.port)
			if err != nil || accepts {
				return p, err
			}
		}
		if err := domain.Pause(ctx, tick); err != nil {
			return p, err
		}
	}
}

// arguments returns those of postgres: on loopback with a password, and no socket,
// whose path would be limited to 107 bytes.
func (s start) arguments(port int) []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_checkpoints":         "off",
	}
	maps.Copy(settings, s.settings)
	args := []string{"-D", s.dir.data(), "-p", strconv.Itoa(port)}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", key+"="+settings[key])
	}
	return args
}

// pickPort prefers the port of the last start, so that the URL stays the same.
func (s start) pickPort(try int) (int, error) {
	if s.port != 0 {
		return s.port, nil
	}
	if text, err := os.ReadFile(s.dir.port()); err == nil && try == 1 {
		if l, err := net.Listen("tcp", "127.0.0.1:"+string(text)); err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// openLog opens the log for appending, and says where it ends now. It is given
// to the server as an open file, whichever user that runs as.
func (s start) openLog() (*os.File, int64, error) {
	if info, err := os.Stat(s.dir.log()); err == nil && info.Size() > maxLog {
		if err := os.Rename(s.dir.log(), s.dir.log()+".old"); err != nil {
			return nil, 0, err
		}
	}
	log, err := os.OpenFile(s.dir.log(), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	end, err := log.Seek(0, io.SeekEnd)
	return log, end, err
}
