package operator

import (
	"context"

	"partnerapi/cmd/internal/v1cmd"
	"partnerapi/db"
)

// allowV1 allows a new key to call v1 if --v1 is given. err is the error of creating the key: if it is not nil, allowV1
// only returns it.
func (c createKeyCmd) allowV1(ctx context.Context, d *db.DB, key string, err error) error {
	if err != nil || !c.V1 {
		return err
	}
	return v1cmd.AllowNewKey(ctx, d, key)
}
