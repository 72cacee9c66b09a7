package idmap

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

// retryUnavailable is what callers are told to wait when the database cannot be
// reached.
const retryUnavailable = 5 * time.Second

// told is an error of the driver as callers are to see it: Unavailable where the
// database cannot be reached (decisions 2.6), and all others as they are.
func told(err error) error {
	if err == nil || !unreachable(err) {
		return err
	}
	return &domain.Error{
		Code: domain.Unavailable, Message: "temporarily offline; try again later", RetryAfter: retryUnavailable, Cause: err,
	}
}

// unreachable reports an error of the connection rather than of the statement.
func unreachable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// 08: connection; 53: out of connections or memory; 57P: being shut
		// down or starting up.
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P")
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed")
}
