package db

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/db/outage"
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
	if away := outage.Of(doing, err); away != nil {
		return away
	}
	return fmt.Errorf("%s: %w", doing, err)
}
