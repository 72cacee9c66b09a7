package move

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
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

// TestNumbersAreNotImportedWithinAHold: numbers that are brought while a partner is handed
// over would stay behind, so they are refused.
func TestNumbersAreNotImportedWithinAHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := pg.One[string](t.Context(), w.From, "find a client", pg.SQL("SELECT id::text FROM clients WHERE partner_id = ? LIMIT 1", w.Partner))
	w.must(err)
	bring := func(number string) error {
		_, err := idmap.Import(t.Context(), w.From.SQL(), strings.NewReader("client,"+number+","+client), false,
			func(ctx context.Context, tx *sql.Tx) error {
				return w.From.AuditTx(ctx, tx, domain.AuditEntry{Operation: "idmap import", Prefix: domain.CommandActor})
			})
		return err
	}
	w.must(bring("1001"))
	w.before = w.contents(w.From, w.Partner)
	w.points["held"] = func() {
		if err := bring("1002"); !domain.IsCode(err, domain.Unavailable) {
			t.Errorf("within a hold: %v", err)
		}
	}
	w.must(w.Run(t.Context()))
	w.moved()
}
