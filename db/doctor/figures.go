package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Figure is a number that an operator monitors: the value of a metric.
type Figure struct {
	// Metric is its name, without the prefix of all metrics. Labels are the values of its labels.
	Metric string
	Labels []string `bun:"labels,array"`
	Value  float64
}

const (
	// MostEvents is the greatest number of waiting events that are counted.
	MostEvents = 100_000
	// ledWithin is how late periodic jobs may be until no process seems to run them.
	ledWithin = time.Minute
)

// CountFigures reads the figures of all clients' waiting work in one snapshot, from the standby if there is one. Those
// that are 0 may be missing. It uses a reserved connection, so that requests do not wait for it. The server cancels a
// statement after the duration within.
func CountFigures(ctx context.Context, d *db.DB, within time.Duration) (all []Figure, err error) {
	err = d.FromReplica(ctx, func(ctx context.Context) error {
		return d.ReservedSnapshot(ctx, within, func(ctx context.Context) error {
			all = nil
			for _, count := range []func(context.Context, *db.DB, time.Time) ([]Figure, error){
				mailFigures, deliveryFigures, jobFigures, syncFigures, moveFigures, keyFigures, waitingFigures,
			} {
				figures, err := count(ctx, d, d.Now())
				if err != nil {
					return err
				}
				all = append(all, figures...)
			}
			return nil
		})
	})
	return all, err
}

// age returns the seconds since a time: 0 for the zero time, and for one that lies ahead.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at)).Seconds()
}

// ageOf is the SQL expression of the seconds from a time to ?0, as age returns them. NULL is no time.
func ageOf(at string) string {
	return "greatest(0, coalesce(extract(epoch FROM ?0::timestamptz - " + at + "), 0))::float8"
}

// mailFigures returns the backlogs of requested and of simulated mail.
func mailFigures(ctx context.Context, d *db.DB, now time.Time) (all []Figure, err error) {
	mail, simulated, err := outbox.MailBacklogs(ctx, d)
	for kind, b := range map[db.OutboxKind]outbox.MailBacklog{db.RequestedMail: mail, db.SimulatedMail: simulated} {
		all = append(all, Figure{"mails", []string{string(kind), "waiting"}, float64(b.Waiting)},
			Figure{"mails", []string{string(kind), "failed"}, float64(b.Failed)},
			Figure{"mail_oldest_seconds", []string{string(kind)}, age(now, b.Oldest)})
	}
	return all, err
}

// deliveryFigures returns the backlog of deliveries, and the subscriptions by status.
func deliveryFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	b, err := outbox.DeliveryBacklogs(ctx, d)
	all := []Figure{
		{"webhook_deliveries_waiting", nil, float64(b.Waiting)}, {"webhook_oldest_due_seconds", nil, age(now, b.Due)},
		{"webhooks", []string{string(domain.WebhookActive)}, float64(b.Active)},
		{"webhooks", []string{string(domain.WebhookPaused)}, float64(b.Paused)},
		{"webhooks", []string{string(domain.WebhookDisabled)}, float64(b.Disabled)},
	}
	for _, w := range b.Failing {
		all = append(all, Figure{"webhook_failing_seconds", []string{w.ID.String()}, age(now, w.FailingSince)})
	}
	return all, err
}

// jobFigures counts reports and periodic jobs that are available (due), running (leased) or retryable (a report that
// waits after a failed try), and their failures of the last db.DiscardedFor, as discarded. job_leader is 1 if a process
// seems to run the periodic jobs: at least one of them is not due, or is due for less than ledWithin.
func jobFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count jobs", pg.SQL(`
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
		SELECT 'jobs' AS metric, ARRAY[kind, state] AS labels, count(*)::float8 AS value FROM states WHERE state IS NOT NULL GROUP BY kind, state
		UNION ALL SELECT 'job_oldest_seconds', ARRAY[kind], `+ageOf("min(since)")+` FROM states WHERE state = 'available' GROUP BY kind
		UNION ALL SELECT 'job_leader', '{}', EXISTS (SELECT FROM periodic_jobs WHERE due_at > ?3)::int
		ORDER BY metric, labels`, now, now.Add(-db.DiscardedFor), domain.ReportTries, now.Add(-ledWithin)))
}

// syncFigures counts open sync runs by provider, which is none after the connection was deleted, and by status; and
// connections by provider and how their last ended run ended.
func syncFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count syncs", pg.SQL(`
		WITH open AS (
			SELECT coalesce(k.provider, 'none') AS provider, r.status, r.queued_at
			FROM sync_runs AS r LEFT JOIN directory_connections AS k ON k.client_id = r.client_id WHERE r.status IN ('queued', 'running')
		)
		SELECT 'syncs' AS metric, ARRAY[provider, status] AS labels, count(*)::float8 AS value FROM open GROUP BY 2
		UNION ALL SELECT 'sync_oldest_seconds', '{}', `+ageOf("min(queued_at)")+` FROM open
		UNION ALL SELECT 'directory_connections',
			ARRAY[k.provider, CASE r.status WHEN 'completed' THEN 'working' WHEN 'failed' THEN 'failing' ELSE 'new' END], count(*)
		FROM directory_connections AS k JOIN clients AS c ON c.id = k.client_id AND c.archived_at IS NULL
		LEFT JOIN LATERAL (
			SELECT r.status FROM sync_runs AS r WHERE r.client_id = k.client_id AND r.status IN ('completed', 'failed')
			ORDER BY r.queued_at DESC LIMIT 1
		) AS r ON true
		GROUP BY 2`, now))
}

// moveFigures counts the partners that move from or to this cell, by step, and returns the seconds since a move refuses
// writes. A move in step holding does so until held_until, one in step handing without an end. Both began db.FreezeFor
// before held_until.
func moveFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count moves", pg.SQL(`
		SELECT 'moves' AS metric, ARRAY[step] AS labels, count(*)::float8 AS value
		FROM moves WHERE step IN ('copying', 'holding', 'handing', 'arriving') GROUP BY step
		UNION ALL SELECT 'move_held_seconds', '{}', `+ageOf("(min(held_until) - ?1::interval)")+`
		FROM moves WHERE step = 'handing' OR step = 'holding' AND held_until > now()`, now, db.FreezeFor))
}

// keyFigures returns in how many seconds the keys end that end soon.
func keyFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	keys, err := EndingKeys(ctx, d)
	return pg.MapRows(keys, func(k *EndingKey) Figure {
		return Figure{"api_key_ends_seconds", []string{k.Prefix}, k.ExpiresAt.Sub(now).Seconds()}
	}), err
}

// waitingFigures counts pending reports, events to be published, up to MostEvents, and all events ever published.
func waitingFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count what waits", pg.SQL(`
		SELECT 'reports_waiting' AS metric, '{}'::text[] AS labels, count(*)::float8 AS value FROM reports WHERE status = 'pending'
		UNION ALL SELECT 'report_oldest_seconds', '{}', `+ageOf("min(created_at)")+` FROM reports WHERE status = 'pending'
		UNION ALL SELECT 'events_waiting', '{}', count(*) FROM (SELECT FROM events LIMIT ?1) AS e
		UNION ALL SELECT 'event_oldest_seconds', '{}', `+ageOf("(SELECT recorded_at FROM events ORDER BY recorded_at LIMIT 1)")+`
		UNION ALL SELECT 'events_published_total', '{}', coalesce((SELECT position FROM event_head), 0)`, now, MostEvents))
}
