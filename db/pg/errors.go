package pg

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

// TranslateError converts an error of the driver: a unique violation to the error of its constraint (WithClashes), if
// it has one, and an outage to Unavailable. It wraps any other error with the action during which it occurred. It does
// not change nil or a *domain.Error.
func (d *DB) TranslateError(action string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*domain.Error](err); known {
		return err
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == uniqueViolation {
		if clash, ok := d.clashes[refusal.ConstraintName]; ok {
			return clash
		}
	}
	if outage := Unavailable(action, err); outage != nil {
		return outage
	}
	return fmt.Errorf("%s: %w", action, err)
}

// Unavailable returns the error for callers if err is an error of the connection or the server, not of a statement
// (decisions 2.6), and nil otherwise.
func Unavailable(action string, err error) *domain.Error {
	if err == nil || !unavailable(err) {
		return nil
	}
	return &domain.Error{
		Code: domain.Unavailable, Message: "temporarily offline; try again later", RetryAfter: retryUnavailable,
		Cause: fmt.Errorf("%s: %w", action, err),
	}
}

const (
	uniqueViolation = "23505"

	// retryUnavailable is the Retry-After while the database cannot be used. It is about the time in which writes
	// succeed again after a standby was promoted.
	retryUnavailable = 2 * time.Second
)

// outages are the SQLSTATEs, or prefixes of SQLSTATEs, of errors of the server, not of a statement (decisions 2.6). 08:
// connection; 40: rolled back because of another transaction; 53: out of connections, memory or disk; 57P: shutting
// down, starting up, or the database was dropped; 25006: a standby, which accepts no writes; 57014: cancelled by a
// timeout; 55P03: a lock not available in time; 25P03: idle in a transaction for too long; 25P04: in it for too long.
var outages = []string{"08", "40", "53", "57P", "25006", "57014", "55P03", "25P03", "25P04"}

// unavailable reports whether err is an error of the connection or the server. A failure to connect is such an error,
// whatever its reason. A canceled context is none.
func unavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusedAs(err, outages...)
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") // the driver has no error value for it
}

// DecisiveFailure returns err with the text of a failure to connect reduced to the attempts that decided it. The driver
// tries each address with TLS first and then, unless sslmode requires TLS, without. Of a server that speaks no TLS the
// first attempt says only that, and repeated failures say nothing new. Other errors are returned as they are.
func DecisiveFailure(err error) error {
	failure, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	attempts, ok := failure.Unwrap().(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var decisive, refusedTLS []string
	for _, attempt := range attempts.Unwrap() {
		switch text := attempt.Error(); {
		case strings.HasSuffix(text, "server refused TLS connection"): // the driver has no error value for it
			refusedTLS = append(refusedTLS, text)
		case !slices.Contains(decisive, text):
			decisive = append(decisive, text)
		}
	}
	if decisive == nil { // TLS is required
		decisive = slices.Compact(refusedTLS)
	}
	short := fmt.Sprintf("failed to connect to `user=%s database=%s`: %s", failure.Config.User, failure.Config.Database,
		strings.Join(decisive, "; "))
	return decisiveError{err, strings.Replace(err.Error(), failure.Error(), short, 1)}
}

// decisiveError is an error with another text.
type decisiveError struct {
	error
	text string
}

func (e decisiveError) Error() string { return e.text }

func (e decisiveError) Unwrap() error { return e.error }

// Retryable reports whether PostgreSQL rolled a transaction back because of another transaction, for example in a
// deadlock, so that a retry may succeed.
func Retryable(err error) bool { return refusedAs(err, "40") } // class 40: transaction rollback

// Denied reports whether PostgreSQL refused a statement for lack of a privilege.
func Denied(err error) bool { return refusedAs(err, "42501") } // insufficient_privilege

// UniqueViolation reports whether a statement failed because of a unique constraint. The other row may be one that
// another transaction inserted after this transaction read.
func UniqueViolation(err error) bool { return refusedAs(err, uniqueViolation) }

// refusedAs reports whether err is an error of PostgreSQL with one of the SQLSTATEs, or prefixes of SQLSTATEs.
func refusedAs(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(refusal.Code, code) })
}
