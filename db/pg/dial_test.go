package pg_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// gone is an address that does not answer, as that of a machine that is off: the queue of
// its one listener is full.
func gone(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0))
	name, err2 := syscall.Getsockname(fd)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("this system has room for every connection that is not taken")
	return ""
}

// TestServerGone: of several servers, one that does not answer is waited for once, and
// passed over by the connections after that.
func TestServerGone(t *testing.T) {
	t.Parallel()
	silent := gone(t)
	d := openAt(t, behind(t, silent))
	if err := d.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := d.Pool().Config().ConnConfig.DialFunc(t.Context(), "tcp", silent)
	var network net.Error
	if err == nil || errors.As(err, &network) {
		t.Errorf("it is waited for again: %v", err)
	}
}

// TestConnectTimeout: a URL may give how long a connection to its only server may take.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{
		"postgres://127.0.0.1:1/a":                                          5 * time.Second,
		"postgres://127.0.0.1:1/a?connect_timeout=60":                       time.Minute,
		"postgres://127.0.0.1:1,127.0.0.1:2/a?connect_timeout=60":           2 * time.Second,
		"host=127.0.0.1 port=1 user=a dbname=a connect_timeout=7":           7 * time.Second,
		"postgres://127.0.0.1:1,127.0.0.1:2/a?target_session_attrs=primary": 2 * time.Second,
	} {
		if got := openAt(t, query).Pool().Config().ConnConfig.ConnectTimeout; got != want {
			t.Errorf("%s: %v instead of %v", query, got, want)
		}
	}
}
