package doctor

import (
	"context"
	"strings"
	"time"

	"partnerapi/db"
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
	// maxCounted is the greatest number of waiting events, and of waiting deliveries, that are counted.
	maxCounted = 100_000
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

// ageOf is the SQL expression of the seconds from a time to ?now: 0 for NULL, and for a time that lies ahead.
func ageOf(at string) string {
	return "greatest(0, coalesce(extract(epoch FROM ?now::timestamptz - " + at + "), 0))::float8"
}

// mailFigures counts requested email, which includes email to partners, and simulated email: the emails that wait to be
// sent, without those that are scheduled for later, and those that were given up.
func mailFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count mail", pg.SQL(`
		WITH due AS (
			SELECT coalesce(due_at, created_at) AS since FROM mail_requests
			WHERE sent_at IS NULL AND failed_at IS NULL AND suppressed_at IS NULL AND coalesce(due_at, created_at) <= ?now
			UNION ALL SELECT created_at FROM partner_mails WHERE sent_at IS NULL AND suppressed_at IS NULL AND failed_at IS NULL
		), counts AS (
			SELECT 'mail' AS kind, count(*) AS waiting, min(since) AS oldest,
				(SELECT count(*) FROM mail_requests WHERE failed_at IS NOT NULL)
					+ (SELECT count(*) FROM partner_mails WHERE sent_at IS NULL AND suppressed_at IS NULL AND failed_at IS NOT NULL) AS failed
			FROM due
			UNION ALL SELECT 'simulation', count(*), min(send_at),
				(SELECT count(*) FROM phishing_results WHERE failed_at IS NOT NULL AND failure <> ?cancelled)
			FROM phishing_results WHERE sent_at IS NULL AND failed_at IS NULL AND send_at <= ?now
		)
		SELECT 'mails' AS metric, ARRAY[kind, 'waiting'] AS labels, waiting::float8 AS value FROM counts
		UNION ALL SELECT 'mails', ARRAY[kind, 'failed'], failed FROM counts
		UNION ALL SELECT 'mail_oldest_seconds', ARRAY[kind], `+ageOf("oldest")+` FROM counts`, pg.Named{"now": now, "cancelled": domain.FailureCancelled}))
}

// deliveryFigures counts waiting deliveries, up to maxCounted, and subscriptions by status. It returns the age of the
// earliest past due time of a waiting delivery that no process is trying, and the 20 active subscriptions that have
// failed longest. Its cost depends only on the number of subscriptions.
func deliveryFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	all, err := pg.All[Figure](ctx, d, "count deliveries", pg.SQL(`
		WITH first AS (
			SELECT w.status, d.due_at FROM webhooks AS w LEFT JOIN LATERAL (
				SELECT d.due_at FROM webhook_deliveries AS d
				WHERE d.webhook_id = w.id AND d.status = 'waiting' ORDER BY d.due_at LIMIT 1
			) AS d ON true
		)
		SELECT 'webhooks' AS metric, ARRAY[status] AS labels, count(*)::float8 AS value FROM first GROUP BY status
		UNION ALL SELECT 'webhook_oldest_due_seconds', '{}', `+ageOf("min(due_at)")+` FROM first WHERE due_at <= ?now
		UNION ALL SELECT 'webhook_deliveries_waiting', '{}', count(*) FROM (
			SELECT FROM webhook_deliveries WHERE status = 'waiting' LIMIT ?most) AS w`, pg.Named{"now": now, "most": maxCounted}))
	if err != nil {
		return nil, err
	}
	failing, err := pg.All[domain.Webhook](ctx, d, "find webhooks that fail", pg.SQL(`
		SELECT id, failing_since FROM webhooks WHERE status = 'active' AND failing_since IS NOT NULL
		ORDER BY failing_since, id LIMIT 20`))
	for _, w := range failing {
		all = append(all, Figure{"webhook_failing_seconds", []string{w.ID.String()}, max(0, now.Sub(*w.FailingSince)).Seconds()})
	}
	return all, err
}

// jobFigures counts reports and periodic jobs that are available (due), running (leased) or retryable (a report that
// waits after a failed attempt), and their failures of the last db.DiscardedFor, as discarded. job_leader is 1 if a
// process seems to run the periodic jobs: at least one of them is not due, or is due for less than ledWithin.
func jobFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count jobs", pg.SQL(`
		WITH jobs AS (
			SELECT 'report' AS kind, coalesce(due_at, created_at) AS due, lease, tries FROM reports WHERE status = 'pending'
			UNION ALL SELECT kind, due_at, lease, 0 FROM periodic_jobs
		), states AS (
			SELECT kind, due AS since,
				CASE WHEN due <= ?now THEN 'available' WHEN lease IS NOT NULL THEN 'running' WHEN tries > 0 THEN 'retryable' END AS state
			FROM jobs
			UNION ALL SELECT 'report', updated_at, 'discarded' FROM reports
			WHERE status = 'failed' AND updated_at > ?discardedSince AND tries >= ?reportTries
			UNION ALL SELECT kind, at, 'discarded' FROM periodic_jobs, unnest(failed_at) AS at WHERE at > ?discardedSince
		)
		SELECT 'jobs' AS metric, ARRAY[kind, state] AS labels, count(*)::float8 AS value FROM states WHERE state IS NOT NULL GROUP BY kind, state
		UNION ALL SELECT 'job_oldest_seconds', ARRAY[kind], `+ageOf("min(since)")+` FROM states WHERE state = 'available' GROUP BY kind
		UNION ALL SELECT 'job_leader', '{}', EXISTS (SELECT FROM periodic_jobs WHERE due_at > ?ledSince)::int
		ORDER BY metric, labels`,
		pg.Named{
			"now":            now,
			"discardedSince": now.Add(-db.DiscardedFor),
			"reportTries":    domain.ReportTries,
			"ledSince":       now.Add(-ledWithin),
		}))
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
		GROUP BY 2`, pg.Named{"now": now}))
}

