// Package idmaptest has the schema of tests that use v1's numbers.
package idmaptest

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/idmap"
)

// Schema has the service's tables and the registry's. All packages share its template.
var Schema = dbtest.Schema{Name: "v1", Key: migrate.SchemaKey() + idmap.SchemaKey(), Apply: func(ctx context.Context, url string) error {
	return worldtest.Migrate(ctx, url, func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.DB) })
}}
