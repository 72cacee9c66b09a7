package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedPartner is a row of partners, by its columns.
type importedPartner struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	NameKey   string    `json:"name_key"`
	CreatedAt time.Time `json:"created_at"`
}

// ImportPartners applies records of partners. Their names are unique.
func (d *DB) ImportPartners(ctx context.Context, batch []domain.PartnerRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importPartners)
}

func (c *Change) importPartners(
	ctx context.Context, batch []domain.PartnerRecord, results []domain.ImportResult,
) error {
	before, err := c.lockPartners(ctx, batch)
	if err != nil {
		return err
	}
	var claims []claim
	for i := range batch {
		r := &batch[i]
		old := before[r.ID.ID]
		if r.Missing != "" && old.Name == "" {
			continue
		}
		if r.Name.Has() && old.NameKey != domain.SortKey(r.Name.Value) {
			claims = append(claims, claim{id: r.ID.Bytes(), key: domain.SortKey(r.Name.Value)})
		}
	}
	named, err := c.settleClaims(ctx, claims,
		"SELECT id, '' AS scope, name_key AS key FROM partners WHERE name_key = ANY(?1::text[])")
	if err != nil {
		return err
	}

	var made, changed []importedPartner
	for i := range batch {
		r := &batch[i]
		old, there := before[r.ID.ID]
		row := importedPartner{ID: r.ID.UUID(), Name: r.Name.Or(old.Name), CreatedAt: old.CreatedAt}
		if !there {
			row.CreatedAt = c.At
		}
		row.NameKey, row.CreatedAt = domain.SortKey(row.Name), r.CreatedAt.Or(domain.Moment{Time: row.CreatedAt}).Time
		holder, clash := named.lost[r.ID.Bytes()]
		switch {
		case !there && r.Missing != "":
			results[i] = missing(r.Missing)
		case clash:
			results[i] = takenBy("name", domain.PartnerID(holder))
		case !there:
			results[i].Outcome = domain.ImportCreated
			made = append(made, row)
		case old.Name == row.Name && old.CreatedAt.Equal(row.CreatedAt):
			results[i].Outcome = domain.ImportUnchanged
		default:
			results[i].Outcome = domain.ImportUpdated
			changed = append(changed, row)
		}
	}
	if err := c.giveUp(ctx, named, "partners", "name_key"); err != nil {
		return err
	}
	if err := updateRows(ctx, c, "partners", "partners", changed, "id"); err != nil {
		return err
	}
	return insertRows(ctx, c, "partners", "partners", made)
}

func (c *Change) lockPartners(
	ctx context.Context, batch []domain.PartnerRecord,
) (map[domain.PartnerID]partnerRow, error) {
	ids := make([]domain.PartnerID, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID.ID
	}
	c.lock(partnerLocks)
	rows, err := pg.All[partnerRow](ctx, c, "lock partners", pg.From("partners AS p").
		Columns(pg.Columns[partnerRow]()).Where("p.id = ANY(?::uuid[])", pg.IDs(ids)).OrderBy("p.id").For("NO KEY UPDATE"))
	return mapped(rows, func(r *partnerRow) domain.PartnerID { return r.ID }), err
}
