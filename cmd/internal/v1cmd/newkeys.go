package v1cmd

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// AllowNewKey gives a key v1 that the transaction of ctx has created, whatever new keys have.
func AllowNewKey(ctx context.Context, d *db.DB, key string) error {
	id, err := pg.One[domain.KeyID](ctx, d, "find a new key", pg.SQL("SELECT id FROM api_keys WHERE digest = ?", db.KeyDigest(key)))
	if err != nil {
		return err
	}
	return retire.NewStore(d.DB, d).AllowNewKey(ctx, id)
}
