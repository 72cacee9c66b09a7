// Package seed fills a database with invented data: a demonstration that shows
// some of everything, or any number of clients and users to measure with. Both
// are deterministic: on the same day the same call writes the same rows, and
// all dates are relative to that day. Whatever the service stores twice, such
// as scores, counters and summaries, is derived here from the rows that it
// sums up, and so equals a recount.
package seed

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// seedLock is the advisory lock under which rows are seeded, so that two
// processes that start at once do not both find the database empty: "seed" in
// ASCII.
const seedLock = 0x73656564

// inTx runs fill in one transaction on a connection of the pool, alone among
// all that seed the database. It goes by pgx, for COPY.
func inTx(ctx context.Context, d *db.DB, fill func(pgx.Tx) error) error {
	if err := d.LoadTemplates(ctx); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, d.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", seedLock)); err != nil {
			return fmt.Errorf("wait for others that seed: %w", err)
		}
		return fill(tx)
	})
}

// partner is a managed-service provider with its dashboard's admins.
type partner struct {
	id        domain.PartnerID
	name      string
	createdAt time.Time
	admins    []domain.Admin
}

// partnerNamed finds a partner; there is none where the id is zero.
func partnerNamed(ctx context.Context, tx pgx.Tx, name string) (id domain.PartnerID, err error) {
	var text string
	err = tx.QueryRow(ctx, "SELECT coalesce((SELECT id::text FROM partners WHERE name_key = $1), '')",
		domain.SortKey(name)).Scan(&text)
	if err != nil {
		return id, fmt.Errorf("look for the partner %s: %w", name, err)
	}
	if text == "" {
		return id, nil
	}
	return domain.ParseUUID[domain.PartnerKind](text)
}

// vacuumAnalyze tells the planner of the new rows, and lets index-only scans
// trust their pages. PostgreSQL would come to it by itself in a while.
func vacuumAnalyze(ctx context.Context, d *db.DB) error {
	if _, err := d.SQL().ExecContext(ctx, "VACUUM ANALYZE"); err != nil {
		return fmt.Errorf("vacuum what was seeded: %w", err)
	}
	return nil
}
