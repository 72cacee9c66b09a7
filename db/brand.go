package db

import (
	"context"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// BrandRow is a row of brands. At most one of PartnerID and ClientID is set: the service's own brand has neither.
type BrandRow struct {
	bun.BaseModel `bun:"table:brands,alias:b"`

	ID        domain.BrandID `bun:"id,pk"`
	PartnerID *domain.PartnerID
	ClientID  *domain.ClientID
	domain.Brand
}

// source returns whose brand the row is.
func (r *BrandRow) source() domain.BrandSource {
	switch {
	case r.ClientID != nil:
		return domain.ClientBrand
	case r.PartnerID != nil:
		return domain.PartnerBrand
	}
	return domain.ServiceBrand
}

// Brand resolves the brand of a client, a partner or the service (decisions 7.12). A client inherits from its own
// partner only. Brand returns NotFound if the owner does not exist. It checks no caller's access.
func (d *DB) Brand(ctx context.Context, of domain.BrandOwner) (domain.ResolvedBrand, error) {
	var partner PartnerRow
	if of != (domain.BrandOwner{}) {
		var err error
		if partner, err = d.brandPartner(ctx, of); err != nil {
			return domain.ResolvedBrand{}, err
		}
	}
	rows, err := pg.All[BrandRow](ctx, d, "read brands", pg.Rows[BrandRow]().
		Apply(pg.Where("b.client_id = ? OR b.partner_id = ? OR b.partner_id IS NULL AND b.client_id IS NULL", of.Client, partner.ID)).
		OrderExpr("b.client_id NULLS LAST, b.partner_id NULLS LAST"))
	levels := pg.MapRows(rows, func(r *BrandRow) domain.BrandLevel { return domain.BrandLevel{Source: r.source(), Brand: r.Brand} })
	levels = append(levels, domain.BrandLevel{Source: domain.DefaultBrand, Brand: domain.Brand{DisplayName: partner.Name}})
	return domain.ResolveBrand(levels...), err
}

// brandPartner returns the partner from which a client inherits, or the partner itself.
func (d *DB) brandPartner(ctx context.Context, of domain.BrandOwner) (PartnerRow, error) {
	if of.Client.IsZero() {
		return pg.Find[PartnerRow](ctx, d, of.Partner.Noun(), pg.Rows[PartnerRow]().Apply(pg.Where("p.id = ?", of.Partner)))
	}
	return pg.Find[PartnerRow](ctx, d, of.Client.Noun(), pg.Rows[PartnerRow]().
		Apply(pg.Where("p.id = (SELECT c.partner_id FROM clients AS c WHERE c.id = ?)", of.Client)))
}

// BrandsOf returns the condition that a brand, alias b, is that of one of the partners or clients or, if service is
// true, the service's own.
func BrandsOf(partners, clients [][16]byte, service bool) pg.Query {
	return pg.SQL(`b.partner_id = ANY(?partners::uuid[]) OR b.client_id = ANY(?clients::uuid[])
		OR ?service::boolean AND b.partner_id IS NULL AND b.client_id IS NULL`,
		pg.Named{"partners": partners, "clients": clients, "service": service})
}

// ClearBrand deletes the brand of a client, a partner or the service, so that all its fields inherit. It returns
// NotFound if there is none.
func (c *Change) ClearBrand(ctx context.Context, of domain.BrandOwner) error {
	c.WillLock(BrandLocks)
	return pg.RunOr(ctx, c, domain.ErrNotFound(domain.BrandID{}.Noun()), "clear a brand", pg.SQL("DELETE FROM brands AS b WHERE ?",
		BrandsOf([][16]byte{of.Partner}, [][16]byte{of.Client}, of == domain.BrandOwner{})))
}
