package records

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Brands is the kind of brands: of partners and clients. The service's own brand is not exported. A record names the
// partner or the client instead of an id. A sender's address that changes must have one of the domains of
// WithMailDomains.
var Brands = declare[brands](kind[domain.BrandRecord, db.BrandRow]{
	object:  "branding",
	partner: "(b.partner_id = ?0 OR b.client_id IN (SELECT id FROM clients WHERE partner_id = ?0))",
	order:   "b.client_id IS NOT NULL, b.partner_id, b.client_id", rank: db.BrandLocks, locked: "b.id",
})

type brands struct {
	batch[domain.BrandRecord, db.BrandRow]
	domains domain.MailDomains
}

type mailDomainsKey struct{}

// WithMailDomains returns a context for imports of brands, with the domains that senders' addresses may have. Without
// them, a record that sets a sender's address is refused.
func WithMailDomains(ctx context.Context, domains domain.MailDomains) context.Context {
	return context.WithValue(ctx, mailDomainsKey{}, domains)
}

// lock locks the existing brands by their owners.
func (b *brands) lock(ctx context.Context) error {
	b.domains, _ = ctx.Value(mailDomainsKey{}).(domain.MailDomains)
	service := false
	for _, a := range b.list {
		service = service || ofService(a.in)
	}
	b.WillLock(b.kind.rank)
	rows, err := pg.All[db.BrandRow](ctx, b, "lock brands", b.kind.rows().Where("?", db.BrandsOf(
		b.found.ids(domain.PartnerID{}.Prefix()), b.found.ids(domain.ClientID{}.Prefix()), service)).
		OrderExpr(b.kind.locked).For("NO KEY UPDATE"))
	b.keep(rows)
	return err
}

// ofService reports whether a record is of the service's own brand.
func ofService(in *domain.BrandRecord) bool {
	return in.Partner.Given && in.Owner() == domain.BrandOwner{}
}

func (b *brands) key(in *domain.BrandRecord) any { return in.Owner() }

func (b *brands) check(in *domain.BrandRecord, before *db.BrandRow) error {
	switch {
	case ofService(in):
		return nil
	case !in.Client.Given && !in.Partner.Given:
		return missing("partner or client")
	}
	return b.batch.check(in, before)
}

func (b *brands) create(_ *domain.BrandRecord, row *db.BrandRow) {
	row.ID = db.NewID[domain.BrandKind]()
}

// apply refuses a client of another partner, and a new sender's address of a domain that is not the service's.
func (b *brands) apply(in *domain.BrandRecord, before, row *db.BrandRow) error {
	if in.Client.Given && in.Partner.Given && b.found.find(in.Client.Value).PartnerID != in.Partner.Value.ID {
		return errOtherPartner
	}
	if in.Client.Given || ofService(in) {
		row.PartnerID = nil // a client's partner is that of the client
	}
	if row.SenderEmail == "" || row.SenderEmail == domain.OrZero(before).SenderEmail {
		return nil
	}
	if err := b.domains.Check(row.SenderEmail); err != nil {
		return fmt.Errorf("sender_email %w", err)
	}
	return nil
}

// extend leaves out the service's own brand.
func (b *brands) extend(q *bun.SelectQuery) {
	q.Where("b.partner_id IS NOT NULL OR b.client_id IS NOT NULL")
}
