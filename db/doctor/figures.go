// Package doctor examines a database: the waiting work, the stored counts, which it
// corrects, and the server's version, rights and settings.
package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Figures are the numbers that an operator monitors: the waiting work of all clients.
type Figures struct {
	Mail, Simulated outbox.MailBacklog
	// Jobs counts jobs that are due, are running or failed, by kind and state: periodic
	// jobs, and reports with the kind report.
	Jobs []JobFigure
	Waiting
	// Syncs counts the queued and running sync runs, by provider and status; OldestSync
	// is when the oldest of them was queued, zero if there is none.
	Syncs      []DirectoryFigure
	OldestSync time.Time
	// Directories counts the connections of clients, by provider and the status of their
	// last finished run, which is empty before the first.
	Directories []DirectoryFigure
	// Deliveries are the deliveries of events to subscriptions.
	Deliveries outbox.DeliveryBacklog
	// Moves counts the partners that are moving from or to this cell, by step; HeldSince
	// is the earliest time since which a move refuses writes, zero if none does.
	Moves     []MoveFigure
	HeldSince time.Time
	// EndingKeys are the keys that will expire soon.
	EndingKeys []EndingKey
}

// Waiting counts waiting reports and events, and reports whether a process is the leader.
type Waiting struct {
	// Reports is the number of pending reports, and Events the number of events to be
	// published, at most MostEvents. OldestReport is when the oldest of the reports was
	// requested, OldestEvent when the oldest of the events was written; zero for none.
	Reports, Events int
	OldestReport    time.Time `bun:",nullzero"`
	OldestEvent     time.Time `bun:",nullzero"`
	// Published is the number of all events that were ever published.
	Published int64
	// Leader is true if a process seems to run the periodic jobs: at least one of them is
	// not due, or is due for less than ledWithin.
	Leader bool
}

// MoveFigure is the number of partners at a step of a move.
type MoveFigure struct {
	Step string
	N    int
}

// MostEvents is the greatest number of waiting events that are counted.
const MostEvents = 100_000

// ledWithin is how late periodic jobs may be until no process seems to run them.
const ledWithin = time.Minute

// JobFigure counts jobs of one kind and state: available, running, retryable or discarded.
type JobFigure struct {
	Kind, State string
	N           int
	// Since is the earliest time at which one of them was due, will be due, or failed.
	Since time.Time
}

// DirectoryFigure is the number of runs or connections with a provider and a status. The
// provider is empty for runs whose connection was deleted.
type DirectoryFigure struct {
	Provider domain.Directory
	Status   domain.SyncStatus
	N        int
}

// directoryCount is a row of countSyncs: of open runs if Open is true, else of connections.
type directoryCount struct {
	Open     bool
	Provider domain.Directory
	Status   domain.SyncStatus
	N        int
	Since    *time.Time
}

// CountFigures reads the figures in one snapshot, from the standby if there is one. It uses a reserved connection, so
// that requests do not wait for it. The server cancels a statement after the duration within.
func CountFigures(ctx context.Context, d *db.DB, within time.Duration) (f Figures, err error) {
	err = d.FromReplica(ctx, func(ctx context.Context) error {
		return d.ReservedSnapshot(ctx, within, func(ctx context.Context) (err error) {
			f, err = countFigures(ctx, d)
			return err
		})
	})
	return f, err
}

// countFigures reads the figures in the snapshot of ctx.
func countFigures(ctx context.Context, d *db.DB) (f Figures, err error) {
	if f.Mail, f.Simulated, err = outbox.MailBacklogs(ctx, d); err != nil {
		return f, err
	}
	if f.Deliveries, err = outbox.DeliveryBacklogs(ctx, d); err != nil {
		return f, err
	}
	if f.Jobs, err = jobFigures(ctx, d); err != nil {
		return f, err
	}
	if err := countSyncs(ctx, d, &f); err != nil {
		return f, err
	}
	if err := countMoves(ctx, d, &f); err != nil {
		return f, err
	}
	if f.EndingKeys, err = EndingKeys(ctx, d); err != nil {
		return f, err
	}
	f.Waiting, err = countWaiting(ctx, d)
	return f, err
}

