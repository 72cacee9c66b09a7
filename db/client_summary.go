package db

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// summarySQL refreshes the summaries and risks of the clients, alias c, that match the condition ?of and whose summary
// is older than ?before, and returns the clients. ?gradeFloors are the lowest scores of all ?grades but the first. A
// client without users has the average ?noUsers and no rates (decisions 3.7). RefreshAhead keeps the summary fresh
// until ?refreshUntil; NULL leaves that time unchanged. With ?async the commit does not wait for the disk: if a crash
// loses the summary, the next read refreshes it again. The history gets a row of ?today only if the clock is trusted:
// ?steady is false after a step, and ?plausibleDay is the condition of ClockTrusted in SQL, so that a read needs no
// further statement.
//
// It locks only clients, in the order of their ids, so that two refreshes cannot deadlock. The second refresh waits,
// then skips the clients that are fresh. SKIP LOCKED would not wait, but could return a summary of any age.
//
// Days are in UTC. The last n days include today. The clicked emails of a day include those whose credentials were
// submitted or whose attachment was opened (decisions 3.10).
const summarySQL = `
	WITH session AS MATERIALIZED (
		SELECT set_config('synchronous_commit',
			CASE WHEN ?async::boolean THEN 'off' ELSE current_setting('synchronous_commit') END, true)
	), stale AS MATERIALIZED (
		SELECT c.id FROM session CROSS JOIN clients AS c WHERE ?of AND (c.summarized_at < ?before OR c.summarized_at > ?ahead)
		ORDER BY c.id FOR NO KEY UPDATE OF c
	), fresh AS MATERIALIZED (
		SELECT s.id, u.users AS active_users, u.grades, f.factor_totals, f.factor_users,
			CASE WHEN u.users = 0 THEN ?noUsers ELSE (2 * u.scores + u.users) / (2 * u.users) END::integer AS average_score,
			u.high_risk::integer AS high_risk_users,
			u.overdue::integer AS overdue_users,
			coalesce(round(100.0 * (u.users - u.overdue) / nullif(u.users, 0), 1), 100)::float8 AS on_track_rate,
			coalesce(round(100.0 * p.clicked_90d / nullif(p.sent_90d, 0), 1), 0)::float8 AS click_rate_90d,
			coalesce(round(100.0 * p.reported_90d / nullif(p.sent_90d, 0), 1), 0)::float8 AS report_rate_90d,
			coalesce(round(100.0 * p.clicked_365d / nullif(p.sent_365d, 0), 1), 0)::float8 AS click_rate_365d,
			coalesce(round(100.0 * p.clicked / nullif(p.sent, 0), 1), 0)::float8 AS click_rate_total
		FROM stale AS s
		CROSS JOIN LATERAL (
			SELECT coalesce(sum(users), 0)::bigint AS users, coalesce(sum(scores), 0)::bigint AS scores,
				coalesce(sum(users) FILTER (WHERE grade IN ('D', 'F')), 0) AS high_risk,
				coalesce(sum(overdue), 0) AS overdue,
				coalesce(jsonb_agg(jsonb_build_object('role', role, 'grade', grade, 'users', users, 'scores', scores)
					ORDER BY role, grade), '[]') AS grades
			FROM (
				SELECT role, (?grades::text[])[1 + width_bucket(score, ?gradeFloors::integer[])] AS grade, count(*) AS users,
					sum(score) AS scores, count(*) FILTER (WHERE next_due_on < ?today) AS overdue
				FROM users WHERE client_id = s.id AND status = 'active' GROUP BY 1, 2
			) AS g
		) AS u
		CROSS JOIN LATERAL (
			SELECT ?factorTotals AS factor_totals, ?factorUsers AS factor_users
			FROM users AS m JOIN user_risks AS r ON r.client_id = m.client_id AND r.user_id = m.id
			WHERE m.client_id = s.id AND m.status = 'active'
		) AS f
		CROSS JOIN LATERAL (
			SELECT sum(sent) AS sent, sum(clicked) AS clicked,
				sum(sent) FILTER (WHERE day > ?today::date - 90) AS sent_90d,
				sum(clicked) FILTER (WHERE day > ?today::date - 90) AS clicked_90d,
				sum(reported) FILTER (WHERE day > ?today::date - 90) AS reported_90d,
				sum(sent) FILTER (WHERE day > ?today::date - 365) AS sent_365d,
				sum(clicked) FILTER (WHERE day > ?today::date - 365) AS clicked_365d
			FROM phishing_days WHERE client_id = s.id AND u.users > 0
		) AS p
	), history AS (
		INSERT INTO risk_history (client_id, day, average_score, active_users)
		SELECT id, ?today, average_score, active_users FROM fresh WHERE ?steady::boolean AND ?plausibleDay
		ON CONFLICT (client_id, day) DO UPDATE SET
			(average_score, active_users) = (excluded.average_score, excluded.active_users)
	), risks AS (
		INSERT INTO client_risks (client_id, grades, factor_totals, factor_users)
		SELECT id, grades, factor_totals, factor_users FROM fresh
		ON CONFLICT (client_id) DO UPDATE SET
			(grades, factor_totals, factor_users) = (excluded.grades, excluded.factor_totals, excluded.factor_users)
	)
	UPDATE clients AS c SET
		average_score = f.average_score, high_risk_users = f.high_risk_users,
		overdue_users = f.overdue_users, on_track_rate = f.on_track_rate,
		click_rate_90d = f.click_rate_90d, report_rate_90d = f.report_rate_90d,
		click_rate_365d = f.click_rate_365d, click_rate_total = f.click_rate_total,
		summarized_at = ?now, refresh_until = coalesce(?refreshUntil, c.refresh_until),
		updated_at = CASE WHEN
			(c.average_score, c.high_risk_users, c.overdue_users, c.on_track_rate,
			 c.click_rate_90d, c.report_rate_90d, c.click_rate_total) <>
			(f.average_score, f.high_risk_users, f.overdue_users, f.on_track_rate,
			 f.click_rate_90d, f.report_rate_90d, f.click_rate_total)
			OR c.click_rate_365d <> f.click_rate_365d AND c.summarized_at >= ?today::date -- not if it changes with the date only
			THEN greatest(c.updated_at, ?stamp) ELSE c.updated_at END
	FROM fresh AS f WHERE c.id = f.id RETURNING `

