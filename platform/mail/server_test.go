package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

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
	user    string // who must authenticate, with the password "secret"; empty for no authentication

	mu       sync.Mutex
	mails    []received
	sessions int
	// refusals by the step: "mail", "data", or a recipient's address.
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
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
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

// refuse makes the server answer a step with a code.
func (s *server) refuse(step string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[step] = &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: "not for " + step}
}

func (s *server) refusal(step string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.refusals[step]; e != nil {
		return e
	}
	return nil
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
	return s.server.refusal("mail")
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	return s.server.refusal(to)
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err := errors.Join(err, s.server.refusal("data")); err != nil {
		var refusal *smtp.SMTPError
		errors.As(err, &refusal)
		return refusal
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

// certificate makes a certificate for 127.0.0.1 that signs itself, and a file
// with it.
func certificate(t testing.TB) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

// unused is an address on which nothing listens.
func unused(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}

// startTLS listens with TLS from the first byte and passes all on to a server.
func startTLS(t testing.TB, config *tls.Config, to string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return listener.Addr().String()
}