// moveFigures counts the partners that move from or to this cell, by step, and returns the seconds since a move refuses
// writes. A move in step holding does so until held_until, one in step handing without an end. Both began db.FreezeFor
// before held_until.
func moveFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count moves", pg.SQL(`
		SELECT 'moves' AS metric, ARRAY[step] AS labels, count(*)::float8 AS value
		FROM moves WHERE step IN ('copying', 'holding', 'handing', 'arriving') GROUP BY step
		UNION ALL SELECT 'move_held_seconds', '{}', `+ageOf("(min(held_until) - ?freezeFor::interval)")+`
		FROM moves WHERE step = 'handing' OR step = 'holding' AND held_until > now()`, pg.Named{"now": now, "freezeFor": db.FreezeFor}))
}

// keyFigures returns in how many seconds the keys end that end soon.
func keyFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	keys, err := EndingKeys(ctx, d)
	return pg.MapRows(keys, func(k *EndingKey) Figure {
		return Figure{"api_key_ends_seconds", []string{k.Prefix}, k.ExpiresAt.Sub(now).Seconds()}
	}), err
}

// waitingFigures counts pending reports, events to be published, up to maxCounted, and all events ever published.
func waitingFigures(ctx context.Context, d *db.DB, now time.Time) ([]Figure, error) {
	return pg.All[Figure](ctx, d, "count what waits", pg.SQL(`
		SELECT 'reports_waiting' AS metric, '{}'::text[] AS labels, count(*)::float8 AS value FROM reports WHERE status = 'pending'
		UNION ALL SELECT 'report_oldest_seconds', '{}', `+ageOf("min(created_at)")+` FROM reports WHERE status = 'pending'
		UNION ALL SELECT 'events_waiting', '{}', count(*) FROM (SELECT FROM events LIMIT ?most) AS e
		UNION ALL SELECT 'event_oldest_seconds', '{}', `+ageOf("(SELECT recorded_at FROM events ORDER BY recorded_at LIMIT 1)")+`
		UNION ALL SELECT 'events_published_total', '{}', coalesce((SELECT position FROM event_head), 0)`, pg.Named{"now": now, "most": maxCounted}))
}

// Backlog is overdue work of one kind.
type Backlog struct {
	// What is the kind of work, in the words of the documentation.
	What string
	// Count is the number of overdue rows, at most backlogCap.
	Count int
	// Since is when the first of them was due.
	Since time.Time
}

// backlogCap is the greatest number of rows of a backlog that are counted.
const backlogCap = 10_000

// workKinds holds, for each kind of work, a query for the times at which its rows are
// due. A leased row is due when its lease ends.
var workKinds = []struct{ what, rows string }{
	{"events to publish", "SELECT recorded_at AS due FROM events"},
	{"emails to send", "SELECT due_at AS due FROM outbox"},
	{"webhook deliveries", "SELECT due_at AS due FROM webhook_deliveries WHERE status = 'waiting'"},
	{"courses to assign", "SELECT asked_at AS due FROM waiting_assignments"},
	{"directory syncs", "SELECT coalesce(leased_until, queued_at) AS due FROM sync_runs WHERE status IN ('queued', 'running')"},
	{"jobs", `SELECT coalesce(due_at, created_at) AS due FROM reports WHERE status = 'pending'
		UNION ALL SELECT due_at FROM periodic_jobs`},
}

// LateAfter is how long work may wait after it is due before it counts as late: far longer than if a process does it.
const LateAfter = 10 * time.Minute

// LateWork returns the Backlog, counted up to backlogCap, of each kind of work with rows that are late. The tables must
// be at the version that this program needs.
func LateWork(ctx context.Context, d *db.DB) ([]Backlog, error) {
	var kinds []string
	for _, kind := range workKinds {
		kinds = append(kinds, "SELECT '"+kind.what+"' AS what, count(*)::int AS count, min(due) AS since FROM (SELECT due FROM ("+
			kind.rows+") AS w WHERE due < ?0::timestamptz ORDER BY due LIMIT ?1) AS late HAVING count(*) > 0")
	}
	return pg.All[Backlog](ctx, d, "look for late work", pg.SQL(strings.Join(kinds, " UNION ALL "), d.Now().Add(-LateAfter), backlogCap))
}
