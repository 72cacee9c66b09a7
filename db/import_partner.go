package db

import (
	"context"

	"partnerapi/domain"
)

// ImportPartners applies records of partners. Their names are unique.
func (d *DB) ImportPartners(ctx context.Context, batch []domain.PartnerRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importPartners)
}

func (c *Change) importPartners(
	ctx context.Context, batch []domain.PartnerRecord, results []domain.ImportResult,
) error {
	c.Lock(PartnerLocks)
	rows, err := lockRows[domain.PartnerRecord, partnerRow](ctx, c, batch, "p.id")
	if err != nil {
		return err
	}
	k := kind[domain.PartnerRecord, partnerRow]{
		Change: c, rows: rows,
		fresh: func(*domain.PartnerRecord) partnerRow { return partnerRow{CreatedAt: c.At} },
		finish: func(a *applied[domain.PartnerRecord, partnerRow]) (bool, error) {
			rename(a.record.Name, a.before == nil || a.before.Name != a.after.Name, &a.after.NameKey)
			return false, nil
		},
		names: &names[partnerRow]{
			column: "name_key",
			of:     func(r *partnerRow) (scope, key string) { return "", r.NameKey },
			query:  "SELECT id, '' AS scope, name_key AS key FROM partners WHERE name_key = ANY(?1::text[])",
			taken:  func(by [16]byte) domain.ImportResult { return takenBy("name", domain.PartnerID(by)) },
		},
	}
	return k.apply(ctx, batch, results)
}

// rename sets the key of a name that changed. One that stays keeps its key, which a
// migration may have made.
func rename(name domain.Field[string], changed bool, key *string) {
	if changed {
		*key = domain.SortKey(name.Value)
	}
}
