package operator

import (
	"context"

	"partnerapi/cmd/internal/v1cmd"
	"partnerapi/db"
)

// allowV1 gives the new key v1 where the command says so; err is that of its creation.
func (c createKeyCmd) allowV1(ctx context.Context, d *db.DB, key string, err error) error {
	if err != nil || !c.V1 {
		return err
	}
	return v1cmd.AllowNewKey(ctx, d, key)
}
