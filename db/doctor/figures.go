// Package doctor asks a database how it is: what waits, whether stored counts are right,
// and what stands between it and the service. It corrects the counts.
package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Figures are what an operator watches: the waiting work of all clients.
type Figures struct {
	Mail, Simulated outbox.MailBacklog
	// Jobs are the jobs that are not done, by kind and state: the pending reports, of the
	// kind report, and the periodic jobs.
	Jobs []JobFigure
	Waiting
	// Syncs are the open sync runs, by provider and status; OldestSync is when the
	// oldest of them was queued, zero where there is none.
	Syncs      []DirectoryFigure
	OldestSync time.Time
	// Directories are the connections of clients, by provider and the status of their
	// last run that ended; empty before the first.
	Directories []DirectoryFigure
	// Deliveries are those of events to subscriptions.
	Deliveries outbox.DeliveryBacklog
	// Moves counts the partners that move from or to this cell, by step; HeldSince is the
	// time since which a move refuses writes of one, zero if none does.
	Moves     []MoveFigure
	HeldSince time.Time
	// EndingKeys are the keys that end soon.
	EndingKeys []EndingKey
}

// Waiting is what waits for processes, and whether one leads.
type Waiting struct {
	// Reports wait to be made, Events to be published; Events are counted up to MostEvents.
	// OldestReport is when the oldest report was requested, OldestEvent when the oldest
	// event was written; zero if none waits.
	Reports, Events int
	OldestReport    time.Time `bun:",nullzero"`
	OldestEvent     time.Time `bun:",nullzero"`
	// Published is how many events were ever published.
	Published int64
	// Leader says that some process does the periodic jobs: one of them is not due, or
	// not for longer than ledWithin.
	Leader bool
}

// MoveFigure is how many partners are at a step of a move.
type MoveFigure struct {
	Step string
	N    int
}

// MostEvents bounds the count of waiting events.
const MostEvents = 100_000

// ledWithin is how late a periodic job may be before no process seems to do it.
const ledWithin = time.Minute

// JobFigure counts jobs of one kind and state: available, running, retryable or
// discarded.
type JobFigure struct {
	Kind, State string
	N           int
	// Since is when the first of them was, or will be, due.
	Since time.Time
}

// DirectoryFigure counts runs or connections by provider and status. The provider is
// empty for runs whose connection is gone.
type DirectoryFigure struct {
	Provider domain.Directory
	Status   domain.SyncStatus
	N        int
}

type directoryCount struct {
	Open     bool
	Provider domain.Directory
	Status   domain.SyncStatus
	N        int
	Since    *time.Time
}

// CountFigures counts what waits, within a time limit, on the standby where there is one. It
// takes no connection of requests, and the server ends what takes longer.
func CountFigures(ctx context.Context, d *db.DB, within time.Duration) (f Figures, err error) {
	err = d.FromReplica(ctx, func(ctx context.Context) error {
		return d.ReservedSnapshot(ctx, within, func(ctx context.Context) (err error) {
			f, err = countFigures(ctx, d)
			return err
		})
	})
	return f, err
}

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

func countWaiting(ctx context.Context, d *db.DB) (Waiting, error) {
	return pg.One[Waiting](ctx, d, "count what waits", pg.SQL(`
		SELECT (SELECT count(*) FROM reports WHERE status = 'pending') AS reports,
			(SELECT min(created_at) FROM reports WHERE status = 'pending') AS oldest_report,
			(SELECT count(*) FROM (SELECT FROM events LIMIT ?) AS e) AS events,
			(SELECT recorded_at FROM events ORDER BY recorded_at LIMIT 1) AS oldest_event,
			coalesce((SELECT position FROM event_head), 0) AS published,
			EXISTS (SELECT FROM periodic_jobs WHERE due_at > ?) AS leader`, MostEvents, d.Now().Add(-ledWithin)))
}

// countMoves counts the moves in progress. A hold begins db.FreezeFor before its end.
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
