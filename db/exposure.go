package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Exposures of users, and the catalogue of breaches.

// ExposureRow is a row of exposures.
type ExposureRow struct {
	bun.BaseModel `bun:"table:exposures,alias:e"`

	domain.Exposure
	ID domain.ExposureID `bun:",scanonly"` // derived from the key; it breaks ties in the order, and events name it
}

func (r *ExposureRow) exposure() domain.Exposure { return r.Exposure }

// selectExposures adds to q the columns of exposures, alias e, and of their breaches.
func selectExposures(q *bun.SelectQuery) {
	q.ColumnExpr(pg.Columns[ExposureRow]() + ", e.id, e.updated_at, b.title, b.domain, b.breach_on").
		Join("JOIN breaches AS b ON b.name = e.breach_name")
}

// firstSeen returns the conditions that an exposure, alias e, was first seen in a period.
func firstSeen(within domain.Period) (all pg.Conditions) {
	pg.AddIf(&all, "e.first_seen_at >= ?", within.Since)
	pg.AddIf(&all, "e.first_seen_at < ?", within.Until)
	return all
}

// Exposures reads a page of the exposures of the client's active and inactive users that match the filter, in the order
// in which they were first seen. It returns Forbidden if the client has no Dark Web Monitoring.
func (t *Tenant) Exposures(
	ctx context.Context, f domain.ExposureFilter, w domain.Window,
) (domain.Slice[domain.Exposure], error) {
	if !t.DarkWebMonitoring {
		return domain.Slice[domain.Exposure]{}, domain.ErrNoDarkWeb()
	}
	k := pg.ByTime("e.first_seen_at", "e.id", func(r *ExposureRow) (time.Time, domain.ExposureID) {
		return r.FirstSeenAt, r.ID
	})
	k.Desc = f.Sort.Descending()
	k.Where = firstSeen(f.Period)
	k.Select = selectExposures
	k.Where.Add("e.client_id = ?", t.ID)
	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.Exposure]{}, err
	}
	k.Where.Changed(delta, "e.updated_at")
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*ExposureRow).exposure), err
}

// Exposure reads the exposure of a user in a breach, for the service's own work. It returns NotFound if the user has
// none, or if the breach is not in the catalogue.
func (d *DB) Exposure(ctx context.Context, user domain.UserKey, breach string) (domain.Exposure, error) {
	q := pg.From("exposures AS e").Apply(pg.Where("e.client_id = ?client AND e.user_id = ?user AND e.breach_name = ?breach",
		pg.Named{"client": user.Client, "user": user.User, "breach": breach}))
	selectExposures(q)
	row, err := pg.Find[ExposureRow](ctx, d, "exposure", pg.Prepared(q))
	return row.Exposure, err
}

// ResolveExposure marks the exposure of the locked user in a breach as resolved, and recomputes the user's risk. If it
// is already resolved, nothing changes. It returns NotFound if the user has no such exposure, and Forbidden if the
// client has no Dark Web Monitoring.
func (u *User) ResolveExposure(ctx context.Context, c *Change, breach string) (domain.Exposure, error) {
	if !u.darkWebOn {
		return domain.Exposure{}, domain.ErrNoDarkWeb()
	}
	c.WillLock(ExposureLocks)
	resolved, err := pg.Exec(ctx, c, "resolve an exposure", pg.SQL(`
		UPDATE exposures SET resolved_at = ?now, updated_at = greatest(updated_at, ?now)
		WHERE client_id = ?client AND user_id = ?id AND breach_name = ?breach AND resolved_at IS NULL`,
		pg.Named{"client": u.Client, "id": u.ID, "breach": breach, "now": c.At}))
	if err != nil {
		return domain.Exposure{}, err
	}
	if resolved > 0 {
		c.Rescore(u.Key())
		c.TouchUsers(u.Key()) // the counts of exposures are visible, even if the score does not change
	}
	return u.db.Exposure(ctx, u.Key(), breach)
}

// exposureCountRow is a user with the counts of exposures.
type exposureCountRow struct {
	domain.ExposureCount
	CreatedAt time.Time
}

// ExposureCounts reads a page of the client's active users, in the order of creation, and counts each user's resolved
// and unresolved exposures that were first seen in the period. If since is not nil, it selects only users who changed,
// or whose counts changed, at or after since. It returns Forbidden if the client has no Dark Web Monitoring.
func (t *Tenant) ExposureCounts(
	ctx context.Context, within domain.Period, since *time.Time, w domain.Window,
) (domain.Slice[domain.ExposureCount], error) {
	if !t.DarkWebMonitoring {
		return domain.Slice[domain.ExposureCount]{}, domain.ErrNoDarkWeb()
	}
	counts := pg.From("exposures AS e").
		ColumnExpr("count(e.resolved_at) AS resolved, count(*) - count(e.resolved_at) AS unresolved").
		Where("e.client_id = u.client_id AND e.user_id = u.id")
	for _, condition := range firstSeen(within) {
		counts.Where("?", condition)
	}
	k := pg.ByTime("u.created_at", "u.id", func(r *exposureCountRow) (time.Time, domain.UserID) {
		return r.CreatedAt, r.User
	})
	k.Table, k.Select = "users AS u", func(q *bun.SelectQuery) {
		q.ColumnExpr(`u.id AS "user", u.email, u.first_name, u.last_name, u.created_at, u.updated_at, n.resolved, n.unresolved`).
			Join("CROSS JOIN LATERAL (?) AS n", counts)
	}
	k.Where.Add("u.client_id = ? AND u.status = 'active'", t.ID)
	delta, err := pg.DeltaOf(ctx, t.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.ExposureCount]{}, err
	}
	k.Where.Changed(delta, "u.updated_at") // a change of the counts sets it too
	rows, err := pg.Page(ctx, t.db, k, w)
	rows.Total = t.ActiveUsers // wrong with since: then callers ask for no total
	return pg.Map(rows, func(r *exposureCountRow) domain.ExposureCount { return r.ExposureCount }), err
}

