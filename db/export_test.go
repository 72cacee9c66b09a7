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

// RemakeKeys runs the migration of keys again, and returns what it notes.
func RemakeKeys(ctx context.Context, d *DB) (notes []string, err error) {
	tx, err := d.SQL().BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // a no-op after a commit
	if err := remakeKeys(ctx, tx, func(note string) { notes = append(notes, note) }); err != nil {
		return nil, err
	}
	return notes, tx.Commit()
}
