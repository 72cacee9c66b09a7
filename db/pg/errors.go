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

// TranslateError turns the driver's error into the domain's, once and in one place: a unique
// violation into the clash of its constraint, an outage into Unavailable, and any other into
// an internal error that says what was being done.
func (d *DB) TranslateError(doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *domain.Error
	if errors.As(err, &known) {
		return err
	}
	var answered *pgconn.PgError
	if errors.As(err, &answered) && answered.Code == uniqueViolation {
		if clash, ok := d.clashes[answered.ConstraintName]; ok {
			return clash
		}
	}
	if outage := Unavailable(doing, err); outage != nil {
		return outage
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Unavailable returns the error for callers if err is of the connection or the server, not of
// a statement (decisions 2.6), and nil for all others.
func Unavailable(doing string, err error) *domain.Error {
	if err == nil || !unavailable(err) {
		return nil
	}
	return &domain.Error{
		Code: domain.Unavailable, Message: "temporarily offline; try again later", RetryAfter: retryUnavailable,
		Cause: fmt.Errorf("%s: %w", doing, err),
	}
}

const (
	uniqueViolation = "23505"

	// retryUnavailable is the Retry-After while the database cannot be used: that soon after a
	// standby was promoted, writes succeed again.
	retryUnavailable = 2 * time.Second
)

// outages are the SQLSTATEs, or classes of them, that are about the server rather
// than of the statement (decisions 2.6). 08: connection; 40: rolled back for the
// sake of another transaction; 53: out of connections, memory or disk; 57P: shutting
// down, starting up, or the database dropped; 25006: a standby, which takes no
// writes; 57014: cancelled for taking too long; 55P03: a lock not available in
// time; 25P03: idle in a transaction for too long.
var outages = []string{"08", "40", "53", "57P", "25006", "57014", "55P03", "25P03"}

// unavailable reports whether an error is one of the connection or the server.
// A connection that is refused is an outage whatever the reason is.
func unavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) {
		return true
	}
	var answered interface{ SQLState() string }
	if errors.As(err, &answered) {
		return slices.ContainsFunc(outages, func(class string) bool { return strings.HasPrefix(answered.SQLState(), class) })
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") // the driver has no error for it
}

// Retryable reports whether PostgreSQL rolled a transaction back because of another one, as in
// a deadlock: a retry may succeed.
func Retryable(err error) bool { return refusedAs(err, "40") }

// Denied reports whether PostgreSQL refused a statement for lack of a privilege.
func Denied(err error) bool { return refusedAs(err, "42501") }

// UniqueViolation reports whether a statement failed because a row exists already, such as one
// that another transaction added after this one's read.
func UniqueViolation(err error) bool { return refusedAs(err, uniqueViolation) }

// refusedAs reports whether PostgreSQL answered with one of the SQLSTATEs, or classes of them.
func refusedAs(err error, codes ...string) bool {
	var answered *pgconn.PgError
	return errors.As(err, &answered) &&
		slices.ContainsFunc(codes, func(class string) bool { return strings.HasPrefix(answered.Code, class) })
}
