package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/embedded"
	"partnerapi/db/seed"
)

// asCommand makes the test binary be the command: a process that can be killed.
const asCommand = "TEST_AS_PARTNERAPI"

// asInstalled has the path of the settings of the command's installation, and with _DATA the folder of its data.
const asInstalled = "TEST_INSTALLED"

// patience bounds every wait; on a machine with much else to do, nothing takes near as long.
const patience = 5 * time.Minute

// retryPause is the pause between two looks, and that of a caller who is told to try again later.
const retryPause = 100 * time.Millisecond

// await polls until is returns true. After patience it fails the test, and prints about.
func await(t *testing.T, what string, is func() bool, about ...any) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); <-time.After(retryPause) {
		if time.Now().After(deadline) {
			t.Fatal(append([]any{what, ": it does not come about\n"}, about...)...)
		}
	}
}

// shortWaits makes serve wait a shorter time for those who call, in a process of its own.
const shortWaits = "TEST_SHORT_WAITS"

var short = connectionTimeouts{headers: 15 * time.Second, request: 20 * time.Second, idle: 30 * time.Second}

func TestMain(m *testing.M) {
	if os.Getenv(shortWaits) != "" {
		timeouts = short
	}
	if os.Getenv(asCommand) != "" {
		_ = os.Unsetenv("GOMEMLIMIT") // a process of its own has the limit of the program
		installed = installation{settings: os.Getenv(asInstalled), data: os.Getenv(asInstalled + "_DATA")}
		main()
	}
	for _, setting := range os.Environ() { // those of whoever runs the tests
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "PARTNERAPI_") {
			_ = os.Unsetenv(name)
		}
	}
	// No test may use the data of whoever runs it: without a flag nothing works.
	_ = os.Setenv("PARTNERAPI_DATA_DIR", os.DevNull)
	dbtest.Main(m)
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

// command runs a command line in this process.
func command(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// must runs a command that is to succeed, and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, args...)
	if r.code != 0 {
		t.Fatalf("%v: exit %d: %s", args, r.code, r.err)
	}
	return r.out
}

// refused runs a command that is to fail with an exit status, and with an
// error that holds all of the words.
func refused(t *testing.T, code int, args []string, words ...string) {
	t.Helper()
	r := command(t, args...)
	if r.code != code {
		t.Errorf("%v: exit %d, not %d: %s%s", args, r.code, code, r.out, r.err)
	}
	for _, word := range words {
		if !strings.Contains(r.err, word) {
			t.Errorf("%v: the error does not say %q: %s", args, word, r.err)
		}
	}
}

// says wants a text to hold all of the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in\n%s", word, text)
		}
	}
}

// The keys are of this process: nobody else has templates of this binary.
var (
	tablesSchema = dbtest.Schema{Name: "command", Key: rand.Text(), Apply: migrated(nil)}
	demoSchema   = dbtest.Schema{Name: "commanddemo", Key: rand.Text(), Apply: migrated(func(ctx context.Context, d *db.DB) error {
		_, err := seed.Demo(ctx, d)
		return err
	})}
)

func migrated(then func(context.Context, *db.DB) error) func(context.Context, string) error {
	return func(ctx context.Context, url string) (err error) {
		d, shut, err := database.Flags{DatabaseURL: url}.OpenForServe(ctx, environment(nil, io.Discard, io.Discard), database.ServeOptions{Log: slog.New(slog.DiscardHandler), Connections: config.MinConnections, Migrate: true})
		if err != nil {
			return err
		}
		defer database.CloseInto(shut, &err)
		if then == nil {
			return nil
		}
		return then(ctx, d)
	}
}

// databaseFlag returns the flag of a database of the test's own with all tables.
func databaseFlag(t *testing.T) string { return "--database-url=" + dbtest.URL(t, tablesSchema) }

// demonstration is databaseFlag with the demonstration in it.
func demonstration(t *testing.T) string { return "--database-url=" + dbtest.URL(t, demoSchema) }

