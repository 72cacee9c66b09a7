package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// childDir is set for a child process of a test: the folder whose server it
// starts, or "none". It then waits for its input to end.
const childDir = "EMBEDDED_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if dir != "none" {
		if _, err := Start(context.Background(), config(Config{Dir: dir})); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Print("up")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// child runs this test's program as another process, and returns once it is up.
func child(t *testing.T, dir string, args []string) (*exec.Cmd, io.Closer) {
	t.Helper()
	needPrograms(t)
	cmd := exec.Command(os.Args[0])
	cmd.Args = args
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("up"))); err != nil {
		t.Fatal(err)
	}
	return cmd, in
}

// A killed process does not count, and its server runs on for the next one.
func TestJoinsTheServerOfAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	starter, _ := child(t, dir, []string{os.Args[0]})
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := starter.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	p, runs, err := folder(dir).postmaster()
	if err != nil || !runs {
		t.Fatalf("the server went with the process that started it: %v", err)
	}
	s := begin(t, Config{Dir: dir})
	if s.PID() != p.pid {
		t.Errorf("a server was started beside process %d", p.pid)
	}
	if got := query(t, s.URL(), "select 'joined'"); got != "joined" {
		t.Errorf("read %q", got)
	}
	end(t, s)
	if alive(t, dir) {
		t.Error("it runs on after the last one left")
	}
}
