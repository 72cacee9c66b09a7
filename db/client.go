package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type clientRow struct {
	bun.BaseModel `bun:"table:clients,alias:c"`

	ID                domain.ClientID `bun:"id,pk"`
	PartnerID         domain.PartnerID
	Name              string
	NameKey           string
	Industry          *string
	ExternalID        *string
	DarkWebMonitoring bool
	DirectorySync     *domain.Directory
	FrameworkIDs      []string `bun:"framework_ids,array"`
	UsersActive       int
	UsersInactive     int
	AverageScore      int
	HighRiskUsers     int
	OverdueUsers      int
	OnTrackRate       float64
	ClickRate90d      float64 `bun:"click_rate_90d"`
	ReportRate90d     float64 `bun:"report_rate_90d"`
	ClickRate365d     float64 `bun:"click_rate_365d"`
	ClickRateTotal    float64
	SummarizedAt      time.Time
	CreatedAt         time.Time
	UpdatedAt         time.Time

	PartnersClients int `bun:"partners_clients,scanonly"`
}

func (r *clientRow) client() domain.Client {
	return domain.Client{
		ID: r.ID, Partner: r.PartnerID, Name: r.Name, Industry: r.Industry, ExternalID: r.ExternalID,
		DarkWebMonitoring: r.DarkWebMonitoring, DirectorySync: r.DirectorySync, Frameworks: r.FrameworkIDs,
		ActiveUsers: r.UsersActive, InactiveUsers: r.UsersInactive,
		Summary: domain.ClientSummary{
			AverageScore: r.AverageScore, HighRiskUsers: r.HighRiskUsers, OverdueUsers: r.OverdueUsers,
			OnTrackRate: r.OnTrackRate, ClickRate90d: r.ClickRate90d, ReportRate90d: r.ReportRate90d,
			ClickRate365d: r.ClickRate365d, ClickRateTotal: r.ClickRateTotal, At: r.SummarizedAt,
		},
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// clientOrders are the lists that clients come in.
var clientOrders = map[string]struct {
	key, cast string
	of        func(*clientRow) string
}{
	"name":       {"c.name_key", "text", func(r *clientRow) string { return r.NameKey }},
	"created_at": {"c.created_at", "timestamptz", func(r *clientRow) string { return timeKey(r.CreatedAt) }},
	"risk_score": {"c.average_score", "integer", func(r *clientRow) string { return numberKey(r.AverageScore) }},
}

// Client reads a client within the caller's reach.
func (d *DB) Client(ctx context.Context, id domain.ClientID) (domain.Client, error) {
	t, err := d.Tenant(ctx, id)
	if err != nil {
		return domain.Client{}, err
	}
	return t.Client, nil
}

// LockClient is Client for a transaction that is to change what the client
// has: until it ends, no other such transaction goes on.
func (d *DB) LockClient(ctx context.Context, id domain.ClientID) (domain.Client, error) {
	var row clientRow
	q := legacyReach(ctx, d.conn(ctx).NewSelect().Model(&row).Where("c.id = ?", id)).For("NO KEY UPDATE OF c")
	err := d.one(ctx, q, id.Noun())
	return row.client(), err
}

// Clients reads a page of the clients within the caller's reach.
func (d *DB) Clients(ctx context.Context, f domain.ClientFilter, w domain.Window) (domain.Slice[domain.Client], error) {
	order := clientOrders[f.Sort.By()]
	k := keyset{
		from: "clients AS c", key: order.key, cast: order.cast, id: "c.id", desc: f.Sort.Descending(), settled: everyClient(ctx, f),
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = containing(reachable(ctx, q, values), values, f.Query, "c.name_key")
			if f.IDs != nil {
				q = q.Where("c.id = ANY(?::text[]::uuid[])", values.add(texts(f.IDs)))
			}
			if f.UpdatedSince != nil {
				q = q.Where("c.updated_at >= ?", values.add(*f.UpdatedSince))
			}
			return q
		},
	}
	var selecting func(*bun.SelectQuery, *binds) *bun.SelectQuery
	if w.Total && k.settled {
		selecting = withPartnersClients(ctx)
	}
	rows, err := page(ctx, d, k, w, selecting,
		func(r *clientRow) domain.Position { return domain.Position{Key: order.of(r), ID: r.ID.UUID()} })
	if err != nil {
		return domain.Slice[domain.Client]{}, err
	}
	switch {
	case !w.Total:
	case k.settled && len(rows.Rows) > 0:
		rows.Total = rows.Rows[0].PartnersClients
	default:
		rows.Total, err = k.count(ctx, d)
	}
	return mapped(rows, func(r *clientRow) domain.Client { return r.client() }), err
}

// everyClient says that a list holds all of the partner's clients.
func everyClient(ctx context.Context, f domain.ClientFilter) bool {
	return domain.CallerFrom(ctx).AllClients && f.Query == "" && f.IDs == nil && f.UpdatedSince == nil
}

// withPartnersClients adds the partner's counter to the rows of a list that
// holds all of its clients: a total without a statement of its own.
func withPartnersClients(ctx context.Context) func(*bun.SelectQuery, *binds) *bun.SelectQuery {
	return func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
		return q.ColumnExpr("?TableColumns").
			ColumnExpr("(SELECT client_count FROM partners WHERE id = ?) AS partners_clients", values.add(domain.CallerFrom(ctx).Partner))
	}
}

// InsertClient adds a client, its manual group and the foundational program.
// Conflict when the partner has one of that name.
func (d *DB) InsertClient(ctx context.Context, c domain.Client) error {
	row := clientRow{
		ID: c.ID, PartnerID: c.Partner, Name: c.Name, NameKey: domain.SortKey(c.Name), Industry: c.Industry, ExternalID: c.ExternalID,
		DarkWebMonitoring: c.DarkWebMonitoring, DirectorySync: c.DirectorySync, FrameworkIDs: []string{},
		AverageScore: c.Summary.AverageScore, OnTrackRate: c.Summary.OnTrackRate, SummarizedAt: c.Summary.At,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if _, err := d.conn(ctx).NewInsert().Model(&row).Exec(ctx); err != nil {
		return d.bad("insert a client", err)
	}
	_, err := d.conn(ctx).NewRaw(`
		WITH program AS (
			INSERT INTO program_courses (client_id, position, course_id, due_after_days)
			SELECT ?0, position, course_id, due_after_days FROM default_program
		), history AS (
			INSERT INTO risk_history (client_id, day, average_score) VALUES (?0, ?4, ?5)
		)
		INSERT INTO groups (client_id, id, name, manual, created_at) VALUES (?0, ?1, ?2, true, ?3)`,
		c.ID, NewID[domain.GroupKind](), domain.ManualGroup, c.CreatedAt, domain.DateOf(c.CreatedAt), c.Summary.AverageScore).Exec(ctx)
	return d.bad("give the client its program and group", err)
}

// UpdateClient stores a client's own fields. Conflict when the partner has
// another of that name.
func (d *DB) UpdateClient(ctx context.Context, c domain.Client) error {
	_, err := d.conn(ctx).NewUpdate().Table("clients").
		Set("name = ?", c.Name).Set("name_key = ?", domain.SortKey(c.Name)).
		Set("industry = ?", c.Industry).Set("external_id = ?", c.ExternalID).
		Set("updated_at = ?", c.UpdatedAt).Where("id = ?", c.ID).Exec(ctx)
	return d.bad("update a client", err)
}
