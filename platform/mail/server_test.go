package mail_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// received is a mail that the server took.
type received struct {
	from, to, user  string
	encrypted, utf8 bool
	data            []byte
}

// server is a real SMTP server.
type server struct {
	t       testing.TB
	address string
	smtp    *smtp.Server
	// implicit has the server speak TLS from the first byte, where it is not nil.
	implicit *tls.Config
	user     string // who must authenticate, with the password "secret"; empty for no authentication

	mu       sync.Mutex
	mails    []received
	sessions int
	// refusals by the recipient's address.
	refusals map[string]*smtp.SMTPError
	taken    chan received // gets each mail too, where it is not nil
	// gate, where it is not nil, holds every message back until it is closed;
	// held, where it is not nil, then gets one thing for each.
	gate, held chan struct{}
}

// startServer starts a server on the address, or a free one; change may set it
// up before.
func startServer(t testing.TB, address string, change func(*server)) *server {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	s := &server{t: t, refusals: map[string]*smtp.SMTPError{}}
	s.smtp = smtp.NewServer(s)
	s.smtp.AllowInsecureAuth = true
	s.smtp.ErrorLog = log.New(io.Discard, "", 0)
	if change != nil {
		change(s)
	}
	listener := must(net.Listen("tcp", address))
	s.address = listener.Addr().String()
	if s.implicit != nil {
		listener = tls.NewListener(listener, s.implicit)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.smtp.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = s.smtp.Close()
		<-done
	})
	return s
}

func (s *server) url() string { return "smtp://" + s.address }

func (s *server) all() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

// refuse makes the server answer a recipient's address with a code.
func (s *server) refuse(to string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[to] = &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: "not for " + to}
}

// NewSession begins a connection's session.
func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	return &session{server: s, conn: c}, nil
}

type session struct {
	server *server
	conn   *smtp.Conn
	mail   received
	user   string
}

func (s *session) AuthMechanisms() []string {
	if s.server.user == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.server.user || password != "secret" {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Reset()        { s.mail = received{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, options *smtp.MailOptions) error {
	if s.server.user != "" && s.user == "" {
		return smtp.ErrAuthRequired
	}
	s.mail.from, s.mail.utf8 = from, options.UTF8
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if refusal := s.server.refusals[to]; refusal != nil {
		return refusal
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.server.held != nil {
		s.server.held <- struct{}{}
	}
	if s.server.gate != nil {
		<-s.server.gate
	}
	_, s.mail.encrypted = s.conn.TLSConnectionState()
	s.mail.user, s.mail.data = s.user, data
	s.server.mu.Lock()
	s.server.mails = append(s.server.mails, s.mail)
	s.server.mu.Unlock()
	if s.server.taken != nil {
		s.server.taken <- s.mail
	}
	return nil
}

// certificate is package httptest's for 127.0.0.1, and a file with it.
func certificate(t testing.TB) (*tls.Config, string) {
	t.Helper()
	https := httptest.NewTLSServer(nil)
	https.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: https.TLS.Certificates}, file
}

// unused is an address on which nothing listens.
func unused(t testing.TB) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}
