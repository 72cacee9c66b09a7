package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

const (
	// helloWithin bounds each of connecting and of the greeting, STARTTLS and
	// authentication together.
	helloWithin = 10 * time.Second
	// sendWithin bounds handing over one message. It is long, because a server
	// that took a message and was too slow to say so will get it again.
	sendWithin = 30 * time.Second
	// idleFor is how long a connection is kept for the next message.
	idleFor = 30 * time.Second
	// goodbyeWithin bounds the end of a connection.
	goodbyeWithin = time.Second
)

// mechanisms are the ways of authentication, best first. The last two show the
// password to the server; they are refused on a connection that is neither
// encrypted nor of this machine.
var mechanisms = []gomail.SMTPAuthType{
	gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthCramMD5, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
}

// SMTP sends to one mail server, on connections that it keeps for a while.
type SMTP struct {
	server server
	sender *gomail.Client
	slots  chan struct{} // one for each connection that may be open

	mu     sync.Mutex
	idle   []*connection // the latest used last
	closed bool
}

type connection struct {
	smtp *smtp.Client
	drop *time.Timer // ends the connection when it was idle for too long
}

// NewSMTP returns a sender to the server of a URL; it does not connect yet.
// smtp://user:password@host:port uses STARTTLS where the server offers it,
// smtps:// is encrypted from the first byte. The ports default to 587 and 465.
// Options: starttls=required refuses a server without STARTTLS, starttls=never
// does without; ca=FILE names the certificates to trust in the place of the
// system's; connections=N bounds the connections at one time, of 20 by default.
func NewSMTP(url string) (*SMTP, error) {
	s, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	sender, err := s.client(nil)
	if err != nil {
		return nil, fmt.Errorf("configure SMTP: %w", err)
	}
	return &SMTP{server: s, sender: sender, slots: make(chan struct{}, s.connections)}, nil
}

// client returns a client that sends, or that connects with dial.
func (s *server) client(dial gomail.DialContextFunc) (*gomail.Client, error) {
	options := []gomail.Option{gomail.WithPort(s.port), gomail.WithTLSPolicy(s.policy), gomail.WithTLSConfig(s.tls()), gomail.WithoutNoop()}
	if dial == nil {
		return gomail.NewClient(s.host, append(options, gomail.WithTimeout(sendWithin))...)
	}
	options = append(options, gomail.WithTimeout(helloWithin), gomail.WithDialContextFunc(dial))
	if s.implicitTLS {
		options = append(options, gomail.WithSSL())
	}
	if s.user != "" {
		options = append(options, gomail.WithOpportunisticSMTPAuth(mechanisms...), gomail.WithUsername(s.user), gomail.WithPassword(s.password))
	}
	return gomail.NewClient(s.host, options...)
}

// Send hands a message to the server. A refusal of the address or the content
// for good (5xx) is a *Refused. One of the sender or of the authentication is
// not: it means that this service is configured wrongly, and no mail is lost
// for that.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	message, err := m.format()
	if err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection to the mail server: %w", ctx.Err())
	}
	c, err := s.take(ctx)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	err = s.sender.SendWithSMTPClient(c.smtp, message)
	var failed *gomail.SendError
	if err == nil || errors.As(err, &failed) && failed.Reason == gomail.ErrSMTPRcptTo && failed.ErrorCode() >= 500 {
		s.keep(c) // after a refused address the server goes on with the next
	} else {
		_ = c.smtp.Close()
	}
	if message.IsDelivered() { // what failed came after the server had taken it
		return nil
	}
	return classified(err)
}

// classified tells a refusal for good from what may go well another time.
func classified(err error) error {
	if err == nil {
		return nil
	}
	var failed *gomail.SendError
	if errors.As(err, &failed) && permanent(failed) {
		return &Refused{Reason: err.Error()}
	}
	return fmt.Errorf("hand over a message: %w", err)
}

func permanent(failed *gomail.SendError) bool {
	switch failed.Reason {
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
	default:
		return false
	}
	switch code := failed.ErrorCode(); code {
	case 530, 534, 535, 538: // the server wants authentication or encryption
		return false
	default:
		return code >= 500 && code < 600
	}
}

// take returns an idle connection that still works, or a new one.
func (s *SMTP) take(ctx context.Context) (*connection, error) {
	for {
		c := s.pop()
		if c == nil {
			return s.dial(ctx)
		}
		if c.smtp.UpdateDeadline(helloWithin) == nil && c.smtp.Noop() == nil {
			return c, nil
		}
		_ = c.smtp.Close()
	}
}

func (s *SMTP) pop() *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	c := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	c.drop.Stop()
	return c
}

// keep puts a connection back for the next message, for a while.
func (s *SMTP) keep(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		go quit(c)
		return
	}
	c.drop = time.AfterFunc(idleFor, func() { s.remove(c) })
	s.idle = append(s.idle, c)
}

// remove ends a connection, unless it was taken meanwhile.
func (s *SMTP) remove(c *connection) {
	s.mu.Lock()
	i := slices.Index(s.idle, c)
	if i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		quit(c)
	}
}

// quit says goodbye, if that is quick.
func quit(c *connection) {
	if c.smtp.UpdateDeadline(goodbyeWithin) != nil || c.smtp.Quit() != nil {
		_ = c.smtp.Close()
	}
}

// dial opens a connection. The client's own way leaves it open where greeting
// or authentication fail.
func (s *SMTP) dial(ctx context.Context) (*connection, error) {
	var opened net.Conn
	client, err := s.server.client(func(ctx context.Context, network, address string) (net.Conn, error) {
		var err error
		if s.server.implicitTLS {
			opened, err = (&tls.Dialer{Config: s.server.tls()}).DialContext(ctx, network, address)
		} else {
			opened, err = (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return opened, err
	})
	if err != nil {
		return nil, err
	}
	c, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		if opened != nil {
			_ = opened.Close()
		}
		return nil, err
	}
	return &connection{smtp: c}, nil
}

// Close ends the idle connections. One in use is ended after its message.
func (s *SMTP) Close() error {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, c := range idle {
		c.drop.Stop()
		quit(c)
	}
	return nil
}
