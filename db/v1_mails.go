package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// V1Recipient is a partner with an owner or admin who is told of the end of version 1.
type V1Recipient struct {
	Partner domain.PartnerID
	Name    string
	// Email is empty where the partner has no owner or admin.
	Email string
}

// V1Recipients returns the owners and admins of the partners that are not archived, or of one
// partner, by the names of partners. A partner is archived that moved to another cell, or all
// of whose clients are archived.
func (d *DB) V1Recipients(ctx context.Context, only domain.PartnerID) ([]V1Recipient, error) {
	return pg.All[V1Recipient](ctx, d, "list whom to tell of the end of v1", pg.SQL(`
		SELECT p.id AS partner, p.name, coalesce(a.email, '') AS email FROM partners AS p LEFT JOIN LATERAL (
			SELECT DISTINCT a.email FROM admins AS a WHERE a.partner_id = p.id AND `+MailedAdmins+`
		) AS a ON true
		WHERE (?0::uuid IS NULL OR p.id = ?0::uuid) AND p.id NOT IN (`+SuspendedPartners+`)
			AND (p.client_count > 0 OR p.id NOT IN (SELECT partner_id FROM clients))
		ORDER BY p.name_key, p.id, a.email`, domain.OrNil(only)))
}
