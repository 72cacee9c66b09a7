package db

import (
	"context"

	"partnerapi/domain"
)

// ImportAdmins applies records of admins. The emails of a client's are unique.
func (d *DB) ImportAdmins(ctx context.Context, batch []domain.AdminRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importAdmins)
}

func (c *Change) importAdmins(ctx context.Context, batch []domain.AdminRecord, results []domain.ImportResult) error {
	rows, err := lockRows[domain.AdminRecord, adminRow](ctx, c, batch, "a.id")
	if err != nil {
		return err
	}
	partners, err := existing(ctx, c, "look for partners", "partners WHERE",
		refsOf(batch, func(r *domain.AdminRecord) domain.Field[domain.Ref[domain.PartnerKind]] { return r.Partner }))
	if err != nil {
		return err
	}
	clients, err := c.clientsCalled(ctx,
		refsOf(batch, func(r *domain.AdminRecord) clientRef { return r.Client }))
	if err != nil {
		return err
	}
	for i := range batch {
		if !batch[i].Client.Has() && !batch[i].Partner.Has() {
			batch[i].Missing = "partner or client"
		}
	}

	k := kind[domain.AdminRecord, adminRow]{
		Change: c, rows: rows,
		fresh: func(r *domain.AdminRecord) adminRow {
			return adminRow{PartnerID: clients[r.Client.Value.ID].PartnerID, CreatedAt: c.At}
		},
		refuse: func(r *domain.AdminRecord, _ *adminRow) domain.ImportResult {
			client := clients[r.Client.Value.ID]
			switch {
			case r.Client.Has() && !client.There:
				return noSuch("client", "client")
			case r.Partner.Has() && !partners[r.Partner.Value.ID]:
				return noSuch("partner", "partner")
			case r.Client.Has() && r.Partner.Has() && client.PartnerID != r.Partner.Value.ID:
				return domain.RefuseImport("client: it is another partner's")
			}
			return domain.ImportResult{}
		},
		names: &names[adminRow]{
			column: "email",
			of: func(r *adminRow) (scope, key string) {
				if r.ClientID == nil {
					return "", ""
				}
				return r.ClientID.UUID(), r.Email
			},
			query: `SELECT id, client_id::text AS scope, email AS key FROM admins
				WHERE client_id = ANY(?0::text[]::uuid[]) AND email = ANY(?1::text[])`,
			taken: func(by [16]byte) domain.ImportResult { return takenBy("email", domain.AdminID(by)) },
		},
	}
	return k.apply(ctx, batch, results)
}
