// Package outage tells the outage of a database from the failure of a statement,
// for the packages that speak to one.
package outage

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

	"partnerapi/domain"
)

// retryUnavailable is what callers are told to wait when the database cannot be
// reached.
const retryUnavailable = 5 * time.Second

// Of returns the error as callers are to see it where it is one of the
// connection and not of a statement (decisions 2.6), and nil for all others.
func Of(doing string, err error) *domain.Error {
	if err == nil || !unreachable(err) {
		return nil
	}
	return &domain.Error{
		Code: domain.Unavailable, Message: "temporarily offline; try again later", RetryAfter: retryUnavailable,
		Cause: fmt.Errorf("%s: %w", doing, err),
	}
}

// outages are the classes of SQLSTATE that tell of the server rather than of
// the statement. 08: connection; 40: given up for the sake of another
// transaction; 53: out of connections or memory; 57P: being shut down or
// starting up; 25006: a standby, which takes no writes.
var outages = []string{"08", "40", "53", "57P", "25006"}

func unreachable(err error) bool {
	var answered interface{ SQLState() string }
	if errors.As(err, &answered) {
		return slices.ContainsFunc(outages, func(class string) bool { return strings.HasPrefix(answered.SQLState(), class) })
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") // the driver has no error for it
}
