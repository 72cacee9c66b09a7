package pg

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusingServer listens as a PostgreSQL server that speaks no TLS and refuses every password, and returns its address.
func refusingServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			refuse(conn)
		}
	}()
	return listener.Addr().String()
}

// refuse answers the first message of a connection, and closes it.
func refuse(conn net.Conn) {
	defer conn.Close()
	const wantsTLS = 80877103 // the code of a SSLRequest
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil {
		return
	}
	if binary.BigEndian.Uint32(head[4:]) == wantsTLS {
		_, _ = conn.Write([]byte{'N'})
		return
	}
	_, _ = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head))-8)
	fields := "SFATAL\x00VFATAL\x00C28P01\x00Mpassword authentication failed for user \"ada\"\x00\x00"
	message := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields)))
	_, _ = conn.Write(append(message, fields...))
}

// TestDecisiveFailure verifies that the text of a failure to connect is that of the attempt that decided it.
func TestDecisiveFailure(t *testing.T) {
	t.Parallel()
	fault := func(address, parameters string) error {
		t.Helper()
		_, err := HasPooler(t.Context(), "postgres://ada:sesame@"+address+"/db"+parameters)
		if err == nil {
			t.Fatal("connected")
		}
		return DecisiveFailure(err)
	}
	const refusedTLS = "server refused TLS connection"
	at := refusingServer(t)
	err := fault(at, "")
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if text := err.Error(); !ok || refusal.Code != "28P01" || strings.Contains(text, "tls") || strings.Contains(text, refusedTLS) ||
		!strings.HasPrefix(text, "failed to connect to `user=ada database=db`: "+at) || !strings.Contains(text, "password authentication failed") {
		t.Errorf("a wrong password: %v", err)
	}
	if err := fault(at, "?sslmode=require"); !strings.Contains(err.Error(), refusedTLS) {
		t.Errorf("TLS is required: %v", err)
	}
	if err := fault("127.0.0.1:1", ""); strings.Count(err.Error(), "127.0.0.1:1 ") != 1 {
		t.Errorf("no server: %v", err)
	}
	if other := errors.New("other"); DecisiveFailure(other) != other {
		t.Error("another error is changed")
	}
}
