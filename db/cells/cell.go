package cells

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Fix makes the database permanently a database of cell c, if c is one of several cells. It does nothing if the
// database belongs to a cell already, or if it has partners and c is not the first cell. It returns the cell to which
// the database belongs afterwards. Requests that create objects wait for it, for a moment.
func Fix(ctx context.Context, d *db.DB, c domain.Cell) (actual domain.Cell, err error) {
	if c.Count > 1 {
		err = pg.RetryLocked(ctx, func() error {
			return d.Tx(ctx, func(ctx context.Context) error {
				if err := pg.Run(ctx, d, "bound waits", pg.SQL("SET LOCAL lock_timeout = '"+pg.LockTimeout+"'")); err != nil {
					return err
				}
				return pg.Run(ctx, d, "fix the cell", pg.SQL(
					"INSERT INTO cell (number, count) SELECT ?number, ?count WHERE ?mayBecome ON CONFLICT DO NOTHING",
					pg.Named{"number": c.Number, "count": c.Count, "mayBecome": mayBecome(c)}))
			})
		})
	}
	if err != nil {
		return domain.Cell{}, err
	}
	return d.Cell(ctx)
}

// mayBecome returns the condition that a database without a cell may become a database of
// c: c is the first cell, or there are no partners.
func mayBecome(c domain.Cell) pg.Query {
	return pg.SQL("(?::int = 0 OR NOT EXISTS (SELECT FROM partners))", c.Number)
}

// WouldFix returns the cell to which the database would belong after Fix with c, and changes nothing: c, if the
// database belongs to no cell yet and may become one of c, and otherwise its present cell.
func WouldFix(ctx context.Context, d *db.DB, c domain.Cell) (domain.Cell, error) {
	actual, err := d.Cell(ctx)
	if err != nil || actual.Count > 1 || c.Count == 1 { // it belongs to a cell already, or c is the only cell
		return actual, err
	}
	allowed, err := pg.One[bool](ctx, d, "ask whether the database may become the cell's", pg.SQL("SELECT ?", mayBecome(c)))
	if allowed {
		actual = c
	}
	return actual, err
}

// StrayKey is a key that is valid in this cell, but has the prefix of another cell.
type StrayKey struct {
	Prefix string
	Digest []byte
}

// StrayKeys returns the keys of the database, without revoked keys, that have the prefix of another cell than cell,
// which is the cell of the database. Such keys moved here with their partner, or are older than the division into cells
// and have the other prefix by chance.
func StrayKeys(ctx context.Context, d *db.DB, cell domain.Cell) ([]StrayKey, error) {
	return strayKeys(ctx, d, cell, pg.SQL("k.revoked_at IS NULL AND NOT t.ended AND (t.until IS NULL OR t.until > ?)", d.Now()))
}

// strayKeys returns the keys that meet a condition and have the prefix of another cell than cell, the database's.
func strayKeys(ctx context.Context, d *db.DB, cell domain.Cell, condition pg.Query) (strays []StrayKey, err error) {
	all, err := pg.All[StrayKey](ctx, d, "read the keys that name other cells", pg.SQL(
		"SELECT t.prefix, t.digest FROM "+db.KeyTexts+" AS t JOIN api_keys AS k ON k.id = t.key_id WHERE ? AND t.prefix NOT LIKE ? ORDER BY t.prefix", condition, `papi\_`+cell.Code()+"%"))
	for _, k := range all {
		if cell.OfKey(k.Prefix) != cell { // a prefix without a code is of the first cell
			strays = append(strays, k)
		}
	}
	return strays, err
}

// SetPublicURL stores the URL with which links without a key begin in this cell; a move
// gives it to other cells. An empty URL is stored as null.
func SetPublicURL(ctx context.Context, d *db.DB, publicURL string) error {
	return pg.Run(ctx, d, "keep the cell's address", pg.SQL(
		"UPDATE cell SET public_url = nullif(?, '') WHERE public_url IS DISTINCT FROM nullif(?0, '')", publicURL))
}
