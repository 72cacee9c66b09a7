package pg_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
)

// pooler is a small PgBouncer in transaction mode: it speaks the protocol to its clients, and hands their statements to
// two connections of its own, which transactions take in turn.
type pooler struct {
	t       *testing.T
	server  string
	mu      sync.Mutex
	opened  int
	waiting []*pgconn.HijackedConn // the one used last comes last
}

// startPooler returns the URL of a database through a pooler.
func startPooler(t *testing.T, server string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, server: server}
	var clients sync.WaitGroup
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { p.serve(conn) })
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		clients.Wait()
		for _, c := range p.waiting {
			_ = c.Conn.Close()
		}
	})
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	address.Host, address.RawQuery = listener.Addr().String(), "sslmode=disable"
	return address.String()
}

func (p *pooler) serve(conn net.Conn) {
	defer conn.Close()
	client := pgproto3.NewBackend(conn, conn)
	startup, err := client.ReceiveStartupMessage()
	if err != nil {
		return
	}
	for name := range startup.(*pgproto3.StartupMessage).Parameters {
		if !slices.Contains([]string{"user", "database", "application_name", "timezone"}, name) {
			client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			_ = client.Flush()
			return
		}
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4_000_000_000, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	var server *pgconn.HijackedConn
	for {
		message, err := client.Receive()
		if _, ended := message.(*pgproto3.Terminate); err != nil || ended {
			break
		}
		if server == nil {
			server = p.take()
		}
		if free := p.forward(client, server, message); free {
			p.put(server)
			server = nil
		}
		_ = client.Flush() // the connection is free before the client knows
	}
	if server != nil {
		p.put(server)
	}
}

// forward has a statement answered, without flushing the answer, and says that no transaction is open after it.
func (p *pooler) forward(client *pgproto3.Backend, server *pgconn.HijackedConn, m pgproto3.FrontendMessage) bool {
	server.Frontend.Send(m)
	switch m.(type) {
	case *pgproto3.Parse, *pgproto3.Describe, *pgproto3.Bind, *pgproto3.Execute, *pgproto3.Close:
		return false // what is answered comes after Sync
	}
	if err := server.Frontend.Flush(); err != nil {
		p.t.Error(err)
		return true
	}
	for {
		answer, err := server.Frontend.Receive()
		if err != nil {
			p.t.Error(err)
			return true
		}
		client.Send(answer)
		if ready, ok := answer.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus == 'I'
		}
	}
}

func (p *pooler) take() *pgconn.HijackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened > 1 && len(p.waiting) > 0 {
		c := p.waiting[0]
		p.waiting = p.waiting[1:]
		return c
	}
	p.opened++
	conn, err := pgconn.Connect(p.t.Context(), p.server)
	if err != nil {
		panic(err)
	}
	c, err := conn.Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

func (p *pooler) put(c *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, c)
}

// TestHasPooler: what is between this program and the server is found.
func TestHasPooler(t *testing.T) {
	t.Parallel()
	server := dbtest.URL(t, empty)
	for at, want := range map[string]bool{server: false, startPooler(t, server): true} {
		if got, err := pg.HasPooler(t.Context(), at); err != nil || got != want {
			t.Errorf("%s has a pooler: %t, %v", at, got, err)
		}
	}
}

// TestBehindPooler: statements that are to be kept run although each has another connection than the one before; locks
// and notifications have connections that last.
func TestBehindPooler(t *testing.T) {
	t.Parallel()
	server := dbtest.URL(t, empty)
	d := openAt(t, startPooler(t, server), pg.WithPooler(server, false), pg.WithConns(2))
	seen := map[int]bool{}
	for range 4 {
		pid, err := pg.One[int](t.Context(), d, "ask", pg.Prepared(pg.SQL("SELECT pg_backend_pid() + ?::int", 0)))
		if err != nil {
			t.Fatal(err)
		}
		seen[pid] = true
	}
	if len(seen) < 2 || !d.Pooled() {
		t.Errorf("statements had %d connections; pooled: %t", len(seen), d.Pooled())
	}
	lock(t, d)
	listen(t, d)
}

// lock wants a lock to be held for as long as what it is for.
func lock(t *testing.T, d *pg.DB) {
	t.Helper()
	err := d.WithAdvisoryLock(t.Context(), "name", func(ctx context.Context) error {
		for range 3 {
			free, err := pg.One[bool](ctx, d, "try", pg.SQL("SELECT pg_try_advisory_xact_lock(hashtextextended('name', 0))"))
			if err != nil || free {
				t.Errorf("the lock is free: %v, %v", free, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listen wants a notification to arrive.
func listen(t *testing.T, d *pg.DB) {
	t.Helper()
	heard := errors.New("heard")
	if err := d.Listen(t.Context(), "channel", time.Minute, func(why pg.ListenEvent) error {
		if why == pg.Notified {
			return heard
		}
		_, err := pg.Exec(t.Context(), d, "notify", pg.SQL("SELECT pg_notify('channel', '')"))
		return err
	}); !errors.Is(err, heard) {
		t.Error(err)
	}
}

// behind is the URL of a database at the second of two hosts.
func behind(t *testing.T, first string) string {
	t.Helper()
	address, err := url.Parse(dbtest.URL(t, empty))
	if err != nil {
		t.Fatal(err)
	}
	address.Host = first + "," + address.Host
	query := address.Query()
	query.Set("target_session_attrs", "read-write")
	address.RawQuery = query.Encode()
	return address.String()
}

// TestSeveralHosts: of several hosts the one that takes writes is found, and used for
// statements, locks and notifications.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	address := behind(t, closed.Addr().String())
	if pooled, err := pg.HasPooler(t.Context(), address); err != nil || pooled {
		t.Fatalf("%t, %v", pooled, err)
	}
	d := openAt(t, address)
	lock(t, d)
	listen(t, d)
}
