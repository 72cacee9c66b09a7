package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ExecIn runs a statement in the transaction of ctx, for tests of what
// transactions do to each other.
func ExecIn(ctx context.Context, d *DB, query string, args ...any) error {
	_, err := pg.Exec(ctx, d, "run a statement", pg.SQL(query, args...))
	return err
}

// CountUsers moves a client's counters of users.
func (c *Change) CountUsers(client domain.ClientID, active, inactive int) {
	c.countUsers(client, active, inactive)
}