// factorTotals and factorUsers are SQL arrays with an element for each factor: the sum of its deltas in the rows r of
// user_risks, and the number of deltas that are not 0.
var (
	factorTotals = pg.SQL(eachFactor("coalesce(sum(r.deltas[#]), 0)"))
	factorUsers  = pg.SQL(eachFactor("count(nullif(r.deltas[#], 0))"))
)

// eachFactor returns an SQL array with an expression for each factor, in which the factor's number, from 1, replaces #.
func eachFactor(expression string) string {
	list := make([]string, domain.NumFactors)
	for i := range list {
		list[i] = strings.ReplaceAll(expression, "#", strconv.Itoa(i+1))
	}
	return "ARRAY[" + strings.Join(list, ", ") + "]::integer[]"
}

const (
	// refreshAheadFor is how long RefreshAhead keeps a client's summary fresh after a read that found it stale. It is
	// more than a day, so that for a caller that polls once a day only the first read waits for a refresh.
	refreshAheadFor = 25 * time.Hour
	// refreshAheadAge is the age at which RefreshAhead refreshes a summary.
	refreshAheadAge = domain.SummaryAge - 90*time.Second
	// refreshAheadBatch is the number of clients that one transaction refreshes, and locks.
	refreshAheadBatch = 20
)

// summarize refreshes in one statement the summaries of the clients, alias c, that match a condition and whose summary
// is older than before or lies ahead of the clock, and returns these clients. RefreshAhead keeps them fresh until
// refreshUntil; nil leaves that time unchanged. Outside of a transaction the commit does not wait for the disk.
func (d *DB) summarize(
	ctx context.Context, condition pg.Query, before time.Time, refreshUntil *time.Time,
) (refreshed []ClientRow, err error) {
	async := !d.InTx(ctx)
	err = d.Stamped(ctx, func(ctx context.Context, stamp time.Time) error {
		now := d.Now() // which follows a step of the clock back, as the age of a summary does
		refreshed, err = pg.All[ClientRow](ctx, d, "refresh summaries", pg.Prepared(pg.SQL(summarySQL+pg.Columns[ClientRow](),
			pg.Named{
				"of": condition, "before": before, "ahead": domain.Ahead(now), "now": now, "stamp": stamp, "today": domain.DateOf(now),
				"gradeFloors": domain.GradeFloors, "grades": domain.GradesUpward, "noUsers": domain.AverageScore(0, 0),
				"refreshUntil": refreshUntil, "async": async, "factorTotals": factorTotals, "factorUsers": factorUsers,
				"steady": d.steady(), "plausibleDay": d.plausibleDay(domain.DateOf(now)),
			})))
		return err
	})
	return refreshed, err
}

// refreshRead refreshes, for a read, the summaries that are older than domain.SummaryAge of the clients within the
// caller's reach that match a condition, and returns these clients. RefreshAhead keeps them fresh for refreshAheadFor.
func (d *DB) refreshRead(ctx context.Context, condition pg.Query) ([]ClientRow, error) {
	now := d.Now()
	return d.summarize(ctx, pg.SQL("? AND ?", condition, WithinReach(ctx)), now.Add(-domain.SummaryAge),
		new(now.Add(refreshAheadFor)))
}

// stale reports whether a client's summary is older than domain.SummaryAge, or lies ahead of the clock.
func (d *DB) stale(c *domain.Client) bool {
	now := d.Now()
	return c.Summary.At.Before(now.Add(-domain.SummaryAge)) || c.Summary.At.After(domain.Ahead(now))
}