// opened opens the database of a flag.
func opened(t *testing.T, flag string) *db.DB {
	t.Helper()
	d, err := db.Open(strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// execute runs a statement in a database.
func execute(t *testing.T, d *db.DB, statement string, args ...any) {
	t.Helper()
	if _, err := d.SQL().ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// writeFile writes a file that only its owner can read.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// transcript is what a service writes, for tests that wait for it.
type transcript struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

// Write appends.
func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *transcript) read() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

func (s *transcript) String() string {
	text, _ := s.read()
	return text
}

// await returns the submatches of a pattern once it is there; nil when the
// writer ends before.
func (s *transcript) await(pattern *regexp.Regexp, ended <-chan struct{}) []string {
	timeout := time.After(patience)
	for {
		text, changed := s.read()
		if found := pattern.FindStringSubmatch(text); found != nil {
			return found
		}
		select {
		case <-changed:
		case <-ended:
			return pattern.FindStringSubmatch(s.String())
		case <-timeout:
			return nil
		}
	}
}

// running is a service, in this process or one of its own.
type running struct {
	t         *testing.T
	address   string
	out, logs *transcript
	ended     chan struct{}
	code      int       // once ended
	cmd       *exec.Cmd // of a process of its own
	stop      func()    // asks it to end
	logsJSON  bool
	client    caller
}

// serving runs serve in this process, on a free port, until the test's end.
func serving(t *testing.T, args ...string) *running {
	t.Helper()
	r := inProcess(t, append([]string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir()}, args...)...) // for the outbox
	r.logsJSON = slices.Contains(args, "--log-format=json")
	r.greeted()
	return r
}

// inProcess runs a command in this process until the test's end.
func inProcess(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, out: newTranscript(), logs: newTranscript(), ended: make(chan struct{}), stop: cancel}
	go func() {
		defer close(r.ended)
		r.code = run(ctx, args, strings.NewReader(""), r.out, r.logs)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// process runs serve as a process of its own, on an embedded database.
func process(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	r := spawned(t, append([]string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + dir}, args...)...)
	r.greeted()
	return r
}

// spawned runs a command that lasts as a process of its own.
func spawned(t *testing.T, args ...string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return launched(t, cmd)
}

// launched starts a process, which the test's end kills.
func launched(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, out: newTranscript(), logs: newTranscript(), ended: make(chan struct{}), cmd: cmd}
	cmd.Stdout, cmd.Stderr = r.out, r.logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		defer close(r.ended)
		_ = cmd.Wait()
		r.code = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(r.kill)
	return r
}

var greets = regexp.MustCompile(`(?s) serves v2 release \S+ at (http://\S+)\n  start page: [^\n]+\n(?:  OpenAPI document.*|.*\nTry:\n.*)\n\n$`)

var greetsInJSON = regexp.MustCompile(`"msg":"serving"[^\n]*"address":"(http://[^"]+)"`)

// greeted waits for the greeting, which is printed once the port is open.
func (r *running) greeted() {
	r.t.Helper()
	found := []string(nil)
	if r.logsJSON {
		found = r.logs.await(greetsInJSON, r.ended)
	} else {
		found = r.out.await(greets, r.ended)
	}
	if found == nil {
		r.t.Fatalf("no greeting:\n%s%s", r.out, r.logs)
	}
	r.address = found[1]
	r.client = r.checked()
}

// finish stops the service and wants it to end well.
func (r *running) finish() {
	r.t.Helper()
	r.stop()
	<-r.ended
	if r.code != 0 {
		r.t.Fatalf("exit %d:\n%s", r.code, r.logs)
	}
}

// kill ends the process as kill -9 does.
func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
}

// dataDir is the place of an embedded database. Should a failing test leave its
// server running, that is stopped.
func dataDir(t *testing.T) string {
	dbtest.NeedPrograms(t)
	dir := filepath.Join(t.TempDir(), "data")
	stopLeft(t, dir)
	return dir
}

// stopLeft stops the server of a data directory after the test, should it run.
func stopLeft(t *testing.T, dir string) {
	t.Cleanup(func() {
		if postmaster(t, dir) == 0 {
			return
		}
		s, err := embedded.Start(context.Background(), embedded.Config{Dir: filepath.Join(dir, "postgres")})
		if err == nil {
			err = s.Stop()
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// postmaster is the process number of a data directory's server; 0 where none
// was left running.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "pgdata", "postmaster.pid"))
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatalf("postmaster.pid: %v", err)
	}
	return pid
}

// killServer ends the server of a data directory as kill -9 does.
func killServer(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// older reports whether version 1 is a part of the program.
func older() bool { return len(extensions) > 0 }
