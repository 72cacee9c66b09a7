package move

import (
	"context"

	"partnerapi/db"
	"partnerapi/idmap"
)

func migrateV1(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.DB) }

// copyNumbers gives templates the numbers of the old cell.
func copyNumbers(w *world, source, target side) {
	_, err := target.Transaction(target.ctx).Exec(target.ctx, "DELETE FROM id_registry")
	w.must(err)
	w.copyAll(source, target, "id_registry", "kind = 'template'")
}
