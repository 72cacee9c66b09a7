package mail

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"partnerapi/domain"
)

const (
	// connectWithin bounds all of connecting: with the greeting, STARTTLS and authentication.
	connectWithin = 20 * time.Second
	// sendWithin bounds the delivery of one message. It is long, because a server
	// that accepts a message but answers too late gets it again.
	sendWithin = 30 * time.Second
	// idleFor is how long an idle connection is kept, and freshFor how long it is reused without a ping.
	idleFor  = 30 * time.Second
	freshFor = time.Second
	// aliveWithin bounds the ping of an idle connection, goodbyeWithin its closing.
	aliveWithin   = 10 * time.Second
	goodbyeWithin = time.Second
)

// SMTP sends to one mail server, with a pool of connections.
type SMTP struct {
	server server
	slots  chan struct{} // holds an element for each message in progress
	clock  domain.Clock

	mu     sync.Mutex
	idle   []*connection // the most recently used last; they may have expired
	closed bool
}

// NewSMTP returns a sender to the server of a URL, without connecting. smtp://user:password@host:port uses STARTTLS
// if the server offers it, smtps:// is encrypted from the first byte. The ports default to 587 and 465. Options:
// starttls=required refuses a server without STARTTLS, starttls=never does not use it; ca=FILE is a file of the only
// trusted certificates, instead of the system's; connections=N bounds the concurrent connections, 20 by default.
func NewSMTP(url string) (*SMTP, error) {
	s, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	return &SMTP{server: s, slots: make(chan struct{}, s.connections), clock: domain.SystemClock{}}, nil
}

// Send delivers a message to the server (see Sender). It starts only if sendWithin is left before ctx ends. A permanent
// refusal of the address or the content is a *RefusedError. A refusal of the sender or of the authentication, or by the
// server's sending policy, is temporary: this service, or the server, is misconfigured.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	w, err := m.toWire()
	if err != nil {
		return err
	}

	startCtx, cancel := withStartDeadline(ctx)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-startCtx.Done():
		return fmt.Errorf("%w: all connections to the mail server are in use", ErrNotStarted)
	}

	for {
		c, err := s.acquire(startCtx)
		if err != nil {
			return err
		}
		reused := c.expiry != nil // release sets it
		err = c.send(w)
		if c.ended {
			_ = c.conn.Close()
		} else {
			s.release(c)
		}
		var f *failure
		if !errors.As(err, &f) { // nil, or the error of unsupportedError
			return err
		}
		// The server may have closed an idle connection: then it has received nothing of the message.
		if reused && c.ended && f.at == stepSender {
			continue
		}
		return f.classify(w)
	}
}

// withStartDeadline returns a context in which a message may be started: it ends sendWithin before ctx does.
func withStartDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, end.Add(-sendWithin))
	}
	return ctx, func() {}
}

// acquire returns a working idle connection, otherwise a new connection. The error is ErrNotStarted if startCtx ends
// first.
func (s *SMTP) acquire(startCtx context.Context) (*connection, error) {
	for {
		if startCtx.Err() != nil {
			return nil, ErrNotStarted
		}
		c := s.pop()
		if c == nil {
			return s.dial(startCtx)
		}
		if s.clock.Elapsed()-c.used < freshFor || c.ping(startCtx) {
			return c, nil
		}
		_ = c.conn.Close()
	}
}

// dial opens a connection, within connectWithin. The error is ErrNotStarted if startCtx ends first.
func (s *SMTP) dial(startCtx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(startCtx, connectWithin)
	defer cancel()
	c, err := s.server.connect(ctx)
	switch {
	case err == nil:
		return c, nil
	case startCtx.Err() != nil:
		return nil, ErrNotStarted
	case ctx.Err() != nil:
		return nil, fmt.Errorf("connect to the mail server: the server was not ready within %s", connectWithin)
	}
	return nil, fmt.Errorf("connect to the mail server: %w", err)
}

// pop removes the most recently used connection from the pool, and returns it; nil if none is open.
func (s *SMTP) pop() *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 {
		c := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		if c.expiry.Stop() { // otherwise it has been closed
			return c
		}
	}
	return nil
}

// release returns a connection to the pool, where it is closed after idleFor. If the pool is closed, release closes it.
func (s *SMTP) release(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		go c.close()
		return
	}
	c.used = s.clock.Elapsed()
	c.expiry = time.AfterFunc(idleFor, c.close) // pop then passes over it
	s.idle = append(s.idle, c)
}

// Close closes the idle connections. A connection in use is closed after its message.
func (s *SMTP) Close() error {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, c := range idle {
		if c.expiry.Stop() { // otherwise it has been closed
			c.close()
		}
	}
	return nil
}

// Check connects as for a message, with encryption and authentication as configured, and sends no message. It takes
// at most connectWithin. how describes the connection, as in "encrypted, authenticated".
func (s *SMTP) Check(ctx context.Context) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	c, err := s.server.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("connect to the mail server: %w", err)
	}
	defer c.close()

	how = "not encrypted"
	if _, encrypted := c.smtp.TLSConnectionState(); encrypted || s.server.implicitTLS {
		how = "encrypted"
	}
	if s.server.user != "" {
		how += ", authenticated"
	}
	return how, nil
}
