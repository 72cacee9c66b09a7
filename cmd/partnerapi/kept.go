package main

import (
	"context"
	"log/slog"

	"partnerapi/db"
	"partnerapi/platform/seal"
)

// kept is what a process keeps data with beside the database: the keys of the
// secrets in it, which may be nil.
type kept struct {
	keys *seal.Keys
}

// keep opens what the flags say of that.
func (f workFlags) keep(ctx context.Context, d *db.DB, at databaseFlags, log *slog.Logger) (k kept, err error) {
	k.keys, err = f.openKeys(ctx, d, at, log)
	return k, err
}
