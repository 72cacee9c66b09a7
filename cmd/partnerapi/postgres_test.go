//go:build slow

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db/embedded"
)

// postgres is a folder of servers that a test starts by PostgreSQL's own programs, and
// whom these run as.
type postgres struct {
	t         *testing.T
	bin, dir  string
	as        *syscall.SysProcAttr
	superuser string // its password
	owner     string // the password of partnerapi, who owns the database of that name
}

// node is one server.
type node struct {
	*postgres
	name  string
	port  int
	ended chan struct{} // closed when it has ended
	cmd   *exec.Cmd
}

// newPostgres skips the test where one of the programs is missing.
func newPostgres(t *testing.T, programs ...string) *postgres {
	t.Helper()
	bin, err := embedded.Programs("")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range append(programs, "pg_ctl", "pg_basebackup") {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Skipf("PostgreSQL's programs are without %s: %v", name, err)
		}
	}
	// Not t.TempDir, which only this user may enter.
	dir, err := os.MkdirTemp("", "partnerapi-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &postgres{t: t, bin: bin, dir: dir, superuser: "superuser", owner: "owner"}
	if os.Geteuid() == 0 { // whom PostgreSQL refuses to run as
		p.as = &syscall.SysProcAttr{Credential: ordinaryUser(t)}
		if err := os.Chown(dir, int(p.as.Credential.Uid), int(p.as.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func ordinaryUser(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("PostgreSQL refuses to run as root, and there is no other user: %v", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *postgres) at(names ...string) string {
	return filepath.Join(append([]string{p.dir}, names...)...)
}

// command is a program with its arguments, to run as the servers do.
func (p *postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, p.as
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+p.dir, "PGPASSWORD="+p.superuser)
	return cmd
}

// run runs a program that is to succeed.
func (p *postgres) run(program string, args ...string) {
	p.t.Helper()
	if said, err := p.command(program, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s %v: %v: %s", program, args, err, said)
	}
}

// types runs a script as the servers' user, with the settings.
func (p *postgres) types(script string, settings ...string) {
	p.t.Helper()
	cmd := p.command("postgres")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-euo", "pipefail", "-c", script}
	cmd.Env = append(append(cmd.Env, "PATH="+p.bin+":"+os.Getenv("PATH")), settings...)
	// A server that it starts has its output for good.
	out, err := os.Create(p.at("said"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		p.t.Fatalf("%s\n%v: %s", script, err, said)
	}
}

func (p *postgres) node(name string) *node {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	n := &node{postgres: p, name: name, port: l.Addr().(*net.TCPAddr).Port}
	p.t.Cleanup(n.kill)
	return n
}

// primary makes a server with the settings, starts it, and creates a database whose owner is partnerapi.
func (p *postgres) primary(name string, settings ...string) *node {
	p.t.Helper()
	n := p.server(name, settings...)
	n.exec("CREATE ROLE partnerapi LOGIN PASSWORD '" + p.owner + "'")
	n.exec("CREATE DATABASE partnerapi OWNER partnerapi")
	return n
}

// server makes a server with the settings, and starts it. Connections through a socket need no password.
func (p *postgres) server(name string, settings ...string) *node {
	p.t.Helper()
	n := p.node(name)
	password := p.at("password")
	if err := os.WriteFile(password, []byte(p.superuser), 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.run("initdb", "--pgdata="+n.data(), "--username=postgres", "--pwfile="+password, "--auth-host=scram-sha-256", "--auth-local=trust",
		"--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync")
	n.configure(append([]string{
		"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "timezone = 'UTC'", "shared_buffers = '32MB'",
		"fsync = off", "synchronous_commit = on", "wal_keep_size = '512MB'", "wal_receiver_timeout = '5s'",
	}, settings...)...)
	n.start()
	return n
}

func (n *node) data() string { return n.at(n.name) }

// configure adds lines to a node's configuration.
func (n *node) configure(lines ...string) {
	n.t.Helper()
	f, err := os.OpenFile(filepath.Join(n.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	_, err = f.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		n.t.Fatal(err)
	}
}

// standby makes a server that follows another, and starts it.
func (n *node) standby(name string) *node {
	n.t.Helper()
	s := n.node(name)
	n.run("pg_basebackup", "--dbname="+n.admin(), "--pgdata="+s.data(), "--checkpoint=fast", "--write-recovery-conf", "--no-sync")
	s.start()
	return s
}

// admin is the address for the superuser.
func (n *node) admin() string {
	return fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", n.superuser, n.port)
}

// reach is the database's address at one of the nodes that takes writes.
func reach(nodes ...*node) string {
	var hosts []string
	for _, n := range nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", n.port))
	}
	return "postgres://partnerapi:" + nodes[0].owner + "@" + strings.Join(hosts, ",") +
		"/partnerapi?sslmode=disable&target_session_attrs=read-write"
}

// start starts the server, and returns when it answers.
func (n *node) start() {
	n.t.Helper()
	var said bytes.Buffer
	n.cmd = n.command("postgres", "-D", n.data(), "-p", strconv.Itoa(n.port), "-c", "cluster_name="+n.name)
	n.cmd.Stdout, n.cmd.Stderr = &said, &said
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	cmd, ended := n.cmd, make(chan struct{})
	n.ended = ended
	go func() { defer close(ended); _ = cmd.Wait() }()
	await(n.t, n.name+" answers", func() bool {
		conn, err := pgx.Connect(n.t.Context(), n.admin())
		if err == nil {
			_ = conn.Close(n.t.Context())
			return true
		}
		select {
		case <-ended:
			n.t.Fatalf("%s has ended:\n%s", n.name, &said)
		default:
		}
		return false
	})
}

// kill ends the server as kill -9 does; its other processes notice by themselves.
func (n *node) kill() {
	if n.ended == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.ended
}

func (n *node) exec(statement string) {
	n.t.Helper()
	n.with(n.admin(), func(conn *pgx.Conn) error { _, err := conn.Exec(n.t.Context(), statement); return err })
}

// until waits for a query to be true at an address.
func (n *node) until(address, query string, args ...any) {
	n.t.Helper()
	n.with(address, func(conn *pgx.Conn) error {
		var err error
		await(n.t, query, func() (is bool) {
			err = conn.QueryRow(n.t.Context(), query, args...).Scan(&is)
			return is || err != nil
		})
		return err
	})
}

// with connects to an address.
func (n *node) with(address string, do func(*pgx.Conn) error) {
	n.t.Helper()
	conn, err := pgx.Connect(n.t.Context(), address)
	if err == nil {
		defer conn.Close(context.Background())
		err = do(conn)
	}
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
}

// awaits makes each commit of a primary wait for a standby.
func (n *node) awaits(standby *node) {
	n.t.Helper()
	n.exec("ALTER SYSTEM SET synchronous_standby_names = '" + standby.name + "'")
	n.exec("SELECT pg_reload_conf()")
	n.until(n.admin(), "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND sync_state = 'sync')",
		standby.name)
}

// promote makes a standby the primary, with the commands of the handbook, and returns
// when it was one.
func (n *node) promote(commands string) time.Time {
	n.t.Helper()
	promote, rest, _ := strings.Cut(commands, "\n")
	n.types(promote, "STANDBY_DATA="+n.data())
	promoted := time.Now()
	n.types(rest, "STANDBY_URL="+n.admin())
	return promoted
}

// rejoin makes a primary that was killed a standby of the one after it, with the commands
// of the handbook. The test starts it itself, so as to kill it again.
func (n *node) rejoin(primary *node, commands string) {
	n.t.Helper()
	rewind, start, _ := strings.Cut(commands, "pg_ctl start ")
	if start == "" {
		n.t.Fatalf("these do not start the old primary: %s", commands)
	}
	n.types(rewind, "OLD_DATA="+n.data(), "STANDBY_URL="+primary.admin())
	n.start()
	primary.until(primary.admin(), "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming')",
		n.name)
}
