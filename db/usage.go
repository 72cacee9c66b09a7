package db

import (
	"context"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The number of active users by day. A trigger of clients writes the rows of active_user_days, in the transaction that
// changes the number: it is the only code that all of these transactions pass, those of release 1.0 included. The day is
// that of the stamp, or that of the client's latest row if that is later. So a change writes no day before that of its
// stamp, and the days before the horizon, up to which all changes are visible, never change.

// usageSQL selects the usage of the clients, alias c, that match ?condition, for periods between ?first and ?last: months
// or days, as ?unit says. A period without a row on its first day begins with the last value of the row before. Days
// before ?kept, and days before the first row of a client, are omitted.
const usageSQL = `SELECT c.id AS client, c.name AS client_name, c.external_id, c.created_at, p.start_on,
		greatest(b.highest, r.highest) AS active_users_max, coalesce(r.last, b.last) AS active_users_last
	FROM clients AS c
	CROSS JOIN LATERAL (
		SELECT greatest(g::date, ?first::date) AS start_on, greatest(g::date, ?first::date, ?kept::date) AS first,
			least((g + ?step::interval)::date - 1, ?last::date) AS last
		FROM generate_series(date_trunc(?unit::text, ?first::date::timestamp), ?last::date::timestamp, ?step::interval) AS g
	) AS p
	LEFT JOIN LATERAL (
		SELECT CASE WHEN day = p.first THEN active_users_max ELSE active_users_last END AS highest, active_users_last AS last
		FROM active_user_days WHERE client_id = c.id AND day <= p.first ORDER BY day DESC LIMIT 1
	) AS b ON true
	LEFT JOIN LATERAL (
		SELECT max(active_users_max) AS highest, (array_agg(active_users_last ORDER BY day DESC))[1] AS last
		FROM active_user_days WHERE client_id = c.id AND day > p.first AND day <= p.last
	) AS r ON true
	WHERE ?condition AND p.first <= p.last AND (b.last IS NOT NULL OR r.last IS NOT NULL)
	ORDER BY c.created_at, c.id, p.start_on LIMIT ?limit OFFSET ?skip`

// Usage reads a page of the usage of the caller's clients, archived ones included, in the order of the clients' creation,
// then of the periods. Today is the day of the list's horizon, on all pages: it begins once all changes of the day before
// are visible. Usage returns InvalidRequest as UsageFilter.Days does.
func (d *DB) Usage(ctx context.Context, f domain.UsageFilter, w domain.Window) (domain.Slice[domain.Usage], error) {
	if err := d.FixHorizon(ctx, &w); err != nil {
		return domain.Slice[domain.Usage]{}, err
	}
	today := domain.DateOf(*w.Horizon)
	first, last, err := f.Days(today)
	if err != nil {
		return domain.Slice[domain.Usage]{}, err
	}
	condition := withinReachOrArchived(ctx)
	if f.Client != nil {
		condition = pg.SQL("? AND c.id = ?", condition, *f.Client)
	}
	if w.After != nil {
		created, period, _ := strings.Cut(w.After.Key, " ")
		condition = pg.SQL(`?condition AND (c.created_at, c.id) >= (?created::text::timestamptz, ?client::text::uuid)
			AND (c.created_at, c.id, p.start_on) > (?created::text::timestamptz, ?client::text::uuid, ?period::text::date)`,
			pg.Named{"condition": condition, "created": created, "client": w.After.ID, "period": period})
	}
	rows, err := pg.All[domain.Usage](ctx, d, "read a page of usage", pg.Prepared(pg.SQL(usageSQL, pg.Named{
		"first": first, "last": last, "kept": today.AddDays(1 - domain.UsageDays), "unit": f.Interval, "step": "1 " + f.Interval,
		"condition": condition, "limit": w.Limit + 1, "skip": w.Skip,
	})))
	return pg.SliceOf(rows, w, func(u *domain.Usage) domain.Position {
		return domain.Position{Key: pg.TimeKey(u.CreatedAt) + " " + u.StartOn.String(), ID: u.Client.UUID()}
	}), err
}
