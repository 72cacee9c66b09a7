package db

import (
	"context"
	"reflect"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Clients and their admins.

// ClientRow is a row of clients.
type ClientRow struct {
	bun.BaseModel `bun:"table:clients,alias:c"`

	domain.Client
	NameKey string

	PartnersClients int `bun:",scanonly"` // the partner's counter of clients, in lists only
}

func (r *ClientRow) client() domain.Client { return r.Client }

// clientOrders are the sort orders of clients: the column, its type and the function that returns its value in a row.
var clientOrders = map[string]struct {
	key, cast string
	value     func(*ClientRow) string
}{
	"name":       {"c.name_key", "text", func(r *ClientRow) string { return r.NameKey }},
	"created_at": {"c.created_at", "timestamptz", func(r *ClientRow) string { return pg.TimeKey(r.CreatedAt) }},
	"risk_score": {"c.average_score", "integer", func(r *ClientRow) string {
		return pg.NumberKey(r.Summary.AverageScore)
	}},
}

// Clients reads a page of the clients within the caller's reach. On the first page it refreshes summaries that are
// older than domain.SummaryAge: those of all accessible clients if the order or a filter depends on summaries, otherwise
// those of the page. It refreshes none on later pages, so that the order by risk_score stays the same (decisions 3.7).
func (d *DB) Clients(ctx context.Context, f domain.ClientFilter, w domain.Window) (domain.Slice[domain.Client], error) {
	if w.After != nil {
		return d.clients(ctx, f, w)
	}
	if f.UpdatedSince != nil || f.Sort.By() == "risk_score" {
		if err := d.RefreshReachable(ctx); err != nil {
			return domain.Slice[domain.Client]{}, err
		}
		return d.clients(ctx, f, w)
	}
	page, err := d.clients(ctx, f, w)
	if err != nil {
		return page, err
	}
	if refreshed, err := d.refreshPage(ctx, page.Rows); err != nil || !refreshed {
		return page, err
	}
	return d.clients(ctx, f, w) // by the list's own statement, which may read more than a refresh does
}

// clients reads a page of the clients within the caller's reach, with stored summaries.
func (d *DB) clients(ctx context.Context, f domain.ClientFilter, w domain.Window) (domain.Slice[domain.Client], error) {
	order, all := clientOrders[f.Sort.By()], listsAllClients(ctx, f)
	k := pg.Keyset[ClientRow]{
		Table: "clients AS c", Key: order.key, Cast: order.cast, ID: "c.id", Desc: f.Sort.Descending(), OneIndex: all,
		Where: pg.Conditions{WithinReach(ctx)},
		Position: func(r *ClientRow) domain.Position {
			return domain.Position{Key: order.value(r), ID: r.ID.UUID()}
		},
	}
	if f.Query != "" {
		k.Where = append(k.Where, pg.Contains(domain.SortKey(f.Query), "c.name_key"))
	}
	if f.ExternalID != "" {
		k.Where.Add("c.external_id = ?", f.ExternalID)
	}
	if f.IDs != nil {
		k.Where.Add("c.id = ANY(?::uuid[])", pg.IDs(f.IDs))
	}
	delta, err := pg.DeltaOf(ctx, d.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.Client]{}, err
	}
	k.Where.Changed(delta, "c.updated_at")
	if w.Total && all { // the partner's counter is the total, and is read in the same statement
		k.Select = func(q *bun.SelectQuery) {
			q.ColumnExpr(pg.Columns[ClientRow]()).ColumnExpr("(?) AS partners_clients",
				pg.SQL("SELECT client_count FROM partners WHERE id = ?", domain.CallerFrom(ctx).Partner))
		}
	}

	rows, err := pg.Page(ctx, d, k, w)
	switch {
	case err != nil || !w.Total: // no total
	case all && len(rows.Rows) > 0:
		rows.Total = rows.Rows[0].PartnersClients
	default:
		rows.Total, err = k.Count(ctx, d)
	}
	return pg.Map(rows, (*ClientRow).client), err
}

