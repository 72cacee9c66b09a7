package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Clients and their admins.

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
	"created_at": {"c.created_at", "timestamptz", func(r *clientRow) string { return pg.TimeKey(r.CreatedAt) }},
	"risk_score": {"c.average_score", "integer", func(r *clientRow) string { return pg.NumberKey(r.AverageScore) }},
}

// clients reads a page of the clients within the caller's reach. Their summaries
// are as they were stored.
func (d *DB) clients(ctx context.Context, f domain.ClientFilter, w domain.Window) (domain.Slice[domain.Client], error) {
	order, every := clientOrders[f.Sort.By()], everyClient(ctx, f)
	k := pg.Keyset[clientRow]{
		Table: "clients AS c", Key: order.key, Cast: order.cast, ID: "c.id", Desc: f.Sort.Descending(), OneIndex: every,
		Where: pg.Conditions{WithinReach(ctx)},
		Position: func(r *clientRow) domain.Position {
			return domain.Position{Key: order.of(r), ID: r.ID.UUID()}
		},
	}
	if f.Query != "" {
		k.Where = append(k.Where, pg.Contains(domain.SortKey(f.Query), "c.name_key"))
	}
	if f.IDs != nil {
		k.Where.Add("c.id = ANY(?::uuid[])", pg.IDs(f.IDs))
	}
	if f.UpdatedSince != nil {
		k.Where.Add("c.updated_at >= ?", *f.UpdatedSince)
	}
	if w.Total && every {
		k.Select = withPartnersClients(ctx)
	}

	rows, err := pg.Page(ctx, d, k, w)
	switch {
	case err != nil || !w.Total:
	case every && len(rows.Rows) > 0:
		rows.Total = rows.Rows[0].PartnersClients
	default:
		rows.Total, err = k.Count(ctx, d)
	}
	return pg.Map(rows, (*clientRow).client), err
}

// everyClient reports whether a list holds all of the partner's clients.
func everyClient(ctx context.Context, f domain.ClientFilter) bool {
	return domain.CallerFrom(ctx).AllClients && f.Query == "" && f.IDs == nil && f.UpdatedSince == nil
}

// withPartnersClients adds the partner's counter to the rows of a list that holds
// all of its clients: a total without a statement of its own.
func withPartnersClients(ctx context.Context) func(*pg.Select) {
	return func(q *pg.Select) {
		q.Columns(pg.Columns[clientRow]()).Columns(
			"(SELECT client_count FROM partners WHERE id = ?) AS partners_clients", domain.CallerFrom(ctx).Partner)
	}
}

// InsertClient adds a client, its manual group and the foundational program.
// Conflict when the partner has one of that name.
func (c *Change) InsertClient(ctx context.Context, client domain.Client) error {
	row := clientRow{
		ID: client.ID, PartnerID: client.Partner, Name: client.Name, NameKey: domain.SortKey(client.Name),
		Industry: client.Industry, ExternalID: client.ExternalID, DarkWebMonitoring: client.DarkWebMonitoring,
		DirectorySync: client.DirectorySync, FrameworkIDs: []string{},
		AverageScore: client.Summary.AverageScore, OnTrackRate: client.Summary.OnTrackRate, SummarizedAt: client.Summary.At,
		CreatedAt: client.CreatedAt, UpdatedAt: client.UpdatedAt,
	}
	if _, err := pg.Exec(ctx, c, "insert a client", pg.Insert(row)); err != nil {
		return err
	}
	c.countClients(client.Partner, 1)
	return c.beginClients(ctx, []clientRow{row}, []domain.ClientID{row.ID})
}

