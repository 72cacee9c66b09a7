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

// PartnerSummary is a partner in the operator's list.
type PartnerSummary struct {
	ID        domain.PartnerID
	Name      string
	Clients   int
	CreatedAt time.Time
}

// Partners lists all partners by name, for the operator.
func (d *DB) Partners(ctx context.Context) ([]PartnerSummary, error) {
	return pg.All[PartnerSummary](ctx, d, "list partners", pg.SQL(
		"SELECT id, name, created_at, client_count AS clients FROM partners ORDER BY name_key"))
}

// Partner reads the caller's partner, with its own admins, without admins of a single client.
func (d *DB) Partner(ctx context.Context) (domain.Partner, error) {
	id := domain.CallerFrom(ctx).Partner
	row, err := pg.Find[PartnerRow](ctx, d, id.Noun(), pg.Prepared(pg.Rows[PartnerRow]().Where("p.id = ?", id)))
	if err != nil {
		return domain.Partner{}, err
	}
	admins, err := pg.All[AdminRow](ctx, d, "read the partner's admins",
		pg.Rows[AdminRow]().Where("a.partner_id = ? AND a.client_id IS NULL", id).OrderBy("a.created_at, a.id"))
	return domain.Partner{
		ID: id, Name: row.Name, CreatedAt: row.CreatedAt, Admins: pg.MapRows(admins, (*AdminRow).admin),
	}, err
}
