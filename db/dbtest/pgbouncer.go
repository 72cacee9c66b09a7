package dbtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncer starts a PgBouncer for this test alone, and returns the address of a
// database by way of it. It shares so many of the server's connections among its
// clients, by its pool_mode, each in turn. The test is skipped where it is not installed.
func PgBouncer(t testing.TB, server, mode string, size int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("pgbouncer is not installed")
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("dbtest: pgbouncer: %v", err)
		}
	}
	address, err := url.Parse(server)
	must(err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	must(free.Close())
	_, port, _ := net.SplitHostPort(free.Addr().String())
	password, _ := address.User.Password()
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	must(os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host='%s' port='%s' user='%s' password='%s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 500
server_round_robin = 1
`, address.Hostname(), address.Port(), address.User.Username(), password, port, mode, size), 0o600))

	startPooler(t, program, file)
	address.Host, address.RawQuery = "127.0.0.1:"+port, "sslmode=disable"
	return address.String()
}

// startPooler starts a PgBouncer with a configuration, and returns when it listens.
func startPooler(t testing.TB, program, file string) {
	t.Helper()
	args := []string{file}
	if os.Getuid() == 0 {
		args = []string{"-u", "nobody", file} // it refuses to be root
	}
	cmd := exec.Command(program, args...)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("dbtest: pgbouncer: %v", err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	up := false
	for !up && lines.Scan() {
		up = strings.Contains(lines.Text(), "process up")
		if !up {
			t.Log(lines.Text())
		}
	}
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, log) // so that it is not kept waiting
	}()
	if !up {
		t.Fatal("dbtest: pgbouncer did not start")
	}
}
