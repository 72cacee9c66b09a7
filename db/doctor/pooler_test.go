package doctor_test

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"partnerapi/db/dbtest"
	"partnerapi/db/doctor"
)

// pooler is a small PgBouncer: it speaks the protocol to its clients, and hands their
// statements to connections of its own, which each client keeps or transactions share.
type pooler struct {
	t       *testing.T
	server  string
	shared  bool
	mu      sync.Mutex
	waiting []*pgconn.HijackedConn // the one used last comes first
}

// startPooler returns the URL of a database through a pooler.
func startPooler(t *testing.T, server string, shared bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, server: server, shared: shared}
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
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
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
		if free := p.forward(client, server, message); free && p.shared {
			p.put(server)
			server = nil
		}
	}
	if server != nil {
		p.put(server)
	}
}

// forward has a statement answered, and says that no transaction is open after it.
func (p *pooler) forward(client *pgproto3.Backend, server *pgconn.HijackedConn, m pgproto3.FrontendMessage) bool {
	server.Frontend.Send(m)
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
			_ = client.Flush()
			return ready.TxStatus == 'I'
		}
	}
}

func (p *pooler) take() *pgconn.HijackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.waiting); n > 0 {
		c := p.waiting[n-1]
		p.waiting = p.waiting[:n-1]
		return c
	}
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

// TestFindPooler: what is between this program and the server is found, and whether
// transactions share its connections.
func TestFindPooler(t *testing.T) {
	t.Parallel()
	server := dbtest.URL(t, schema)
	for want, at := range map[doctor.Pooler]string{
		doctor.NoPooler: server, doctor.SessionPooler: startPooler(t, server, false), doctor.TransactionPooler: startPooler(t, server, true),
	} {
		if got, err := doctor.FindPooler(t.Context(), at); err != nil || got != want {
			t.Errorf("%q is found as %q, %v", want, got, err)
		}
	}
}
