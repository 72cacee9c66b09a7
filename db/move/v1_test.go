package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/idmap"
)

func init() {
	also = append(also, func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.SQL()) })
	alsoCopied = append(alsoCopied, func(w *world, old, now side) {
		w.must(onTx(now, func(tx pgx.Tx) error {
			_, err := tx.Exec(now.ctx, "DELETE FROM id_registry")
			return err
		}))
		w.copyAll(old, now, "id_registry", "kind = 'template'")
	})
}
