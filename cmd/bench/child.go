package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// What is measured runs in processes of its own, so that its memory and its
// scheduling are its own. A child learns of its database by its environment,
// says one line, and ends when its standard input does: with its parent,
// however that ends.
const (
	envURL     = "BENCH_DATABASE_URL"
	envPartner = "BENCH_PARTNER_ID"
	envProfile = "BENCH_PROFILE"
	envClient  = "BENCH_CLIENT_ID"
)

// children are the children's lives by the words that start them.
var children = map[string]func(ctx context.Context, parent io.Reader, out io.Writer) error{
	"serve-service":       serving(newService),
	"serve-silent":        serving(newSilentService),
	"serve-reference":     serving(newReference),
	"work":                workChild,
	"deliver":             deliverChild,
	"ingest":              ingestChild,
	"give":                giveChild,
	"report":              reportChild,
	"directory-microsoft": directoryChild(openMicrosoft),
	"directory-google":    directoryChild(openGoogle),
	"sync":                syncChild,
	"export":              transferChild(exportLines),
	"import":              transferChild(importLines),
}

// whileParent is a context that ends with the parent.
func whileParent(ctx context.Context, parent io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, parent)
		cancel()
	}()
	return ctx, cancel
}

func serving(build func(context.Context) (http.Handler, error)) func(context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, parent io.Reader, out io.Writer) error {
		return serveChild(ctx, build, parent, out)
	}
}

// serveChild serves what build makes, and says where.
func serveChild(ctx context.Context, build func(context.Context) (http.Handler, error), parent io.Reader,
	out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	handler, err := build(ctx)
	if err != nil {
		return err
	}
	if os.Getenv(envProfile) != "" {
		handler = profiled(handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func profiled(handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.Handle("/debug/pprof/heap", pprof.Handler("heap"))
	mux.Handle("/", handler)
	return mux
}

// child is a process that was started.
type child struct {
	said    string // its line: a server's address
	command *exec.Cmd
	stdin   io.Closer
}

// start starts the program anew as one of the children, and waits for its line.
func start(name string, errs io.Writer, env ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	c := &child{command: exec.Command(self, name)}
	c.command.Env = append(os.Environ(), env...)
	c.command.Stderr = errs
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s ended without a word", name), c.stop())
	}
	c.said = strings.TrimSpace(line)
	return c, nil
}

// stop ends the child and waits for its end.
func (c *child) stop() error {
	return errors.Join(c.stdin.Close(), c.command.Wait())
}

// peakMB is the most memory that the child ever had resident, in MB of 2^20
// bytes.
func (c *child) peakMB() (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.command.Process.Pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read a process's memory, which takes Linux: %w", err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"))
			return float64(kB) / 1024, err
		}
	}
	return 0, errors.New("the system does not tell a process's peak memory")
}
