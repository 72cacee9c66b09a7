// Package v2 implements the operations of the service, one file per resource: each is one function, the use case
// itself. Package api declares their inputs and outputs; New binds the two. The subpackages of op make the surfaces.
package v2

import (
	"context"
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// API holds the operations. Each can be called in process, even if the release that the public edge serves lacks it.
type API struct {
	Set op.Set

	db          *db.DB
	reportLinks ReportLinks
	endpoints   Endpoints
	sealer      Sealer
	release     op.Release
	// testing holds the ids of subscriptions whose test is in progress.
	testing sync.Map
}

// Option changes how New binds the operations.
type Option func(*API)

// New binds the operations to a database. The secret authenticates the cursors of lists. A declared operation that is
// not bound is a programming error, and panics.
func New(database *db.DB, cursorSecret []byte, options ...Option) *API {
	a := &API{db: database, release: op.Latest}
	a.Set.Cursors = domain.CursorSealer{Secret: cursorSecret}
	a.Set.DryRun = func(ctx context.Context, work func(context.Context) error) error { return database.DryRun(ctx, work) }
	for _, option := range options {
		option(a)
	}

	a.bindClients()
	a.bindAdmins()
	a.bindPartner()
	a.bindKey()
	a.bindUsers()
	a.bindRisk()
	a.bindCollections()
	a.bindPolicies()
	a.bindExposures()
	a.bindTraining()
	a.bindFrameworks()
	a.bindPhishing()
	a.bindPhishingSends()
	a.bindEmails()
	a.bindReportedEmails()
	a.bindSync()
	a.bindReports()
	a.bindEvents()
	a.bindWebhooks()
	a.bindDeliveries()
	if err := a.Set.Complete(api.Operations); err != nil {
		panic(err)
	}
	return a
}

// WithCursorSecrets also accepts cursors that were sealed with other secrets than New's.
func WithCursorSecrets(others func() [][]byte) Option {
	return func(a *API) { a.Set.Cursors.Others = others }
}

// changeTenant runs work in a Change with a client; NotFound if the caller has access to none with the id.
func (a *API) changeTenant(
	ctx context.Context, id domain.ClientID, work func(context.Context, *db.Change, *db.Tenant) error,
) error {
	return a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, id)
		if err != nil {
			return err
		}
		return work(ctx, c, t)
	})
}
