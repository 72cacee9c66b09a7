package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type exposureRow struct {
	bun.BaseModel `bun:"table:exposures,alias:e"`

	ID          domain.MessageID `bun:"id"` // breaks ties, and is shown nowhere
	UserID      domain.UserID
	BreachName  string
	Severity    domain.Severity
	DataClasses []string `bun:"data_classes,array"`
	FirstSeenAt time.Time
	NotifiedAt  *time.Time
	ResolvedAt  *time.Time

	Title    string       `bun:"title,scanonly"`
	Domain   *string      `bun:"domain,scanonly"`
	BreachOn *domain.Date `bun:"breach_on,scanonly"`
}

func (r *exposureRow) exposure() domain.Exposure {
	return domain.Exposure{
		User: r.UserID, Breach: r.BreachName, Title: r.Title, Domain: r.Domain, BreachOn: r.BreachOn,
		Severity: r.Severity, DataClasses: r.DataClasses,
		FirstSeenAt: r.FirstSeenAt, NotifiedAt: r.NotifiedAt, ResolvedAt: r.ResolvedAt,
	}
}

func withBreach(q *bun.SelectQuery, _ *binds) *bun.SelectQuery {
	return q.ColumnExpr("e.id, e.user_id, e.breach_name, e.severity, e.data_classes, e.first_seen_at, e.notified_at, e.resolved_at").
		ColumnExpr("b.title, b.domain, b.breach_on").Join("JOIN breaches AS b ON b.name = e.breach_name")
}

// during restricts a query on exposures, alias e, to those first seen within
// the period.
func during(q *bun.SelectQuery, values *binds, p domain.Period) *bun.SelectQuery {
	if p.Since != nil {
		q = q.Where("e.first_seen_at >= ?", values.add(*p.Since))
	}
	if p.Until != nil {
		q = q.Where("e.first_seen_at < ?", values.add(*p.Until))
	}
	return q
}

// Exposures reads a page of the exposures of a client's active users, by when
// they were first seen. That the client is within reach and watched is for its
// caller to have checked, here and below.
func (d *DB) Exposures(ctx context.Context, client domain.ClientID, within domain.Period, since *time.Time, w domain.Window) (domain.Slice[domain.Exposure], error) {
	k := keyset{
		from: "exposures AS e", key: "e.first_seen_at", cast: "timestamptz", id: "e.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = during(q.Where("e.client_id = ?", values.add(client)), values, within).
				Where("EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = e.client_id AND u.id = e.user_id AND u.status = 'active')")
			if since != nil {
				q = q.Where("e.updated_at >= ?", values.add(*since))
			}
			return q
		},
	}
	rows, err := countedPage(ctx, d, k, w, withBreach, func(r *exposureRow) domain.Position {
		return domain.Position{Key: timeKey(r.FirstSeenAt), ID: r.ID.UUID()}
	})
	return mapped(rows, (*exposureRow).exposure), err
}

// Exposure reads one of a user's exposures.
func (d *DB) Exposure(ctx context.Context, client domain.ClientID, user domain.UserID, breach string) (domain.Exposure, error) {
	var values binds
	q := withBreach(d.Bun().NewSelect().Model((*exposureRow)(nil)), &values).
		Where("e.client_id = ? AND e.user_id = ? AND e.breach_name = ?", values.add(client), values.add(user), values.add(breach))
	row, err := readOne[exposureRow](ctx, d, q.String(), values)
	return row.exposure(), d.found(err, "exposure")
}

type exposureCountRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        domain.UserID
	Email     string
	FirstName string
	LastName  string
	CreatedAt time.Time

	Resolved   int `bun:"resolved,scanonly"`
	Unresolved int `bun:"unresolved,scanonly"`
}

func (r *exposureCountRow) count() domain.ExposureCount {
	return domain.ExposureCount{
		User: r.ID, Email: r.Email, FirstName: r.FirstName, LastName: r.LastName, Resolved: r.Resolved, Unresolved: r.Unresolved,
	}
}

// ExposureCounts reads a page of a client's active users, by their creation,
// with the numbers of their exposures first seen within the period. Only those
// of the page's users are counted. since, if not nil, leaves the users who
// changed at or after it, as they do with their exposures.
func (d *DB) ExposureCounts(ctx context.Context, client domain.Client, within domain.Period, since *time.Time, w domain.Window) (domain.Slice[domain.ExposureCount], error) {
	k := keyset{
		from: "users AS u", key: "u.created_at", cast: "timestamptz", id: "u.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = q.Where("u.client_id = ? AND u.status = 'active'", values.add(client.ID))
			if since != nil {
				q = q.Where("u.updated_at >= ?", values.add(*since))
			}
			return q
		},
	}
	rows, err := page(ctx, d, k, w, func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
		counts := during(d.Bun().NewSelect().TableExpr("exposures AS e").
			ColumnExpr("count(e.resolved_at) AS resolved, count(*) - count(e.resolved_at) AS unresolved").
			Where("e.client_id = u.client_id AND e.user_id = u.id"), values, within)
		return q.ColumnExpr("u.id, u.email, u.first_name, u.last_name, u.created_at, n.resolved, n.unresolved").
			Join("CROSS JOIN LATERAL (?) AS n", counts)
	}, func(r *exposureCountRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	rows.Total = client.ActiveUsers // a total is asked for only without since
	return mapped(rows, (*exposureCountRow).count), err
}

// DarkWeb sums up the exposures of a client's active users.
func (d *DB) DarkWeb(ctx context.Context, client domain.ClientID) (domain.DarkWeb, error) {
	var sum domain.DarkWeb
	err := d.conn(ctx).NewRaw(`
		SELECT count(*) FILTER (WHERE e.resolved_at IS NULL), count(e.resolved_at),
			count(DISTINCT e.user_id) FILTER (WHERE e.resolved_at IS NULL),
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'critical'),
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'high'),
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'medium'),
			count(*) FILTER (WHERE e.resolved_at IS NULL AND e.severity = 'low'),
			max(e.first_seen_at)
		FROM exposures AS e JOIN users AS u ON u.client_id = e.client_id AND u.id = e.user_id
		WHERE e.client_id = ? AND u.status = 'active'`, client).
		Scan(ctx, &sum.Unresolved, &sum.Resolved, &sum.Affected,
			&sum.By.Critical, &sum.By.High, &sum.By.Medium, &sum.By.Low, &sum.LastFoundAt)
	return sum, d.bad("sum up exposures", err)
}