// listsAllClients reports whether a list holds all of the partner's clients: the caller reaches all, and no field of
// the filter but Sort is set. reflect also checks fields that are added to domain.ClientFilter later.
func listsAllClients(ctx context.Context, f domain.ClientFilter) bool {
	f.Sort = ""
	return domain.CallerFrom(ctx).AllClients && reflect.ValueOf(f).IsZero()
}

// InsertClient inserts a client, its manual group and the default program. It returns Conflict if the name is taken.
func (c *Change) InsertClient(ctx context.Context, client domain.Client) error {
	row := ClientRow{Client: client, NameKey: domain.SortKey(client.Name)}
	row.Frameworks = []string{} // not NULL
	if err := pg.Run(ctx, c, "insert a client", pg.Insert(row)); err != nil {
		return err
	}
	c.CountClients(client.Partner, 1)
	return c.SetUpClients(ctx, []ClientRow{row}, []domain.ClientID{row.ID})
}

// SetUpClients inserts the manual groups of new clients and the first day of their risk histories, and the default
// program of the clients in withProgram.
func (c *Change) SetUpClients(ctx context.Context, clients []ClientRow, withProgram []domain.ClientID) error {
	if len(clients) == 0 {
		return nil
	}
	return pg.Run(ctx, c, "set clients up", pg.SQL(`
		WITH program AS (
			INSERT INTO program_courses (client_id, position, course_id, due_after_days)
			SELECT u.id, p.position, p.course_id, p.due_after_days
			FROM unnest(?withProgram::uuid[]) AS u (id) CROSS JOIN default_program AS p
		), fresh AS (
			SELECT * FROM unnest(?ids::uuid[], ?groups::uuid[], ?times::timestamptz[], ?scores::integer[]) AS f (id, group_id, created_at, score)
		), history AS (
			INSERT INTO risk_history (client_id, day, average_score, active_users)
			SELECT id, (created_at AT TIME ZONE 'UTC')::date, score, 0 FROM fresh
		)
		INSERT INTO groups (client_id, id, name, manual, created_at) SELECT id, group_id, ?manualGroup, true, created_at FROM fresh`,
		pg.Named{
			"withProgram": pg.IDs(withProgram), "manualGroup": domain.ManualGroup,
			"ids":    pg.MapRows(clients, func(r *ClientRow) [16]byte { return r.ID }),
			"groups": pg.MapRows(clients, func(*ClientRow) [16]byte { return NewID[domain.GroupKind]() }),
			"times":  pg.MapRows(clients, func(r *ClientRow) time.Time { return r.CreatedAt }),
			"scores": pg.MapRows(clients, func(r *ClientRow) int { return r.Summary.AverageScore }),
		}))
}

// Update stores the client's name, industry and external id, and sets UpdatedAt. It returns Conflict if the partner has
// another client of that name. The client must be locked (LockTenant). An unchanged name keeps its key, because a
// migration may have changed the key to make it unique.
func (t *Tenant) Update(ctx context.Context, c *Change) error {
	at, err := pg.One[time.Time](ctx, c, "update a client", pg.SQL(`
		UPDATE clients SET name = ?name, name_key = CASE WHEN name = ?name THEN name_key ELSE ?nameKey END,
			industry = ?industry, external_id = ?externalID, updated_at = greatest(updated_at, ?now)
		WHERE id = ?client RETURNING updated_at`, pg.Named{
		"client": t.ID, "name": t.Name, "nameKey": domain.SortKey(t.Name), "industry": t.Industry,
		"externalID": t.ExternalID, "now": c.At,
	}))
	t.UpdatedAt = at
	return err
}

// ClientName identifies a client in the output of commands.
type ClientName struct {
	ID            domain.ClientID
	Name, Partner string
}

