package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// summarySQL refreshes the summaries of the clients, alias c, that the
// condition ?0 selects and whose summary was made before ?1, as of the time ?2
// and the day ?3, where users below the score ?4 are of high risk and a client
// without users has the average ?5.
//
// Clients are locked in the order of their ids, and nothing else is: two
// refreshers wait for each other and cannot deadlock. Who waited finds the
// summary fresh when it looks again, and leaves it alone. Skipping what is
// locked would be quicker, and show a summary of any age to whoever comes
// second after a quiet night.
//
// Days are those of UTC; the last n days are today and the n-1 before it. A
// day's clicked mails are those fallen for in any way (decisions 3.10).
const summarySQL = `
	WITH stale AS MATERIALIZED (
		SELECT c.id FROM clients AS c WHERE ?0 AND c.summarized_at < ?1
		ORDER BY c.id FOR NO KEY UPDATE OF c
	), fresh AS MATERIALIZED (
		SELECT s.id,
			CASE WHEN u.users = 0 THEN ?5 ELSE (2 * u.scores + u.users) / (2 * u.users) END::integer AS average_score,
			u.high_risk::integer AS high_risk_users,
			u.overdue::integer AS overdue_users,
			coalesce(round(100.0 * (u.users - u.overdue) / nullif(u.users, 0), 1), 100)::float8 AS on_track_rate,
			coalesce(round(100.0 * p.clicked_90d / nullif(p.sent_90d, 0), 1), 0)::float8 AS click_rate_90d,
			coalesce(round(100.0 * p.reported_90d / nullif(p.sent_90d, 0), 1), 0)::float8 AS report_rate_90d,
			coalesce(round(100.0 * p.clicked_365d / nullif(p.sent_365d, 0), 1), 0)::float8 AS click_rate_365d,
			coalesce(round(100.0 * p.clicked / nullif(p.sent, 0), 1), 0)::float8 AS click_rate_total
		FROM stale AS s
		CROSS JOIN LATERAL (
			SELECT count(*) AS users, coalesce(sum(score), 0) AS scores,
				count(*) FILTER (WHERE score < ?4) AS high_risk,
				count(*) FILTER (WHERE next_due_on < ?3) AS overdue
			FROM users WHERE client_id = s.id AND status = 'active'
		) AS u
		CROSS JOIN LATERAL (
			SELECT sum(sent) AS sent, sum(clicked) AS clicked,
				sum(sent) FILTER (WHERE day > ?3::date - 90) AS sent_90d,
				sum(clicked) FILTER (WHERE day > ?3::date - 90) AS clicked_90d,
				sum(reported) FILTER (WHERE day > ?3::date - 90) AS reported_90d,
				sum(sent) FILTER (WHERE day > ?3::date - 365) AS sent_365d,
				sum(clicked) FILTER (WHERE day > ?3::date - 365) AS clicked_365d
			FROM phishing_days WHERE client_id = s.id
		) AS p
	), history AS (
		INSERT INTO risk_history (client_id, day, average_score) SELECT id, ?3, average_score FROM fresh
		ON CONFLICT (client_id, day) DO UPDATE SET average_score = excluded.average_score
	)
	UPDATE clients AS c SET
		average_score = f.average_score, high_risk_users = f.high_risk_users,
		overdue_users = f.overdue_users, on_track_rate = f.on_track_rate,
		click_rate_90d = f.click_rate_90d, report_rate_90d = f.report_rate_90d,
		click_rate_365d = f.click_rate_365d, click_rate_total = f.click_rate_total,
		summarized_at = ?2,
		updated_at = CASE WHEN
			(c.average_score, c.high_risk_users, c.overdue_users, c.on_track_rate,
			 c.click_rate_90d, c.report_rate_90d, c.click_rate_365d, c.click_rate_total) <>
			(f.average_score, f.high_risk_users, f.overdue_users, f.on_track_rate,
			 f.click_rate_90d, f.report_rate_90d, f.click_rate_365d, f.click_rate_total)
			THEN greatest(c.updated_at, ?2) ELSE c.updated_at END
	FROM fresh AS f WHERE c.id = f.id`

// RefreshSummaries brings those of the clients' summaries up to date that are
// older than domain.SummaryAge, in one statement.
func (d *DB) RefreshSummaries(ctx context.Context, clients []domain.ClientID) error {
	if len(clients) == 0 {
		return nil
	}
	return d.refreshStale(ctx, "c.id = ANY(?::uuid[])", uuids(clients))
}

// RefreshReachable does what RefreshSummaries does for all clients that the
// caller of ctx reaches.
func (d *DB) RefreshReachable(ctx context.Context) error {
	condition, args := reachSQL(domain.CallerFrom(ctx))
	return d.refreshStale(ctx, condition, args...)
}

func (d *DB) refreshStale(ctx context.Context, condition string, args ...any) error {
	now := d.Now()
	return d.summarize(ctx, now, domain.DateOf(now), now.Add(-domain.SummaryAge), condition, args...)
}

// ForceSummaries brings the summaries of all clients that are not archived up
// to date, however old they are. It works in batches, each of which is
// committed on its own outside of a transaction.
func (d *DB) ForceSummaries(ctx context.Context) error {
	var clients []domain.ClientID
	err := d.conn(ctx).NewRaw("SELECT id FROM clients WHERE archived_at IS NULL ORDER BY id").Scan(ctx, &clients)
	if err != nil {
		return d.bad("list clients", err)
	}
	for batch := range slices.Chunk(clients, 200) {
		now := d.Now()
		anyAge := now.AddDate(1000, 0, 0) // a clock that was put back left summaries of the future
		if err := d.summarize(ctx, now, domain.DateOf(now), anyAge, "c.id = ANY(?::uuid[])", uuids(batch)); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) summarize(ctx context.Context, now time.Time, today domain.Date, before time.Time, condition string, args ...any) error {
	_, err := d.conn(ctx).NewRaw(summarySQL, bun.SafeQuery(condition, args...), before, now, today,
		domain.HighRiskBelow, domain.AverageScore(0, 0)).Exec(ctx)
	return d.bad("refresh summaries", err)
}
