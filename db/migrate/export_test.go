package migrate

import (
	"context"
	"errors"

	"partnerapi/db"
)

// RemakeKeys runs the migration of keys again, and returns what clashes.
func RemakeKeys(ctx context.Context, d *db.DB) ([]Clash, error) {
	tx, err := d.SQL().BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // a no-op after a commit
	if err := errors.Join(remakeKeys(ctx, tx), tx.Commit()); err != nil {
		return nil, err
	}
	return Clashes(ctx, d)
}

// UpTo brings the database to the tables of a version.
func UpTo(ctx context.Context, d *db.DB, version int64) error {
	migrations, err := provider(d)
	if err == nil {
		_, err = migrations.UpTo(ctx, version)
	}
	return err
}