// FindClients returns the client with an id or, if there is none, up to 10 clients with a name. They are of the partner
// or, if it is zero, of any partner, and not archived. It is for the command line, and checks no caller's access.
func (d *DB) FindClients(
	ctx context.Context, partner domain.PartnerID, id domain.ClientID, name string,
) ([]ClientName, error) {
	q := pg.From("clients AS c").ColumnExpr("c.id, c.name, p.name AS partner").
		Join("JOIN partners AS p ON p.id = c.partner_id").
		Apply(pg.Where(`c.archived_at IS NULL AND (c.id = ?0 OR c.name_key = ?1 AND NOT EXISTS
			(SELECT 1 FROM clients AS i WHERE i.id = ?0 AND i.archived_at IS NULL))`, id, domain.SortKey(name))).
		OrderExpr("p.name_key, c.id")
	if !partner.IsZero() {
		q.Apply(pg.Where("c.partner_id = ?", partner))
	}
	return pg.All[ClientName](ctx, d, "look for a client", pg.Limit(q, 10))
}

// ClientNamesLike lists candidates for a misspelt name: the names of clients that contain name, or whose length differs
// from that of name by at most differ bytes. Both are compared by their sort keys. The clients are of the partner or,
// if it is zero, of any partner; archived ones are omitted.
func (d *DB) ClientNamesLike(ctx context.Context, partner domain.PartnerID, name string, differ int) ([]string, error) {
	key := domain.SortKey(name)
	q := pg.From("clients AS c").ColumnExpr("DISTINCT c.name").
		Apply(pg.Where(`c.archived_at IS NULL AND (strpos(c.name_key, ?key) > 0
			OR octet_length(c.name_key) BETWEEN ?shortest::int AND ?longest::int)`,
			pg.Named{"key": key, "shortest": len(key) - differ, "longest": len(key) + differ})).
		OrderExpr("c.name")
	if !partner.IsZero() {
		q.Apply(pg.Where("c.partner_id = ?", partner))
	}
	return pg.All[string](ctx, d, "look for names of clients", q)
}

// MailedAdmins is the condition that an admin, alias a, gets the emails to the partner.
const MailedAdmins = "a.client_id IS NULL AND a.role IN ('owner', 'admin')"

// AdminRow is a row of admins, of a partner or of a client.
type AdminRow struct {
	bun.BaseModel `bun:"table:admins,alias:a"`

	domain.Admin
	PartnerID domain.PartnerID
	// EmailKey and EmailState are as in UserRow.
	EmailKey   *string
	EmailState *string
}

func (r *AdminRow) admin() domain.Admin { return r.Admin }

// Admins reads a page of the client's own admins, without the partner's, in the order of creation.
func (t *Tenant) Admins(ctx context.Context, w domain.Window) (domain.Slice[domain.Admin], error) {
	k := pg.ByTime("a.created_at", "a.id", func(r *AdminRow) (time.Time, domain.AdminID) { return r.CreatedAt, r.ID })
	k.OneIndex, k.Where = true, pg.Conditions{pg.SQL("a.client_id = ?", t.ID)}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*AdminRow).admin), err
}

