package ginop_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/v2/op/ginop"
)

// TestTooLargeIsRead: a client that writes all of a body that is too large, and reads
// then, reads 413, with a length or without one.
func TestTooLargeIsRead(t *testing.T) {
	e := newEdge(t, nil, nil)
	e.Protocol(e.engine, protocolOf(t))
	server := httptest.NewServer(e.engine)
	t.Cleanup(server.Close)
	body := strings.Repeat("x", 6<<20)
	for name, message := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST /protocol HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\n%s", message); err != nil {
			t.Errorf("%s: write: %v", name, err)
			continue
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: read: %v", name, err)
			continue
		}
		if answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
			t.Errorf("%s: %d, closes %t", name, answer.StatusCode, answer.Close)
		}
	}
}

// protocolOf is a protocol whose messages are read and answered with nothing.
func protocolOf(t *testing.T) ginop.Protocol {
	t.Helper()
	return ginop.Protocol{Path: "/protocol", Serve: func(w http.ResponseWriter, _ *http.Request, _ []byte) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}}
}
