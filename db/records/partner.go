package records

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// Partners is the kind of partners. Their names are unique.
var Partners = declare[partners](kind[domain.PartnerRecord, db.PartnerRow]{
	object: "partner", partner: "p.id = ?", order: "p.created_at, p.id", rank: db.PartnerLocks, locked: "p.id",
	unique: &unique{field: "name", column: "name_key", held: "t.name_key = k.key"},
})

type partners struct {
	batch[domain.PartnerRecord, db.PartnerRow]
}

func (b *partners) create(in *domain.PartnerRecord, row *db.PartnerRow) {
	row.ID, row.CreatedAt = in.ID.ID, b.At
}

func (b *partners) apply(_ *domain.PartnerRecord, before, row *db.PartnerRow) error {
	setNameKey(domain.OrZero(before).Name, row.Name, &row.NameKey)
	return nil
}

func (b *partners) nameOf(row *db.PartnerRow) (name, string) { return name{Key: row.NameKey}, "" }