// Invite inserts an invite to the client, and requests its email. It returns Conflict if the email address has an open
// invite or belongs to an admin of the client, and RateLimited at the limit of invites of the client or its partner.
// The client must be locked (LockTenant): one of two concurrent invites fails.
func (t *Tenant) Invite(ctx context.Context, c *Change, in domain.Invite) error {
	conflict, err := pg.One[struct{ Admin, Invite bool }](ctx, c, "look for an admin or invite", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM admins AS a WHERE a.client_id = ?client AND `+EmailKeyOf("a")+` = ANY(?emailKeys::text[])) AS admin,
			EXISTS (
				SELECT 1 FROM admin_invites AS i
				WHERE i.client_id = ?client AND `+EmailKeyOf("i")+` = ANY(?emailKeys::text[]) AND accepted_at IS NULL AND expires_at > ?now
			) AS invite`, pg.Named{"client": t.ID, "emailKeys": EmailKeys(in.Email), "now": c.At}))
	switch {
	case err != nil:
		return err
	case conflict.Admin:
		return adminExists
	case conflict.Invite:
		return domain.ErrConflict("invite", "this email address already has an open invite to this client",
			domain.FieldError{Field: "email", Message: "already has an open invite to this client"})
	}

	partner := domain.CallerFrom(ctx).Partner
	if err := c.limitInvites(ctx, partner, t.ID); err != nil {
		return err
	}
	err = pg.Run(ctx, c, "insert an invite", pg.SQL(`
		INSERT INTO admin_invites (client_id, id, email, email_key, role, created_at, expires_at, partner_id)
		VALUES (?client, ?id, ?email, ?emailKey, ?role, ?createdAt, ?expiresAt, ?partner)`,
		pg.Named{
			"client": t.ID, "id": in.ID, "email": in.Email, "emailKey": StoredEmailKey(in.Email), "role": in.Role, "createdAt": in.CreatedAt,
			"expiresAt": in.ExpiresAt, "partner": partner,
		}))
	c.RequestMail(domain.UserKey{Client: t.ID}, c.At, MailRequest{Type: domain.AdminInviteMail, InviteID: in.ID.UUID()})
	return err
}

// limitInvites returns RateLimited if a client or its partner has reached its limit of invites within a sliding window.
// It locks the partner, so that concurrent invites are counted too.
func (c *Change) limitInvites(ctx context.Context, partner domain.PartnerID, client domain.ClientID) error {
	if err := c.LockPartner(ctx, partner); err != nil {
		return err
	}
	// A column is NULL below the limit. At the limit it is the time of the invite that must leave the window before the
	// next one is accepted.
	oldest, err := pg.One[struct{ Client, Partner *time.Time }](ctx, c, "count invites", pg.SQL(`
		SELECT (
			SELECT created_at FROM admin_invites WHERE client_id = ?client AND created_at > ?clientSince
			ORDER BY created_at DESC OFFSET ?clientMost LIMIT 1
		) AS client, (
			SELECT created_at FROM admin_invites WHERE partner_id = ?partner AND created_at > ?partnerSince
			ORDER BY created_at DESC OFFSET ?partnerMost LIMIT 1
		) AS partner`, pg.Named{
		"client": client, "clientSince": c.At.Add(-domain.ClientInviteWindow),
		"clientMost": domain.MaxClientInvites - 1, "partner": partner,
		"partnerSince": c.At.Add(-domain.PartnerInviteWindow),
		"partnerMost":  domain.MaxPartnerInvites - 1,
	}))
	refusal := domain.Error{Code: domain.RateLimited, Object: domain.InviteID{}.Noun()}
	switch {
	case err != nil:
		return err
	case oldest.Partner != nil:
		refusal.Message = "this partner has reached its limit of 100 invites in 24 hours; retry after the time in Retry-After"
		refusal.RetryAfter = oldest.Partner.Add(domain.PartnerInviteWindow).Sub(c.At)
	case oldest.Client != nil:
		refusal.Message = "this client has reached its limit of 20 invites an hour; retry after the time in Retry-After"
	default:
		return nil
	}
	if oldest.Client != nil {
		refusal.RetryAfter = max(refusal.RetryAfter, oldest.Client.Add(domain.ClientInviteWindow).Sub(c.At))
	}
	return &refusal
}

// GroupRow is a row of groups.
type GroupRow struct {
	bun.BaseModel `bun:"table:groups,alias:g"`

	ClientID  domain.ClientID `bun:"client_id,pk"`
	ID        domain.GroupID  `bun:"id,pk"`
	Name      string
	Manual    bool
	CreatedAt time.Time

	Used bool `bun:",scanonly"` // by users, policies or frameworks
}

// ProgramRow is a row of program_courses.
type ProgramRow struct {
	bun.BaseModel `bun:"table:program_courses,alias:p"`

	ClientID     domain.ClientID
	Position     int
	CourseID     domain.CourseID
	DueAfterDays int
}
