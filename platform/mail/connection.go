package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// connection is one to a mail server that may be given messages.
type connection struct {
	conn net.Conn
	smtp *smtp.Client
	used time.Time   // when the last message was handed over; zero for none
	drop *time.Timer // ends the connection when it was idle for too long
	// ended says that nothing more can be handed over.
	ended bool
}

// connect opens a connection, as long as ctx lasts, up to where messages may be
// handed over.
func (s *server) connect(ctx context.Context) (*connection, error) {
	var conn net.Conn
	var err error
	address := net.JoinHostPort(s.host, strconv.Itoa(s.port))
	if s.implicitTLS {
		conn, err = (&tls.Dialer{Config: s.tls()}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn}
	err = c.interruptible(ctx, func() (err error) {
		c.smtp, err = s.handshake(conn)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// interruptible runs do and closes the connection if ctx ends first.
func (c *connection) interruptible(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	err := do()
	if !stop() {
		return ctx.Err()
	}
	return err
}

// handshake does what comes before the first message.
func (s *server) handshake(conn net.Conn) (*smtp.Client, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}

	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("its greeting: %w", err)
	}
	if err := c.Hello(name); err != nil {
		return nil, fmt.Errorf("its answer to the greeting: %w", err)
	}
	if !s.implicitTLS && s.starttls != never {
		if known, _ := c.Extension("STARTTLS"); known {
			if err := c.StartTLS(s.tls()); err != nil {
				return nil, fmt.Errorf("encrypt the connection: %w", err)
			}
		} else if s.starttls == required {
			return nil, fmt.Errorf("%s does not offer STARTTLS, and the SMTP URL says starttls=required", s.host)
		}
	}
	if s.user == "" {
		return c, nil
	}

	auth, err := s.authentication(c)
	if err == nil {
		err = c.Auth(auth)
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return c, nil
}

// authentication is the best way that the server knows. The last two show the
// password to the server; they are refused on a connection that is neither
// encrypted nor of this machine.
func (s *server) authentication(c *smtp.Client) (smtp.Auth, error) {
	known, names := c.Extension("AUTH")
	if !known {
		return nil, fmt.Errorf("%s does not offer authentication", s.host)
	}
	for _, way := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(s.user, s.password)},
		{"SCRAM-SHA-1", smtp.ScramSHA1Auth(s.user, s.password)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(s.user, s.password)},
		{"PLAIN", smtp.PlainAuth("", s.user, s.password, s.host, false)},
		{"LOGIN", smtp.LoginAuth(s.user, s.password, s.host, false)},
	} {
		for name := range strings.FieldsSeq(names) {
			if strings.EqualFold(name, way.name) {
				return way.auth, nil
			}
		}
	}
	return nil, fmt.Errorf("%s offers no way of authentication that is known here, but %s", s.host, names)
}

// alive asks an idle connection whether it still works, as long as ctx lasts.
func (c *connection) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	return c.conn.SetDeadline(time.Time{}) == nil && c.interruptible(ctx, c.smtp.Noop) == nil
}

// send gives a message to the server. Nothing but its own bound interrupts it,
// so that there is no doubt about what became of it. What the server or the
// connection did is a *failure.
func (c *connection) send(w wire) error {
	if international(w.from) || international(w.to) {
		if known, _ := c.smtp.Extension("SMTPUTF8"); !known {
			return unsupported(w)
		}
	}

	if err := c.conn.SetDeadline(time.Now().Add(sendWithin)); err != nil {
		return c.fail(partSender, err)
	}
	c.smtp.SkipSMTPUTF8(!international(w.from) && !international(w.to))
	if err := c.smtp.Mail(w.from.String()); err != nil {
		return c.fail(partSender, err)
	}

	if err := c.smtp.Rcpt(w.to.String()); err != nil {
		return c.fail(partAddress, err)
	}
	body, err := c.smtp.Data()
	if err != nil {
		return c.fail(partContent, err)
	}
	if _, err = body.Write(w.data); err == nil {
		err = body.Close() // which waits for the answer
	}
	if err != nil {
		return c.fail(partContent, err)
	}
	return nil
}

// fail makes a server that refused a part of a message ready for the next one.
func (c *connection) fail(at part, err error) error {
	f := &failure{at, err}
	c.ended = f.final() || c.smtp.Reset() != nil
	return f
}

// unsupported is the error for an address that needs SMTPUTF8. Of the sender's
// it is the configuration's fault.
func unsupported(w wire) error {
	const why = "has letters before its @ that the mail server does not support (it does not offer SMTPUTF8)"
	if international(w.from) {
		return errors.New("the sender's address " + why)
	}
	return &RefusedError{Reason: "the address " + why}
}

// close says goodbye, if that is quick.
func (c *connection) close() {
	if c.conn.SetDeadline(time.Now().Add(goodbyeWithin)) != nil || c.smtp.Quit() != nil {
		_ = c.conn.Close()
	}
}
