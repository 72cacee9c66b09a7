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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// connection is a connection to a mail server, ready for messages.
type connection struct {
	conn net.Conn
	smtp *smtp.Client
	used time.Duration // when it was last released to the pool, by Elapsed
	// expiry closes the connection after idleFor in the pool.
	expiry *time.Timer
	// ended is true if the connection cannot send more messages.
	ended bool
}

// connect opens a connection and does the handshake, before ctx ends.
func (s *server) connect(ctx context.Context) (*connection, error) {
	var conn net.Conn
	var err error
	address := net.JoinHostPort(s.host, strconv.Itoa(s.port))
	if s.implicitTLS {
		conn, err = (&tls.Dialer{Config: s.tlsConfig()}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn}
	err = c.runUntil(ctx, func() (err error) {
		c.smtp, err = s.handshake(conn)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// runUntil runs do. If ctx ends first, it closes the connection, which ends do, and returns ctx's error.
func (c *connection) runUntil(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	err := do()
	if !stop() {
		return ctx.Err()
	}
	return err
}

// handshake sends the greeting, encrypts the connection as the options say, and authenticates if there is a user.
func (s *server) handshake(conn net.Conn) (*smtp.Client, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}

	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("read the greeting: %w", err)
	}
	if err := c.Hello(name); err != nil {
		return nil, fmt.Errorf("send EHLO: %w", err)
	}
	if !s.implicitTLS && s.starttls != never {
		if known, _ := c.Extension("STARTTLS"); known {
			if err := c.StartTLS(s.tlsConfig()); err != nil {
				return nil, fmt.Errorf("encrypt the connection: %w", err)
			}
		} else if s.starttls == required {
			return nil, fmt.Errorf("%s does not offer STARTTLS, but the SMTP URL requires it (starttls=required)", s.host)
		}
	}
	if s.user == "" {
		return c, nil
	}

	auth, err := s.selectAuth(c)
	if err == nil {
		err = c.Auth(auth)
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return c, nil
}

// selectAuth returns the strongest method of authentication that the server supports, or an error if the server
// supports none of the list. PLAIN and LOGIN disclose the password, so they fail on a connection that is neither
// encrypted nor local.
func (s *server) selectAuth(c *smtp.Client) (smtp.Auth, error) {
	known, names := c.Extension("AUTH")
	if !known {
		return nil, fmt.Errorf("%s does not offer authentication", s.host)
	}
	supported := strings.Fields(names)
	for _, method := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(s.user, s.password)},
		{"SCRAM-SHA-1", smtp.ScramSHA1Auth(s.user, s.password)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(s.user, s.password)},
		{"PLAIN", smtp.PlainAuth("" /* identity */, s.user, s.password, s.host, false /* unencrypted */)},
		{"LOGIN", smtp.LoginAuth(s.user, s.password, s.host, false /* unencrypted */)},
	} {
		if slices.ContainsFunc(supported, func(name string) bool { return strings.EqualFold(name, method.name) }) {
			return method.auth, nil
		}
	}
	return nil, fmt.Errorf("%s offers none of the supported authentication methods, only %s", s.host, names)
}

// ping reports whether an idle connection still works. It waits until ctx ends, at most aliveWithin.
func (c *connection) ping(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	return c.conn.SetDeadline(time.Time{} /* none */) == nil && c.runUntil(ctx, c.smtp.Noop) == nil
}

// send sends a message. Only its timeout, sendWithin, interrupts it: a stop would leave the outcome unknown. If an
// address needs SMTPUTF8 and the server lacks it, the error is unsupportedError's. Any other error is a *failure.
func (c *connection) send(w wire) error {
	if needsSMTPUTF8(w.from) || needsSMTPUTF8(w.to) {
		if known, _ := c.smtp.Extension("SMTPUTF8"); !known {
			return unsupportedError(w)
		}
	}

	if err := c.conn.SetDeadline(time.Now().Add(sendWithin)); err != nil {
		return c.fail(stepSender, err)
	}
	c.smtp.SkipSMTPUTF8(!needsSMTPUTF8(w.from) && !needsSMTPUTF8(w.to))
	if err := c.smtp.Mail(w.from.String()); err != nil {
		return c.fail(stepSender, err)
	}

	if err := c.smtp.Rcpt(w.to.String()); err != nil {
		return c.fail(stepAddress, err)
	}
	body, err := c.smtp.Data()
	if err != nil {
		return c.fail(stepContent, err)
	}
	if _, err := body.Write(w.data); err != nil {
		return c.fail(stepContent, err)
	}
	if err := body.Close(); err != nil { // Close ends the message, and waits for the response
		f := c.fail(stepContent, err)
		code, _ := f.answer()
		f.unanswered = code == 0 // the server may have accepted the message
		return f
	}
	return nil
}

// fail returns the failure at a step. It sets ended if the server did not answer or closes the connection. Otherwise it
// resets the connection for the next message, and sets ended if that fails.
func (c *connection) fail(at step, err error) *failure {
	f := &failure{at: at, err: err}
	code, _ := f.answer()
	c.ended = code == 0 || code == closing || c.smtp.Reset() != nil
	return f
}

// unsupportedError returns the error for an address that needs SMTPUTF8: a *RefusedError if it is the recipient's, but
// not if it is the sender's, which the operator can correct.
func unsupportedError(w wire) error {
	const why = "has letters before its @ that the mail server does not support (it does not offer SMTPUTF8)"
	if needsSMTPUTF8(w.from) {
		return errors.New("the sender's address " + why)
	}
	return &RefusedError{Reason: "the address " + why}
}

// close ends the session with QUIT, within goodbyeWithin, and closes the connection.
func (c *connection) close() {
	if c.conn.SetDeadline(time.Now().Add(goodbyeWithin)) != nil || c.smtp.Quit() != nil { // else Quit has closed it
		_ = c.conn.Close()
	}
}

// step is a step of an SMTP transaction.
type step string

const (
	stepSender  step = "the sender"
	stepAddress step = "the address"
	stepContent step = "the message"
)

// closing is the status with which a server ends a connection.
const closing = 421

// failure is the error of a message that was not delivered: err is the server's answer (*textproto.Error), or the error
// of the connection.
type failure struct {
	at         step
	err        error
	unanswered bool // the server was sent the whole message and did not answer
}

// Error contains the server's answer, which may contain the recipient's address.
func (f *failure) Error() string {
	code, text := f.answer()
	if code == 0 {
		return fmt.Sprintf("the connection to the mail server failed before the server confirmed %s: %v", f.at, f.err)
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

// enhancedStatus matches the subject and detail of an RFC 3463 status at the start of a response.
var enhancedStatus = regexp.MustCompile(`^[245]\.(\d{1,3})\.(\d{1,3})\b`)

// isPermanent reports whether the server refuses the message for good. Refusals of this service (its sender, its IP
// address or its password) are not permanent, because the operator may correct them; many servers send them only as an
// answer to the recipient.
func (f *failure) isPermanent() bool {
	code, text := f.answer()
	var subject, detail string
	if match := enhancedStatus.FindStringSubmatch(text); match != nil {
		subject, detail = match[1], match[2]
	}
	switch {
	case code < 500 || code > 599 || f.at == stepSender:
		return false
	case code == 530 || code == 534 || code == 535 || code == 538: // authentication or encryption is required
		return false
	case f.at == stepAddress && subject == "7": // a policy, such as that this service may not send through the server
		return false
	case f.at == stepAddress && subject == "1" && (detail == "7" || detail == "8"): // the sender's address is refused
		return false
	}
	return true
}

// classify returns a permanent failure as a *RefusedError. It returns a temporary failure as an error for the log,
// without any form of the recipient's address: a *MaybeSentError if the failure is unanswered.
func (f *failure) classify(w wire) error {
	if f.isPermanent() {
		return &RefusedError{Reason: f.Error()}
	}
	address := regexp.MustCompile("(?i)" + strings.Join([]string{
		regexp.QuoteMeta(w.recipient), regexp.QuoteMeta(w.to.Address), regexp.QuoteMeta(strings.Trim(w.to.String(), "<>")),
	}, "|"))
	err := errors.New(address.ReplaceAllLiteralString(f.Error(), "…"))
	if f.unanswered {
		return &MaybeSentError{err}
	}
	return err
}