// beginClients gives new clients a group for users who are kept by hand and the first day
// of their histories, and some of them the foundational program.
func (c *Change) beginClients(ctx context.Context, clients []clientRow, usual []domain.ClientID) error {
	if len(clients) == 0 {
		return nil
	}
	ids, groups := make([]domain.ClientID, len(clients)), make([]domain.GroupID, len(clients))
	times, scores := make([]time.Time, len(clients)), make([]int, len(clients))
	for i := range clients {
		r := &clients[i]
		ids[i], groups[i], times[i], scores[i] = r.ID, NewID[domain.GroupKind](), r.CreatedAt, r.AverageScore
	}
	_, err := pg.Exec(ctx, c, "give clients their programs and groups", pg.SQL(`
		WITH program AS (
			INSERT INTO program_courses (client_id, position, course_id, due_after_days)
			SELECT u.id, p.position, p.course_id, p.due_after_days
			FROM unnest(?0::uuid[]) AS u (id) CROSS JOIN default_program AS p
		), fresh AS (
			SELECT * FROM unnest(?1::uuid[], ?2::uuid[], ?3::timestamptz[], ?4::integer[]) AS f (id, group_id, created_at, score)
		), history AS (
			INSERT INTO risk_history (client_id, day, average_score)
			SELECT id, (created_at AT TIME ZONE 'UTC')::date, score FROM fresh
		)
		INSERT INTO groups (client_id, id, name, manual, created_at) SELECT id, group_id, ?5, true, created_at FROM fresh`,
		pg.IDs(usual), pg.IDs(ids), pg.IDs(groups), times, scores, domain.ManualGroup))
	return err
}

// Update stores the client's own fields, and when it was updated. Conflict when
// the partner has another client of that name. The client is locked (LockTenant).
// A name that stays keeps its key, which a migration may have made (withID).
func (t *Tenant) Update(ctx context.Context, c *Change) error {
	at, err := pg.One[time.Time](ctx, c, "update a client", pg.SQL(`
		UPDATE clients SET name = ?1, name_key = CASE WHEN name = ?1 THEN name_key ELSE ?2 END,
			industry = ?3, external_id = ?4, updated_at = greatest(updated_at, ?5)
		WHERE id = ?0 RETURNING updated_at`, t.ID, t.Name, domain.SortKey(t.Name), t.Industry, t.ExternalID, c.At))
	t.UpdatedAt = at
	return err
}

// ClientName is a client as commands name it.
type ClientName struct {
	ID            domain.ClientID
	Name, Partner string
}

// ClientsCalled finds clients of all partners that are not archived: the one with
// the id, or else those with the name; of one partner where that is not zero. It is for
// the command line, which has no caller.
func (d *DB) ClientsCalled(
	ctx context.Context, of domain.PartnerID, id domain.ClientID, name string,
) ([]ClientName, error) {
	q := pg.From("clients AS c").Columns("c.id, c.name, p.name AS partner").
		Join("JOIN partners AS p ON p.id = c.partner_id").
		Where(`c.archived_at IS NULL AND (c.id = ?0 OR c.name_key = ?1 AND NOT EXISTS
			(SELECT 1 FROM clients AS i WHERE i.id = ?0 AND i.archived_at IS NULL))`, id, domain.SortKey(name)).
		OrderBy("p.name_key, c.id").Limit(10)
	if !of.IsZero() {
		q.Where("c.partner_id = ?", of)
	}
	return pg.All[ClientName](ctx, d, "look for a client", q)
}

// ClientNamesLike lists the names of clients that are not archived and contain a name,
// or have about its length: up to that many bytes more or fewer. One partner's, where that
// is not zero.
func (d *DB) ClientNamesLike(ctx context.Context, of domain.PartnerID, name string, differ int) ([]string, error) {
	key := domain.SortKey(name)
	q := pg.From("clients AS c").Columns("DISTINCT c.name").
		Where(`c.archived_at IS NULL AND (strpos(c.name_key, ?0) > 0
			OR octet_length(c.name_key) BETWEEN ?1::int AND ?2::int)`, key, len(key)-differ, len(key)+differ).
		OrderBy("c.name")
	if !of.IsZero() {
		q.Where("c.partner_id = ?", of)
	}
	return pg.All[string](ctx, d, "look for names of clients", q)
}

type adminRow struct {
	bun.BaseModel `bun:"table:admins,alias:a"`

	ID          domain.AdminID `bun:"id,pk"`
	PartnerID   domain.PartnerID
	ClientID    *domain.ClientID
	Email       string
	Name        string
	Role        domain.AdminRole
	LastLoginAt *time.Time
	CreatedAt   time.Time
}

func (r *adminRow) admin() domain.Admin {
	return domain.Admin{
		ID: r.ID, Email: r.Email, Name: r.Name, Role: r.Role, Client: r.ClientID,
		LastLoginAt: r.LastLoginAt, CreatedAt: r.CreatedAt,
	}
}

