package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

// clashes says what the violation of each unique constraint means to callers.
var clashes = map[string]*domain.Error{
	"partners_name_unique":       domain.ErrConflict("partner", "a partner with this name already exists"),
	"clients_name_unique":        domain.ErrConflict("client", "a client with this name already exists"),
	"users_email_unique":         domain.ErrConflict("user", "a user with this email already exists for this client"),
	"collections_name_unique":    domain.ErrConflict("collection", "a collection with this name already exists for this client"),
	"admins_client_email_unique": domain.ErrConflict("admin", "this email is already an admin of this client"),
}

// retryUnavailable is what callers are told to wait when the database cannot
// be reached.
const retryUnavailable = 5 * time.Second

// bad turns the driver's error into the domain's, once and in one place: a
// clash by its constraint, Unavailable where the database cannot be reached,
// and anything else as an internal error that says what was being done.
func (d *DB) bad(doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *domain.Error
	if errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if clash, ok := clashes[pg.ConstraintName]; ok && pg.Code == "23505" {
			return clash
		}
	}
	if unreachable(err, pg) {
		return &domain.Error{Code: domain.Unavailable, Message: "temporarily offline; try again later", RetryAfter: retryUnavailable, Cause: fmt.Errorf("%s: %w", doing, err)}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// unreachable reports an error of the connection rather than of the statement.
func unreachable(err error, pg *pgconn.PgError) bool {
	if pg != nil {
		// 08: connection; 53: out of connections or memory; 57P: being shut
		// down or starting up; 25006: a standby, which takes no writes.
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "25006"
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