// jobFigures counts reports and periodic jobs that are available (due), running (leased) or retryable (a report that
// waits after a failed try), and their failures of the last db.DiscardedFor, as discarded.
func jobFigures(ctx context.Context, d *db.DB) ([]JobFigure, error) {
	now := d.Now()
	return pg.All[JobFigure](ctx, d, "count jobs", pg.SQL(`
		WITH jobs AS (
			SELECT 'report' AS kind, coalesce(due_at, created_at) AS due, lease, tries FROM reports WHERE status = 'pending'
			UNION ALL SELECT kind, due_at, lease, 0 FROM periodic_jobs
		), states AS (
			SELECT kind, due AS since,
				CASE WHEN due <= ?0 THEN 'available' WHEN lease IS NOT NULL THEN 'running' WHEN tries > 0 THEN 'retryable' END AS state
			FROM jobs
			UNION ALL SELECT 'report', updated_at, 'discarded' FROM reports
			WHERE status = 'failed' AND updated_at > ?1 AND tries >= ?2
			UNION ALL SELECT kind, at, 'discarded' FROM periodic_jobs, unnest(failed_at) AS at WHERE at > ?1
		)
		SELECT kind, state, count(*) AS n, min(since) AS since FROM states WHERE state IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2`,
		now, now.Add(-db.DiscardedFor), domain.ReportTries))
}

// countSyncs sets Syncs and OldestSync from the open runs, and Directories from connections and their last ended runs.
func countSyncs(ctx context.Context, d *db.DB, f *Figures) error {
	rows, err := pg.All[directoryCount](ctx, d, "count syncs", pg.SQL(`
		SELECT true AS open, coalesce(k.provider, '') AS provider, r.status, count(*) AS n, min(r.queued_at) AS since
		FROM sync_runs AS r LEFT JOIN directory_connections AS k ON k.client_id = r.client_id
		WHERE r.status IN ('queued', 'running') GROUP BY 2, 3
		UNION ALL
		SELECT false, k.provider, coalesce(r.status, ''), count(*), NULL
		FROM directory_connections AS k JOIN clients AS c ON c.id = k.client_id AND c.archived_at IS NULL
		LEFT JOIN LATERAL (
			SELECT r.status FROM sync_runs AS r WHERE r.client_id = k.client_id AND r.status IN ('completed', 'failed')
			ORDER BY r.queued_at DESC LIMIT 1
		) AS r ON true
		GROUP BY 2, 3`))
	for _, r := range rows {
		figure := DirectoryFigure{r.Provider, r.Status, r.N}
		if !r.Open {
			f.Directories = append(f.Directories, figure)
			continue
		}
		f.Syncs = append(f.Syncs, figure)
		if since := domain.OrZero(r.Since); f.OldestSync.IsZero() || since.Before(f.OldestSync) {
			f.OldestSync = since
		}
	}
	return err
}

// countWaiting reads the fields of Waiting. leader is true unless all periodic jobs are overdue by ledWithin.
func countWaiting(ctx context.Context, d *db.DB) (Waiting, error) {
	return pg.One[Waiting](ctx, d, "count what waits", pg.SQL(`
		SELECT (SELECT count(*) FROM reports WHERE status = 'pending') AS reports,
			(SELECT min(created_at) FROM reports WHERE status = 'pending') AS oldest_report,
			(SELECT count(*) FROM (SELECT FROM events LIMIT ?) AS e) AS events,
			(SELECT recorded_at FROM events ORDER BY recorded_at LIMIT 1) AS oldest_event,
			coalesce((SELECT position FROM event_head), 0) AS published,
			EXISTS (SELECT FROM periodic_jobs WHERE due_at > ?) AS leader`, MostEvents, d.Now().Add(-ledWithin)))
}

// countMoves sets Moves and HeldSince, the earliest time since which a move refuses writes. A move in step holding does
// so until held_until, one in step handing without an end. Both began db.FreezeFor before held_until.
func countMoves(ctx context.Context, d *db.DB, f *Figures) (err error) {
	f.Moves, err = pg.All[MoveFigure](ctx, d, "count moves", pg.SQL(
		"SELECT step, count(*) AS n FROM moves WHERE step IN ('copying', 'holding', 'handing', 'arriving') GROUP BY 1"))
	if err != nil {
		return err
	}
	since, err := pg.One[*time.Time](ctx, d, "look for refused writes", pg.SQL(`
		SELECT min(held_until) - ?::interval FROM moves WHERE step = 'handing' OR step = 'holding' AND held_until > now()`, db.FreezeFor))
	f.HeldSince = domain.OrZero(since)
	return err
}
