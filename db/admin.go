package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Admins of partners and clients, for the operator.

// ListedAdmin is an admin in the operator's list.
type ListedAdmin struct {
	AdminRow
	// PartnerName and ClientName are names; the latter is empty for an admin of the whole partner.
	PartnerName, ClientName string
}

// AdminFilter selects admins. Zero fields select all.
type AdminFilter struct {
	Partner domain.PartnerID
	// Client selects the admins of the client alone, without those of its partner.
	Client domain.ClientID
	// ID and Email select an admin by ID or by the key of an address. If both are set, an admin needs only one.
	ID    domain.AdminID
	Email string // as stored
}

// AllAdmins lists the admins that match a filter, by partner, then those of the whole partner before those of its
// clients, by email. It checks no caller's access.
func (d *DB) AllAdmins(ctx context.Context, f AdminFilter) ([]ListedAdmin, error) {
	q := pg.From("admins AS a").ColumnExpr(pg.Columns[AdminRow]() + ", p.name AS partner_name, coalesce(c.name, '') AS client_name").
		Join("JOIN partners AS p ON p.id = a.partner_id LEFT JOIN clients AS c ON c.id = a.client_id").
		OrderExpr("p.name_key, p.id, c.name_key NULLS FIRST, c.id, " + EmailKeyOf("a") + ", a.id")
	if !f.Partner.IsZero() {
		q.Apply(pg.Where("a.partner_id = ?", f.Partner))
	}
	if !f.Client.IsZero() {
		q.Apply(pg.Where("a.client_id = ?", f.Client))
	}
	if !f.ID.IsZero() || f.Email != "" {
		q.Apply(pg.Where("(a.id = ? OR "+EmailKeyOf("a")+" = ANY(?::text[]))", f.ID, EmailKeys(f.Email)))
	}
	return pg.All[ListedAdmin](ctx, d, "list admins", q)
}

// AdmitPartnerAdmin prepares the change that adds an admin with an address, as stored, to a whole partner. It locks the
// partner. It returns Conflict if the partner is archived or has such an admin already.
func (c *Change) AdmitPartnerAdmin(ctx context.Context, partner domain.PartnerID, email string) error {
	if err := c.LockPartner(ctx, partner); err != nil {
		return err
	}
	found, err := pg.One[struct{ Archived, Admin bool }](ctx, c, "look for an admin", pg.SQL(`
		SELECT p.archived_at IS NOT NULL AS archived,
			EXISTS (SELECT 1 FROM admins AS a WHERE a.partner_id = p.id AND a.client_id IS NULL AND `+EmailKeyOf("a")+` = ANY(?::text[])) AS admin
		FROM partners AS p WHERE p.id = ?`, EmailKeys(email), partner))
	switch {
	case err != nil:
		return err
	case found.Archived:
		return domain.ErrConflict("partner", "the partner is archived")
	case found.Admin:
		return domain.ErrConflict("admin", "this email address already belongs to an admin of this partner")
	}
	return nil
}

// AcceptInvites marks the open invites of an address, as stored, to a client as accepted.
func (c *Change) AcceptInvites(ctx context.Context, client domain.ClientID, email string) error {
	return pg.Run(ctx, c, "accept invites", pg.SQL(
		"UPDATE admin_invites AS i SET accepted_at = ?now WHERE client_id = ?client AND "+EmailKeyOf("i")+" = ANY(?emailKeys::text[]) AND accepted_at IS NULL AND expires_at > ?now",
		pg.Named{"now": c.At, "client": client, "emailKeys": EmailKeys(email)}))
}

// DeleteAdmin deletes an admin. It returns NotFound if there is none.
func (c *Change) DeleteAdmin(ctx context.Context, id domain.AdminID) error {
	return pg.RunOr(ctx, c, domain.ErrNotFound(id.Noun()), "delete an admin", pg.SQL("DELETE FROM admins WHERE id = ?", id))
}