// FreshTenant returns a client within the caller's reach, or NotFound. It first refreshes the client's summary if that
// is older than domain.SummaryAge (decisions 3.7).
func (d *DB) FreshTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	t, err := d.Tenant(ctx, id)
	if err != nil || !d.stale(&t.Client) {
		return t, err
	}
	rows, err := d.refreshRead(ctx, pg.SQL("c.id = ANY(?::uuid[])", pg.IDs([]domain.ClientID{id})))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 { // another request has refreshed it
		return d.Tenant(ctx, id)
	}
	return d.tenantOf(&rows[0]), nil
}

// refreshPage refreshes the stale summaries of the clients in page, in one statement. It returns false if none is
// stale.
func (d *DB) refreshPage(ctx context.Context, page []domain.Client) (refreshed bool, err error) {
	var stale []domain.ClientID
	for i := range page {
		if d.stale(&page[i]) {
			stale = append(stale, page[i].ID)
		}
	}
	if stale == nil {
		return false, nil
	}
	_, err = d.refreshRead(ctx, pg.SQL("c.id = ANY(?::uuid[])", pg.IDs(stale)))
	return true, err
}

// RefreshReachable refreshes the stale summaries of all clients that the caller reaches, in one statement. A cheap
// statement first checks whether there are any.
func (d *DB) RefreshReachable(ctx context.Context) error {
	now := d.Now()
	stale, err := pg.One[bool](ctx, d, "look for stale summaries", pg.Prepared(pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM clients AS c WHERE ?withinReach AND (c.summarized_at < ?staleBefore OR c.summarized_at > ?ahead))",
		pg.Named{
			"withinReach": WithinReach(ctx), "staleBefore": now.Add(-domain.SummaryAge), "ahead": domain.Ahead(now),
		})))
	if err == nil && stale {
		_, err = d.refreshRead(ctx, pg.SQL("true"))
	}
	return err
}

// RefreshAhead refreshes the summaries of recently read clients shortly before they become stale, in batches. It is
// background work. It returns the number of refreshed summaries, and refreshes none while another process runs it.
func (d *DB) RefreshAhead(ctx context.Context) (refreshed int, err error) {
	_, err = d.TryAdvisoryLock(ctx, "summaries", func(ctx context.Context) error {
		now := d.Now()
		refreshBefore := now.Add(-refreshAheadAge)
		// A refresh_until that no read has stored by this clock was stored while it was far ahead.
		clients, err := pg.All[domain.ClientID](ctx, d, "list stale summaries", pg.SQL(`
			SELECT id FROM clients WHERE archived_at IS NULL AND refresh_until > ?now AND refresh_until <= ?soon
				AND (summarized_at < ?refreshBefore OR summarized_at > ?ahead)
			ORDER BY id`, pg.Named{
			"now": now, "soon": now.Add(2 * refreshAheadFor), "refreshBefore": refreshBefore, "ahead": domain.Ahead(now),
		}))
		if err != nil {
			return err
		}
		refreshed, err = d.summarizeAll(ctx, clients, refreshAheadBatch, refreshBefore)
		return err
	})
	return refreshed, err
}

// ForceSummaries refreshes the summaries of all clients that are not archived, whatever their age. Outside of a
// transaction it commits in batches, and does not wait for the disk.
func (d *DB) ForceSummaries(ctx context.Context) error {
	clients, err := pg.All[domain.ClientID](ctx, d, "list clients",
		pg.SQL("SELECT id FROM clients WHERE archived_at IS NULL ORDER BY id"))
	if err != nil {
		return err
	}
	// Later than any summarized_at.
	farFuture := d.Now().AddDate(1000, 0, 0)
	const batch = 200 // clients in a transaction, which locks them
	_, err = d.summarizeAll(ctx, clients, batch, farFuture)
	return err
}

// summarizeAll refreshes in batches those summaries of clients that are older than before, and returns their number.
func (d *DB) summarizeAll(
	ctx context.Context, clients []domain.ClientID, batch int, before time.Time,
) (refreshed int, err error) {
	for ids := range slices.Chunk(clients, batch) {
		rows, err := d.summarize(ctx, pg.SQL("c.id = ANY(?::uuid[])", pg.IDs(ids)), before, nil /* refreshUntil */)
		if err != nil {
			return refreshed, err
		}
		refreshed += len(rows)
	}
	return refreshed, nil
}

// Peers returns the condition that a client, alias c, is another client of the same partner and has active users
// (decisions 8.10). It does not depend on the caller's reach.
func (t *Tenant) Peers() pg.Query {
	return pg.SQL(`c.partner_id = (SELECT partner_id FROM clients WHERE id = ?0) AND c.id <> ?0
		AND c.archived_at IS NULL AND c.users_active > 0`, t.ID)
}

// FreshPeers returns the other clients of the same partner that have active users. It first refreshes their summaries
// that are older than domain.SummaryAge.
func (t *Tenant) FreshPeers(ctx context.Context) ([]*Tenant, error) {
	if _, err := t.db.summarize(ctx, t.Peers(), t.db.Now().Add(-domain.SummaryAge), nil /* refreshUntil */); err != nil {
		return nil, err
	}
	rows, err := pg.All[ClientRow](ctx, t.db, "list clients to compare with", pg.Rows[ClientRow]().Where("?", t.Peers()))
	return pg.MapRows(rows, t.db.tenantOf), err
}
