package records

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// Admins is the kind of admins of partners and of their clients. An email is unique within a client.
var Admins = declare[admins](kind[domain.AdminRecord, db.AdminRow]{
	object: "admin", partner: "a.partner_id = ?", order: "a.created_at, a.id", locked: "a.id", unique: uniqueEmail,
})

type admins struct {
	batch[domain.AdminRecord, db.AdminRow]
}

func (b *admins) check(in *domain.AdminRecord, before *db.AdminRow) error {
	if before == nil && !in.Client.Given && !in.Partner.Given {
		return missing("partner or client")
	}
	return b.batch.check(in, before)
}

func (b *admins) create(in *domain.AdminRecord, row *db.AdminRow) {
	row.ID, row.CreatedAt = in.ID.ID, b.At
	if in.Client.Given {
		row.PartnerID = b.found.find(in.Client.Value).PartnerID
	}
}

// apply sets the columns that follow from the address. It refuses a client of another partner.
func (b *admins) apply(in *domain.AdminRecord, before, row *db.AdminRow) error {
	setEmailKey(domain.OrZero(before).Email, row.Email, &row.EmailKey, &row.EmailState)
	if in.Client.Given && b.found.find(in.Client.Value).PartnerID != row.PartnerID {
		return errOtherPartner
	}
	return nil
}

// nameOf returns the address within the client. That of an admin of a partner need not be unique.
func (b *admins) nameOf(row *db.AdminRow) (name, string) {
	if row.Client == nil {
		return name{Scope: domain.ClientID{}.UUID()}, row.Email
	}
	return name{row.Client.UUID(), domain.EmailKey(row.Email)}, row.Email
}

// complete leaves out the partner of an admin of a client: it follows from the client.
func (b *admins) complete(row *db.AdminRow, out *domain.AdminRecord) error {
	if row.Client != nil {
		out.Partner = domain.Optional[domain.Ref[domain.PartnerKind]]{}
	}
	return nil
}
