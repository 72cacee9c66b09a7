package operator

import (
	"context"

	"partnerapi/cmd/internal/v1cmd"
	"partnerapi/db"
)

// allowV1 allows the new key v1 if --v1 is given. It returns err, the error of creating the key, if that is not nil.
func (c createKeyCmd) allowV1(ctx context.Context, d *db.DB, key string, err error) error {
	if err != nil || !c.V1 {
		return err
	}
	return v1cmd.AllowNewKey(ctx, d, key)
}
