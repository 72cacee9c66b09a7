package mail_test

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	s := &server{refusals: map[string]*smtp.SMTPError{}}
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

// What a script does besides answering.
const (
	silence = ""
	hangUp  = "hang up"
)

// scripted is a mail server that does what a test says.
type scripted struct {
	address string
	// heard gets each command that arrives, by its first word; the end of a
	// message is ".".
	heard chan string
	ended chan struct{} // gets one thing for each connection that ends
}

// script starts a server. The answer to a command ("" for the greeting) may be
// more than one line; the connections are counted from 1.
func script(t testing.TB, answer func(connection int, command string) string) *scripted {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &scripted{address: listener.Addr().String(), heard: make(chan string, 1000), ended: make(chan struct{}, 100)}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(conn, func(command string) string { return answer(n, command) }) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait() // for the sender to be closed, which was opened later
	})
	return s
}

// answering starts a server that answers one command with something, and takes everything else.
func answering(t testing.TB, at, answer string) *scripted {
	t.Helper()
	return script(t, func(_ int, command string) string {
		if command == at {
			return answer
		}
		return usual(command)
	})
}

func (s *scripted) url() string { return "smtp://" + s.address }

func (s *scripted) serve(conn net.Conn, answer func(string) string) {
	defer func() {
		_ = conn.Close()
		s.ended <- struct{}{}
	}()
	lines := bufio.NewScanner(conn)
	content := false
	for say := answer(""); ; {
		if say == hangUp {
			return
		}
		if say != silence {
			fmt.Fprintf(conn, "%s\r\n", say)
		}
		content = strings.HasPrefix(say, "354")
		var command string
		for command = ""; command == "" || content && command != "."; {
			if !lines.Scan() {
				return
			}
			command, _, _ = strings.Cut(lines.Text(), " ")
		}
		s.heard <- command
		say = answer(command)
	}
}

// usual is what a server says that takes everything.
func usual(command string) string {
	switch command {
	case "":
		return "220 ready"
	case "EHLO":
		return "250-here\r\n250 8BITMIME"
	case "DATA":
		return "354 go on"
	}
	return "250 2.0.0 well"
}

// commands are those that were heard until now.
func (s *scripted) commands() (all []string) {
	for {
		select {
		case command := <-s.heard:
			all = append(all, command)
		default:
			return all
		}
	}
}
