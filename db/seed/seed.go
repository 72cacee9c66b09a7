// Package seed fills a database with invented data: a demonstration that shows
// some of everything, or any number of clients and users to measure with. Both
// are deterministic: on the same day the same call writes the same rows, and
// all dates are relative to that day. Scores, counters and summaries are derived
// here from the rows that they sum up, and so equal a recount; mails by day and
// uses of templates are counted at the end, as doctor counts them.
package seed

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// seedLock is the advisory lock under which rows are seeded, so that two
// processes that start at once do not both find the database empty: "seed" in
// ASCII.
const seedLock = 0x73656564

// inTx runs fill in one transaction, alone among all that seed the database.
func inTx(ctx context.Context, d *db.DB, fill func(context.Context) error) error {
	if err := d.LoadTemplates(ctx); err != nil {
		return err
	}
	return d.Tx(ctx, func(ctx context.Context) error {
		_, err := pg.Exec(ctx, d, "wait for others that seed", pg.SQL("SELECT pg_advisory_xact_lock(?)", seedLock))
		if err != nil {
			return err
		}
		return fill(ctx)
	})
}

// addCounts counts the mails that were seeded.
func addCounts(ctx context.Context, d *db.DB) error {
	return doctor.AddCounts(ctx, d, "phishing by day", "uses of templates")
}

// one returns the first value of a query of one column; zero if it returns no row.
func one[T any](ctx context.Context, d *db.DB, doing, query string, args ...any) (value T, err error) {
	found, err := pg.All[T](ctx, d, doing, pg.SQL(query, args...))
	if len(found) > 0 {
		value = found[0]
	}
	return value, err
}

// partnerNamed returns the id of a partner; zero if there is none.
func partnerNamed(ctx context.Context, d *db.DB, name string) (domain.PartnerID, error) {
	return one[domain.PartnerID](ctx, d, "look for the partner "+name,
		"SELECT id FROM partners WHERE name_key = ?", domain.SortKey(name))
}

// vacuumAnalyze updates the planner's statistics of the new rows, and lets index-only
// scans trust their pages. Autovacuum would do so later.
func vacuumAnalyze(ctx context.Context, d *db.DB) error {
	_, err := pg.Exec(ctx, d, "vacuum what was seeded", pg.SQL("VACUUM ANALYZE"))
	return err
}
