package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// FixHorizon sets the horizon of a window to the time before which all changes are visible, unless the position after
// which the window begins has the horizon of the first page (decisions 3.8). It must be called before the page is read.
func (d *DB) FixHorizon(ctx context.Context, w *domain.Window) error {
	return pg.FixHorizon(ctx, d.DB, w)
}