type darkWebRow struct {
	domain.DarkWeb
	domain.BySeverity
}

// DarkWeb counts the exposures of the client's active users, and the unresolved ones by severity.
func (t *Tenant) DarkWeb(ctx context.Context) (domain.DarkWeb, error) {
	row, err := pg.One[darkWebRow](ctx, t.db, "sum up exposures", pg.SQL(`
		SELECT count(*) FILTER (WHERE e.resolved_at IS NULL) AS unresolved, count(e.resolved_at) AS resolved,
			count(DISTINCT e.user_id) FILTER (WHERE e.resolved_at IS NULL) AS affected,
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'critical') AS critical,
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'high') AS high,
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'medium') AS medium,
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'low') AS low,
			max(e.first_seen_at) AS last_found_at
		FROM exposures AS e JOIN users AS u ON u.client_id = e.client_id AND u.id = e.user_id
		WHERE e.client_id = ? AND u.status = 'active'`, t.ID))
	row.By = row.BySeverity
	return row.DarkWeb, err
}

// BreachRow is a row of breaches.
type BreachRow struct {
	bun.BaseModel `bun:"table:breaches,alias:b"`

	domain.Breach
}

// ImportBreaches inserts breaches into the catalogue, and updates those whose name exists. No name may be in the list
// twice. It returns how many were added and how many changed. Exposures keep the severity and the data classes with
// which they were found, but get a new updated_at if their breach changed. It checks no caller's access.
func (d *DB) ImportBreaches(ctx context.Context, breaches []domain.Breach) (added, changed int, err error) {
	rows := pg.Objects(pg.MapRows(breaches, func(b *domain.Breach) BreachRow { return BreachRow{Breach: *b} }))
	type counts struct{ Added, Changed int }
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.WillLock(ExposureLocks)
		n, err := pg.One[counts](ctx, c, "import breaches", pg.SQL(importBreachesSQL, rows, c.At))
		added, changed = n.Added, n.Changed
		return err
	})
	return added, changed, err
}

// importBreachesSQL stores the breaches ?0 as of ?1. It locks breaches by their names, then exposures by their keys.
const importBreachesSQL = `
	WITH given AS (
		SELECT name, title, domain, breach_on, severity, data_classes, sensitive, spam_list
		FROM json_populate_recordset(NULL::breaches, ?0::json)
	), stored AS (
		INSERT INTO breaches AS b (name, title, domain, breach_on, severity, data_classes, sensitive, spam_list)
		SELECT * FROM given ORDER BY name
		ON CONFLICT (name) DO UPDATE SET
			(title, domain, breach_on, severity, data_classes, sensitive, spam_list) =
			(excluded.title, excluded.domain, excluded.breach_on, excluded.severity, excluded.data_classes,
				excluded.sensitive, excluded.spam_list)
		WHERE b IS DISTINCT FROM excluded
		RETURNING name, xmax = 0 AS added
	), shown AS MATERIALIZED (
		SELECT client_id, user_id, breach_name FROM exposures
		WHERE breach_name IN (SELECT name FROM stored WHERE NOT added)
		ORDER BY client_id, user_id, breach_name FOR NO KEY UPDATE
	), touched AS (
		UPDATE exposures AS e SET updated_at = greatest(e.updated_at, ?1::timestamptz) FROM shown AS s
		WHERE e.client_id = s.client_id AND e.user_id = s.user_id AND e.breach_name = s.breach_name
	)
	SELECT count(*) FILTER (WHERE added) AS added, count(*) FILTER (WHERE NOT added) AS changed FROM stored`

// BreachNoun names a breach in errors: it has no id.
const BreachNoun = "breach"

// LockBreaches reads breaches by their names, and locks them against changes. Names that do not exist are omitted.
func (c *Change) LockBreaches(ctx context.Context, names []string) (map[string]*BreachRow, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := pg.All[BreachRow](ctx, c, "lock breaches",
		pg.Rows[BreachRow]().Apply(pg.Where("b.name = ANY(?::text[])", names)).OrderExpr("b.name").For("SHARE"))
	return pg.Index(rows, func(b *BreachRow) (string, *BreachRow) { return b.Name, b }), err
}
