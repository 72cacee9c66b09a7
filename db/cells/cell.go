package cells

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Fix makes the database that of cell c for good, unless it is of a cell already, or
// has partners and c is not the first of several. It returns the cell that the database
// is of afterwards. Requests that create objects wait meanwhile, for a moment.
func Fix(ctx context.Context, d *db.DB, c domain.Cell) (is domain.Cell, err error) {
	if c.Count > 1 {
		err = pg.RetryLocked(ctx, func() error {
			return d.Tx(ctx, func(ctx context.Context) error {
				if _, err := pg.Exec(ctx, d, "bound waits", pg.SQL("SET LOCAL lock_timeout = '"+pg.LockTimeout+"'")); err != nil {
					return err
				}
				_, err := pg.Exec(ctx, d, "fix the cell", pg.SQL(
					"INSERT INTO cell (number, count) SELECT ?, ? WHERE ? ON CONFLICT DO NOTHING", c.Number, c.Count, mayBecome(c)))
				return err
			})
		})
	}
	if err != nil {
		return is, err
	}
	return d.Cell(ctx)
}

// mayBecome is the condition that a database of no cell may become that of one.
func mayBecome(c domain.Cell) pg.Query {
	return pg.SQL("(?::int = 0 OR NOT EXISTS (SELECT FROM partners))", c.Number)
}

// WouldFix returns the cell that Fix would return for c, and changes nothing.
func WouldFix(ctx context.Context, d *db.DB, c domain.Cell) (domain.Cell, error) {
	is, err := d.Cell(ctx)
	if err != nil || is.Count > 1 || c.Count == 1 {
		return is, err
	}
	may, err := pg.One[bool](ctx, d, "ask whether the database may become the cell's", pg.SQL("SELECT ?", mayBecome(c)))
	if may {
		is = c
	}
	return is, err
}

// StrayKey is a key that lives in this cell and names another one.
type StrayKey struct {
	Prefix string
	Digest []byte
}

// StrayKeys returns the keys that live in cell, the database's, and name another one,
// without revoked ones: those made before there were cells, whose digits happen to name
// one, and those that moved with their partner.
func StrayKeys(ctx context.Context, d *db.DB, cell domain.Cell) ([]StrayKey, error) {
	return strayKeys(ctx, d, cell, pg.SQL("revoked_at IS NULL"))
}

func strayKeys(ctx context.Context, d *db.DB, cell domain.Cell, which pg.Query) (strays []StrayKey, err error) {
	all, err := pg.All[StrayKey](ctx, d, "read the keys that name other cells", pg.SQL(
		"SELECT prefix, digest FROM api_keys WHERE ? AND prefix NOT LIKE ? ORDER BY prefix", which, `papi\_`+cell.Code()+"%"))
	for _, k := range all {
		if cell.OfKey(k.Prefix) != cell {
			strays = append(strays, k)
		}
	}
	return strays, err
}

// SetPublicURL stores the URL of the cell's links without a key, for the other cells.
func SetPublicURL(ctx context.Context, d *db.DB, publicURL string) error {
	_, err := pg.Exec(ctx, d, "keep the cell's address", pg.SQL(
		"UPDATE cell SET public_url = nullif(?, '') WHERE public_url IS DISTINCT FROM nullif(?0, '')", publicURL))
	return err
}
