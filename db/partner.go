package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type partnerRow struct {
	bun.BaseModel `bun:"table:partners,alias:p"`

	ID        domain.PartnerID `bun:"id,pk"`
	Name      string
	NameKey   string
	CreatedAt time.Time
}

// InsertPartner adds a partner. Conflict when there is one of that name.
func (d *DB) InsertPartner(ctx context.Context, name string) (domain.PartnerID, error) {
	row := partnerRow{ID: NewID[domain.PartnerKind](), Name: name, NameKey: domain.SortKey(name), CreatedAt: d.Now()}
	_, err := d.conn(ctx).NewInsert().Model(&row).Exec(ctx)
	return row.ID, d.bad("insert a partner", err)
}

// PartnerSummary is a partner as the operator lists it.
type PartnerSummary struct {
	ID        domain.PartnerID
	Name      string
	Clients   int
	CreatedAt time.Time
}

// Partners lists all partners by name.
func (d *DB) Partners(ctx context.Context) ([]PartnerSummary, error) {
	var all []PartnerSummary
	err := d.conn(ctx).NewRaw(`
		SELECT p.id, p.name, p.created_at,
		       (SELECT count(*) FROM clients AS c WHERE c.partner_id = p.id AND c.archived_at IS NULL) AS clients
		FROM partners AS p ORDER BY p.name_key`).Scan(ctx, &all)
	return all, d.bad("list partners", err)
}

// Partner reads the caller's partner, with the admins who see all its clients.
func (d *DB) Partner(ctx context.Context) (domain.Partner, error) {
	id := domain.CallerFrom(ctx).Partner
	p := domain.Partner{ID: id}
	q := d.conn(ctx).NewSelect().Table("partners").Column("name", "created_at").Where("id = ?", id)
	if err := q.Scan(ctx, &p.Name, &p.CreatedAt); err != nil {
		return p, d.bad("read the partner", err)
	}
	var rows []adminRow
	err := d.conn(ctx).NewSelect().Model(&rows).Where("a.partner_id = ? AND a.client_id IS NULL", id).
		OrderExpr("a.created_at, a.id").Scan(ctx)
	for i := range rows {
		p.Admins = append(p.Admins, rows[i].admin())
	}
	return p, d.bad("read the partner's admins", err)
}
