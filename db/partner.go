package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// PartnerRow is a row of partners.
type PartnerRow struct {
	bun.BaseModel `bun:"table:partners,alias:p"`

	ID        domain.PartnerID `bun:"id,pk"`
	Name      string
	NameKey   string
	CreatedAt time.Time

	ArchivedAt *time.Time
}

// InsertPartner inserts a partner, for the operator. It returns Conflict if the name is taken.
func (d *DB) InsertPartner(ctx context.Context, name string) (domain.PartnerID, error) {
	row := PartnerRow{ID: NewID[domain.PartnerKind](), Name: name, NameKey: domain.SortKey(name), CreatedAt: d.Now()}
	err := pg.Run(ctx, d, "insert a partner", pg.Insert(row))
	return row.ID, err
}

// LockPartner locks a partner, so that concurrent requests cannot exceed the partner's limits.
func (c *Change) LockPartner(ctx context.Context, id domain.PartnerID) error {
	c.WillLock(PartnerLocks)
	_, err := pg.One[domain.PartnerID](ctx, c, "lock a partner", pg.SQL(
		"SELECT id FROM partners WHERE id = ? FOR NO KEY UPDATE", id))
	return err
}

// ArchivedPartner counts the effects of archiving a partner.
type ArchivedPartner struct {
	Clients  int // that were not archived before
	Keys     int // that were not revoked before
	Webhooks int // whose keys these are
}

// ArchivePartner archives a partner, for the operator: it archives the partner's clients and revokes its keys, with
// which its webhooks end. It returns Conflict if the partner is archived, or if a client was created meanwhile.
func (c *Change) ArchivePartner(ctx context.Context, id domain.PartnerID) (out ArchivedPartner, err error) {
	clients, err := pg.All[domain.ClientID](ctx, c, "look for a partner's clients", pg.SQL(
		"SELECT id FROM clients WHERE partner_id = ? AND archived_at IS NULL ORDER BY id", id))
	if err != nil {
		return out, err
	}
	if err := c.lockClients(ctx, clients); err != nil {
		return out, err
	}
	out.Clients, err = pg.Exec(ctx, c, "archive a partner's clients", pg.SQL(`
		UPDATE clients SET archived_at = ?now, updated_at = greatest(updated_at, ?now)
		WHERE partner_id = ?id AND archived_at IS NULL AND id = ANY(?clients::uuid[])`,
		pg.Named{"now": c.At, "id": id, "clients": pg.IDs(clients)}))
	if err != nil {
		return out, err
	}
	c.WillLock(PartnerLocks)
	err = pg.RunOr(ctx, c, domain.ErrConflict("partner", "the partner is already archived"), "archive a partner", pg.SQL(
		"UPDATE partners SET archived_at = ?now, client_count = client_count - ?clients WHERE id = ?id AND archived_at IS NULL",
		pg.Named{"now": c.At, "clients": out.Clients, "id": id}))
	if err != nil {
		return out, err
	}
	left, err := pg.One[bool](ctx, c, "look for new clients", pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM clients WHERE partner_id = ? AND archived_at IS NULL)", id))
	if err == nil && left {
		err = domain.ErrConflict("partner", "clients of the partner were created meanwhile; run the command again")
	}
	if err != nil {
		return out, err
	}
	revoked, err := pg.One[struct{ Keys, Webhooks int }](ctx, c, "revoke a partner's keys", pg.SQL(`
		WITH revoked AS (UPDATE api_keys SET revoked_at = ? WHERE partner_id = ? AND revoked_at IS NULL RETURNING id)
		SELECT (SELECT count(*) FROM revoked) AS keys,
			(SELECT count(*) FROM webhooks WHERE key_id IN (SELECT id FROM revoked)) AS webhooks`, c.At, id))
	out.Keys, out.Webhooks = revoked.Keys, revoked.Webhooks
	return out, err
}

// RestorePartner undoes ArchivePartner, but for the keys, which stay revoked, and returns the number of clients that are
// no longer archived. Clients that were archived by themselves stay so. It returns Conflict if the partner is not
// archived.
func (c *Change) RestorePartner(ctx context.Context, id domain.PartnerID) (clients int, err error) {
	archived, err := pg.All[domain.ClientID](ctx, c, "look for clients archived with their partner", pg.SQL(`
		SELECT c.id FROM clients AS c JOIN partners AS p ON p.id = c.partner_id AND p.archived_at = c.archived_at
		WHERE p.id = ? ORDER BY c.id`, id))
	if err != nil {
		return 0, err
	}
	if err := c.lockClients(ctx, archived); err != nil {
		return 0, err
	}
	clients, err = pg.Exec(ctx, c, "restore a partner's clients", pg.SQL(
		"UPDATE clients SET archived_at = NULL, updated_at = greatest(updated_at, ?) WHERE id = ANY(?::uuid[]) AND archived_at IS NOT NULL",
		c.At, pg.IDs(archived)))
	if err != nil {
		return 0, err
	}
	c.WillLock(PartnerLocks)
	return clients, pg.RunOr(ctx, c, domain.ErrConflict("partner", "the partner is not archived"), "restore a partner", pg.SQL(
		"UPDATE partners SET archived_at = NULL, client_count = client_count + ? WHERE id = ? AND archived_at IS NOT NULL",
		clients, id))
}

// PartnerSummary is a partner in the operator's list.
type PartnerSummary struct {
	ID        domain.PartnerID
	Name      string
	Clients   int
	CreatedAt time.Time

	ArchivedAt *time.Time
}

// Partners lists all partners by name, for the operator.
func (d *DB) Partners(ctx context.Context) ([]PartnerSummary, error) {
	return pg.All[PartnerSummary](ctx, d, "list partners", pg.SQL(
		"SELECT id, name, created_at, client_count AS clients, archived_at FROM partners ORDER BY name_key"))
}

// HasPartners reports whether there is a partner, archived or not.
func (d *DB) HasPartners(ctx context.Context) (bool, error) {
	return pg.One[bool](ctx, d, "look for partners", pg.SQL("SELECT EXISTS (SELECT FROM partners)"))
}

// Partner reads the caller's partner, with its own admins, without admins of a single client.
func (d *DB) Partner(ctx context.Context) (domain.Partner, error) {
	id := domain.CallerFrom(ctx).Partner
	row, err := pg.Find[PartnerRow](ctx, d, id.Noun(), pg.Prepared(pg.Rows[PartnerRow]().Apply(pg.Where("p.id = ?", id))))
	if err != nil {
		return domain.Partner{}, err
	}
	admins, err := pg.All[AdminRow](ctx, d, "read the partner's admins",
		pg.Rows[AdminRow]().Apply(pg.Where("a.partner_id = ? AND a.client_id IS NULL", id)).OrderExpr("a.created_at, a.id"))
	return domain.Partner{
		ID: id, Name: row.Name, CreatedAt: row.CreatedAt, Admins: pg.MapRows(admins, (*AdminRow).admin),
	}, err
}
