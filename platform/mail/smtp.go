package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"partnerapi/domain"
)

const (
	// connectWithin bounds all of connecting: with the greeting, STARTTLS and
	// authentication.
	connectWithin = 20 * time.Second
	// sendWithin bounds handing over one message. It is long, because a server
	// that took a message and was too slow to say so will get it again.
	sendWithin = 30 * time.Second
	// idleFor is how long a connection is kept for the next message, and
	// freshFor how long it is taken to be whole without asking.
	idleFor  = 30 * time.Second
	freshFor = time.Second
	// aliveWithin bounds the answer of an idle connection, goodbyeWithin the
	// end of one.
	aliveWithin   = 10 * time.Second
	goodbyeWithin = time.Second
)

// SMTP sends to one mail server, on connections that it keeps for a while.
type SMTP struct {
	server server
	slots  chan struct{} // one for each connection that may be open
	clock  domain.Clock

	mu     sync.Mutex
	idle   []*connection // the latest used last
	closed bool
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
	return &SMTP{server: s, slots: make(chan struct{}, s.connections), clock: domain.SystemClock{}}, nil
}

// Send hands a message to the server, and begins only if what is left of ctx's
// time covers all of the handing over. A refusal of the address or the content
// for good is a *RefusedError. One of the sender, of the authentication or by the
// server's rules of who may send is not: it means that this service, or the
// server, is configured wrongly, and no mail is lost for that.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	w, err := m.wire()
	if err != nil {
		return err
	}

	begin, cancel := beginning(ctx)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-begin.Done():
		return fmt.Errorf("%w: all connections to the mail server are in use", ErrNotBegun)
	}

	for {
		c, err := s.take(begin)
		if err != nil {
			return err
		}
		reused := !c.used.IsZero()
		err = c.send(w)
		if c.ended {
			_ = c.conn.Close()
		} else {
			s.keep(c)
		}
		var failed *failure
		if !errors.As(err, &failed) {
			return err
		}
		// A reused connection may have ended meanwhile: then the server
		// has received nothing of the message.
		if reused && c.ended && failed.at == partSender {
			continue
		}
		return failed.sorted(w)
	}
}

// beginning is the time in which a message may be begun.
func beginning(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, end.Add(-sendWithin))
	}
	return ctx, func() {}
}

// take returns an idle connection that still works, or a new one, while a
// message may be begun.
func (s *SMTP) take(begin context.Context) (*connection, error) {
	for {
		if begin.Err() != nil {
			return nil, ErrNotBegun
		}
		c := s.pop()
		if c == nil {
			return s.dial(begin)
		}
		if s.clock.Now().Sub(c.used) < freshFor || c.alive(begin) {
			return c, nil
		}
		_ = c.conn.Close()
	}
}

// dial opens a connection. What the end of begin interrupts was no try.
func (s *SMTP) dial(begin context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(begin, connectWithin)
	defer cancel()
	c, err := s.server.connect(ctx)
	switch {
	case err == nil:
		return c, nil
	case begin.Err() != nil:
		return nil, ErrNotBegun
	case ctx.Err() != nil:
		return nil, fmt.Errorf("connect to the mail server: it is not ready after %s", connectWithin)
	}
	return nil, fmt.Errorf("connect to the mail server: %w", err)
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
		go c.close()
		return
	}
	c.used = s.clock.Now()
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
		c.close()
	}
}

// Close ends the idle connections. One in use is ended after its message.
func (s *SMTP) Close() error {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, c := range idle {
		c.drop.Stop()
		c.close()
	}
	return nil
}
