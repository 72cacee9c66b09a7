package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
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
	// maxLog is the size in bytes above which a start renames the log and begins a new one.
	maxLog = 8 << 20
	// attempts bounds the attempts of a start that fails because another program took the port, or because processes of
	// a killed server still use its shared memory.
	attempts = 100
)

// start is a start of a server whose data exist.
type start struct {
	dir      folder
	bin      binaries
	owner    identity
	settings map[string]string
	password string
	port     int // 0 for any
}

// errExited reports that the server exited before it accepted connections.
var errExited = errors.New("the server did not start")

// transientFailures are texts in the log by which a failure is known to be worth another attempt.
var transientFailures = []string{"could not bind", "could not create any TCP/IP sockets", "shared memory block"}

// run starts the server and waits until it accepts connections. It starts the server again, up to attempts times in
// all, if it exits with a transient failure.
func (s start) run(ctx context.Context) (postmaster, error) {
	for try := 1; ; try++ {
		p, output, err := s.attempt(ctx, try)
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

// attempt makes one attempt to start the server, and waits until it accepts connections. If the server exits instead,
// the error is errExited and output is what it wrote to the log. try counts the attempts from 1.
func (s start) attempt(ctx context.Context, try int) (p postmaster, output string, err error) {
	port, err := s.pickPort(try)
	if err != nil {
		return p, "", err
	}

	log, offset, err := s.openLog()
	if err != nil {
		return p, "", err
	}
	defer log.Close()
	cmd := exec.Command(s.bin.path("postgres"), s.arguments(port)...)
	cmd.Dir, cmd.SysProcAttr = s.dir.data(), s.owner.attr
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return p, "", err
	}

	pid := cmd.Process.Pid
	// The server outlives this process. Only reap waits for it.
	if err := cmd.Process.Release(); err != nil {
		return p, "", err
	}
	p, err = s.await(ctx, pid)
	switch {
	case errors.Is(err, errExited):
		written, _ := io.ReadAll(io.NewSectionReader(log, offset, maxLog)) // after an error, output is what could be read
		output = string(bytes.TrimSpace(written))
		return p, output, fmt.Errorf("%w (log: %s):\n%s", errExited, s.dir.logFile(), output)
	case err != nil:
		// SIGINT stops the server. The next start waits until it has stopped.
		return p, "", errors.Join(err, syscall.Kill(pid, syscall.SIGINT))
	}
	return p, "", nil
}

// inherited are the environment variables that PostgreSQL's programs inherit. Others may hold the service's secrets,
// which a superuser of the database could read. The last two move the server's clock in make test-dates.
var inherited = []string{"PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH", "LD_PRELOAD", "GO_CLOCK_OFFSET"}

// environment returns the environment of PostgreSQL's programs.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// await waits until the started process accepts connections. If it exits before, the error is errExited.
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

// arguments returns the command line arguments of postgres. The server listens on loopback only. It has no Unix socket,
// whose path could have at most 107 bytes.
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

// Ports from firstPort up to lastPort are below those that Linux and macOS give to connections and to listeners of port
// 0. One of those would often be taken when the server starts again.
const firstPort, lastPort = 20000, 32767

// pickPort returns the configured port or, on the first attempt, the port of the last start if it is free, so that the
// URL stays the same. Otherwise it returns a free port, chosen at random.
func (s start) pickPort(try int) (int, error) {
	if s.port != 0 {
		return s.port, nil
	}
	if text, err := os.ReadFile(s.dir.portFile()); err == nil && try == 1 {
		if port, err := freePort(string(text)); err == nil {
			return port, nil
		}
	}
	for range 20 {
		if port, err := freePort(strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1))); err == nil {
			return port, nil
		}
	}
	return freePort("0")
}

// freePort returns the port if it is free, or any free port for 0.
func freePort(port string) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// openLog opens the log for appending, and returns its current size. If it is larger than maxLog, it first renames it.
// The server gets the open file, so its user needs no right to open it.
func (s start) openLog() (*os.File, int64, error) {
	if info, err := os.Stat(s.dir.logFile()); err == nil && info.Size() > maxLog {
		if err := os.Rename(s.dir.logFile(), s.dir.logFile()+".old"); err != nil {
			return nil, 0, err
		}
	}
	log, err := os.OpenFile(s.dir.logFile(), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	end, err := log.Seek(0, io.SeekEnd)
	return log, end, err
}
