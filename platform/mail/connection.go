package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// connection is a connection to a mail server, ready for messages.
type connection struct {
	conn net.Conn
	smtp *smtp.Client
	used time.Time   // when the last message was handed over; zero for none
	drop *time.Timer // ends the connection when it was idle for too long
	// ended says that the connection takes no more messages.
	ended bool
}

// connect opens a connection, within ctx, and prepares it for messages.
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

// interruptible runs do, and closes the connection if ctx ends first.
func (c *connection) interruptible(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	err := do()
	if !stop() {
		return ctx.Err()
	}
	return err
}

// handshake greets, encrypts and authenticates.
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

// authentication returns the best method that the server supports. PLAIN and LOGIN disclose the password to the
// server, so they are refused on a connection that is neither encrypted nor local.
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

// ping reports whether an idle connection still works, within ctx.
func (c *connection) ping(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	return c.conn.SetDeadline(time.Time{}) == nil && c.interruptible(ctx, c.smtp.Noop) == nil
}

// send sends a message. Only its own timeout interrupts it, so that the outcome is certain. A failure of the server
// or the connection is a *failure.
func (c *connection) send(w wire) error {
	if international(w.from) || international(w.to) {
		if known, _ := c.smtp.Extension("SMTPUTF8"); !known {
			return errUnsupported(w)
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
	if _, err := body.Write(w.data); err != nil {
		return c.fail(partContent, err)
	}
	if err := body.Close(); err != nil { // which waits for the answer
		f := c.fail(partContent, err)
		code, _ := f.answer()
		f.unanswered = code == 0
		return f
	}
	return nil
}

// fail returns the failure at a part of a message, and resets the connection for the next message.
func (c *connection) fail(at part, err error) *failure {
	f := &failure{at: at, err: err}
	c.ended = f.endsConnection() || c.smtp.Reset() != nil
	return f
}

// errUnsupported returns the error for an address that needs SMTPUTF8. A sender's address is a fault of the
// configuration.
func errUnsupported(w wire) error {
	const why = "has letters before its @ that the mail server does not support (it does not offer SMTPUTF8)"
	if international(w.from) {
		return errors.New("the sender's address " + why)
	}
	return &RefusedError{Reason: "the address " + why}
}

// close quits, with a short timeout.
func (c *connection) close() {
	if c.conn.SetDeadline(time.Now().Add(goodbyeWithin)) != nil || c.smtp.Quit() != nil {
		_ = c.conn.Close()
	}
}

// part is the step of an SMTP transaction.
type part string

const (
	partSender  part = "the sender"
	partAddress part = "the address"
	partContent part = "the message"
)

// closing is the status with which a server ends a connection.
const closing = 421

// failure is why a message was not delivered: the server's answer (*textproto.Error), or the end of the connection.
type failure struct {
	at  part
	err error
	// unanswered says that the server was given the whole message and did not answer.
	unanswered bool
}

// Error shows the server's answer, which may name the reader's address.
func (f *failure) Error() string {
	code, text := f.answer()
	if code == 0 {
		return fmt.Sprintf("the connection to the mail server failed at %s: %v", f.at, f.err)
	}
	return fmt.Sprintf("the mail server refuses %s: %d %s", f.at, code, strings.Join(strings.Fields(text), " "))
}

// answer returns the server's answer; code 0 for none.
func (f *failure) answer() (code int, text string) {
	var answer *textproto.Error
	if errors.As(f.err, &answer) {
		return answer.Code, answer.Msg
	}
	return 0, ""
}

// endsConnection reports whether the connection ended, or the server is ending it.
func (f *failure) endsConnection() bool {
	code, _ := f.answer()
	return code == 0 || code == closing
}

// enhancedStatus matches the subject and detail of an RFC 3463 status at the start of an answer.
var enhancedStatus = regexp.MustCompile(`^[245]\.(\d{1,3})\.(\d{1,3})\b`)

// permanent reports whether retrying is futile. Refusals because of this service (its sender, address or password)
// are not permanent, as they may be corrected; many servers report them only when they get the recipient.
func (f *failure) permanent() bool {
	code, text := f.answer()
	var subject, detail string
	if found := enhancedStatus.FindStringSubmatch(text); found != nil {
		subject, detail = found[1], found[2]
	}
	switch {
	case code < 500 || code > 599 || f.at == partSender:
		return false
	case code == 530 || code == 534 || code == 535 || code == 538: // authentication or encryption is required
		return false
	case f.at == partAddress && subject == "7": // a rule, such as that this service may not send through the server
		return false
	case f.at == partAddress && subject == "1" && (detail == "7" || detail == "8"): // the sender's address after all
		return false
	}
	return true
}

// classify returns a permanent refusal as a *RefusedError, and a temporary one as an error for the log, without the
// reader's address.
func (f *failure) classify(w wire) error {
	if f.permanent() {
		return &RefusedError{Reason: f.Error()}
	}
	named := regexp.MustCompile("(?i)" + strings.Join([]string{
		regexp.QuoteMeta(w.asked), regexp.QuoteMeta(w.to.Address), regexp.QuoteMeta(strings.Trim(w.to.String(), "<>")),
	}, "|"))
	err := errors.New(named.ReplaceAllLiteralString(f.Error(), "…"))
	if f.unanswered {
		return &MaybeSentError{err}
	}
	return err
}