// Admins reads a page of the admins that see this client only, by their creation.
func (t *Tenant) Admins(ctx context.Context, w domain.Window) (domain.Slice[domain.Admin], error) {
	k := pg.Keyset[adminRow]{
		Table: "admins AS a", Key: "a.created_at", Cast: "timestamptz", ID: "a.id", OneIndex: true,
		Where: pg.Conditions{pg.SQL("a.client_id = ?", t.ID)},
		Position: func(r *adminRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*adminRow).admin), err
}

// Invite adds an invite to the client and asks for its mail, whose id it returns.
// Conflict when the email is an admin of the client already or has an open invite,
// RateLimited where the client or its partner has had as many as it may. The client is
// locked (LockTenant), so that of two at once one is refused.
func (t *Tenant) Invite(ctx context.Context, c *Change, in domain.Invite) (domain.MessageID, error) {
	has, err := pg.One[struct{ Admin, Invite bool }](ctx, c, "look for an admin or invite", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM admins WHERE client_id = ?0 AND email = ?1) AS admin,
			EXISTS (
				SELECT 1 FROM admin_invites
				WHERE client_id = ?0 AND email = ?1 AND accepted_at IS NULL AND expires_at > ?2
			) AS invite`, t.ID, in.Email, c.At))
	switch {
	case err != nil:
		return domain.MessageID{}, err
	case has.Admin:
		return domain.MessageID{}, clashes["admins_client_email_unique"]
	case has.Invite:
		return domain.MessageID{}, domain.ErrConflict("invite", "this email already has an open invite to this client")
	}

	partner := domain.CallerFrom(ctx).Partner
	if err := c.limitInvites(ctx, partner, t.ID); err != nil {
		return domain.MessageID{}, err
	}
	mail := NewID[domain.MessageKind]()
	_, err = pg.Exec(ctx, c, "insert an invite", pg.SQL(`
		WITH invite AS (
			INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at, partner_id)
			VALUES (?0, ?1, ?2, ?3, ?4, ?5, ?7) RETURNING client_id, id, created_at
		)
		INSERT INTO mail_requests (client_id, id, type, invite_id, created_at)
		SELECT client_id, ?6, 'admin-invite', id, created_at FROM invite`,
		t.ID, in.ID, in.Email, in.Role, in.CreatedAt, in.ExpiresAt, mail, partner))
	return mail, err
}

// limitInvites reports RateLimited where a client or its partner has had as many
// invites as it may within their sliding times. It locks the partner, so that of
// several at once no more are accepted.
func (c *Change) limitInvites(ctx context.Context, partner domain.PartnerID, client domain.ClientID) error {
	if err := c.LockPartner(ctx, partner); err != nil {
		return err
	}
	// The invite that is to leave its window before there may be another one; null
	// where there are fewer.
	last, err := pg.One[struct{ Client, Partner *time.Time }](ctx, c, "count invites", pg.SQL(`
		SELECT (
			SELECT created_at FROM admin_invites WHERE client_id = ?0 AND created_at > ?1
			ORDER BY created_at DESC OFFSET ?2 LIMIT 1
		) AS client, (
			SELECT created_at FROM admin_invites WHERE partner_id = ?3 AND created_at > ?4
			ORDER BY created_at DESC OFFSET ?5 LIMIT 1
		) AS partner`, client, c.At.Add(-domain.ClientInviteWindow), domain.MaxClientInvites-1,
		partner, c.At.Add(-domain.PartnerInviteWindow), domain.MaxPartnerInvites-1))
	refusal := domain.Error{Code: domain.RateLimited, Object: domain.InviteID{}.Noun()}
	switch {
	case err != nil:
		return err
	case last.Partner != nil:
		refusal.Message = "the partner has sent 100 invites within the last 24 hours, which is as many as it may"
		refusal.RetryAfter = last.Partner.Add(domain.PartnerInviteWindow).Sub(c.At)
	case last.Client != nil:
		refusal.Message = "20 invites to this client were sent within the last hour, which is as many as it may have"
	default:
		return nil
	}
	if last.Client != nil {
		refusal.RetryAfter = max(refusal.RetryAfter, last.Client.Add(domain.ClientInviteWindow).Sub(c.At))
	}
	return &refusal
}
