// Package seed fills a database with generated data: a demonstration with all kinds of data, or any number of clients
// and users for benchmarks. Both are deterministic: on the same day the same call writes the same rows, and all dates
// are relative to that day. The package computes scores, counters and summaries from the generated rows, so that they
// equal a recount. Emails by day and uses of templates are counted at the end, by package doctor.
package seed

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// seedLock is the advisory lock that is held while rows are seeded, so that two processes that start at the same time
// do not both find the database empty. Its value is "seed" in ASCII.
const seedLock = 0x73656564

// inTx loads the service's own templates, and runs fill in one transaction that holds seedLock.
func inTx(ctx context.Context, d *db.DB, fill func(context.Context) error) error {
	if err := d.LoadTemplates(ctx); err != nil {
		return err
	}
	return d.Tx(ctx, func(ctx context.Context) error {
		err := pg.Run(ctx, d, "wait for others that seed", pg.SQL("SELECT pg_advisory_xact_lock(?)", seedLock))
		if err != nil {
			return err
		}
		return fill(ctx)
	})
}

// addCounts counts the seeded emails by label, day and template. None of those with a label is cancelled.
func addCounts(ctx context.Context, d *db.DB) error {
	err := pg.Run(ctx, d, "count the emails of labels", pg.SQL(`
		INSERT INTO phishing_labels (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
		SELECT client_id, label_key, min(label), count(*), 0, min(send_at), max(send_at)
		FROM phishing_results WHERE label_key IS NOT NULL GROUP BY 1, 2 ON CONFLICT DO NOTHING`))
	if err != nil {
		return err
	}
	return doctor.AddCounts(ctx, d, "phishing by day", "phishing by label and day", "uses of templates")
}

// partnerNamed returns the id of the partner with a name, or zero if there is none.
func partnerNamed(ctx context.Context, d *db.DB, name string) (domain.PartnerID, error) {
	id, err := pg.One[*domain.PartnerID](ctx, d, "look for the partner "+name,
		pg.SQL("SELECT (SELECT id FROM partners WHERE name_key = ?)", domain.SortKey(name)))
	return domain.OrZero(id), err
}

// vacuumAnalyze updates the planner's statistics and the visibility map, which index-only scans need. Autovacuum would
// do so only later.
func vacuumAnalyze(ctx context.Context, d *db.DB) error {
	return pg.Run(ctx, d, "vacuum seeded tables", pg.SQL("VACUUM ANALYZE"))
}
