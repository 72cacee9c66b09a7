package main

import (
	"context"
	"log/slog"

	"partnerapi/db"
	"partnerapi/platform/report"
	"partnerapi/platform/seal"
	v2 "partnerapi/v2"
)

// kept is what a process keeps data with beside the database: the keys of the
// secrets in it, which may be nil, and the store of the files of reports, with what
// makes those.
type kept struct {
	keys  *seal.Keys
	store *report.Store
	maker *report.Maker
	// endpoints is how subscriptions reach the outside world; nil where none is
	// reached.
	endpoints v2.Endpoints
}

// keep opens what the flags say of that. What they cannot mean is an error before
// anything is made. The caller closes the store.
func (f workFlags) keep(ctx context.Context, d *db.DB, at databaseFlags, log *slog.Logger) (k kept, err error) {
	if k.maker, err = f.maker(); err != nil {
		return k, err
	}
	if k.keys, err = f.openKeys(ctx, d, at, log); err != nil {
		return k, err
	}
	k.store, err = f.openStore(ctx, at.DataDir, log)
	return k, err
}
