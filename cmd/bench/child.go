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

// Servers run as processes of their own, so that their memory and their
// scheduling are theirs. A child learns of its database by its environment,
// prints its address, and ends when its standard input does: with its parent,
// however that ends.
const (
	envURL     = "BENCH_DATABASE_URL"
	envPartner = "BENCH_PARTNER_ID"
	envProfile = "BENCH_PROFILE"
)

// servers are the children by the word that starts them.
var servers = map[string]func(context.Context) (http.Handler, error){
	"serve-service":   newService,
	"serve-reference": newReference,
}

// serveChild is a child's whole life.
func serveChild(ctx context.Context, build func(context.Context) (http.Handler, error), parent io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
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
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, parent)
		_ = server.Close()
	}()
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

// child is a server that runs.
type child struct {
	address string
	command *exec.Cmd
	stdin   io.Closer
}

// start starts the program anew as one of the servers.
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
		return nil, errors.Join(fmt.Errorf("%s did not start", name), c.stop())
	}
	c.address = strings.TrimSpace(line)
	return c, nil
}

// stop ends the server and waits for its end.
func (c *child) stop() error {
	return errors.Join(c.stdin.Close(), c.command.Wait())
}

// peakMB is the most memory that the server ever had resident, in MB of 2^20
// bytes.
func (c *child) peakMB() (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.command.Process.Pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read the service's memory, which takes Linux: %w", err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"))
			return float64(kB) / 1024, err
		}
	}
	return 0, errors.New("the system does not tell the service's peak memory")
}
