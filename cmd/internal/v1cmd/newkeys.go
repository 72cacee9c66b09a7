package v1cmd

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// AllowNewKey sets a key, which the transaction of ctx created, to the phase on, whatever the phase of new keys is.
func AllowNewKey(ctx context.Context, d *db.DB, key string) error {
	id, err := pg.One[domain.KeyID](ctx, d, "find a new key", pg.SQL("SELECT id FROM api_keys WHERE digest = ?", db.KeyDigest(key)))
	if err != nil {
		return err
	}
	return retire.NewStore(d.DB, d).AllowNewKey(ctx, id)
}
