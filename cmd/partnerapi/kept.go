package main

import (
	"context"
	"log/slog"

	"partnerapi/db"
	"partnerapi/platform/report"
	"partnerapi/platform/seal"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// kept is what a process works with beside the database: the keys of the secrets in
// it, which may be nil, the store of the files of reports, with what makes those, and
// the way to the endpoints of webhooks.
type kept struct {
	keys      *seal.Keys
	store     *report.Store
	maker     *report.Renderer
	endpoints endpoints
}

// endpoints is the way to the endpoints of webhooks: a webhook.Endpoints.
type endpoints interface {
	v2.Endpoints
	webhook.Poster
	Close()
}

// keep opens what the flags say of that. What they cannot mean is an error before
// anything is made. The caller closes it.
func (f workFlags) keep(ctx context.Context, d *db.DB, at databaseFlags, log *slog.Logger) (k kept, err error) {
	if k.maker, err = f.maker(); err != nil {
		return k, err
	}
	if k.endpoints, err = f.endpoints(d); err != nil {
		return k, err
	}
	if k.keys, err = f.openKeys(ctx, d, at, log); err != nil {
		return k, err
	}
	k.store, err = f.openStore(ctx, at.DataDir, log)
	return k, err
}

// close ends what is kept open.
func (k kept) close() { k.endpoints.Close() }
