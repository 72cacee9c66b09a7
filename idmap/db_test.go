package idmap

import (
	"context"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// objects are the tables of the six kinds, with what the registry needs of them.
const objects = `
CREATE TABLE clients (id uuid PRIMARY KEY, created_at timestamptz NOT NULL, partner_id uuid);
CREATE TABLE collections (id uuid PRIMARY KEY, created_at timestamptz NOT NULL,
	client_id uuid REFERENCES clients ON DELETE CASCADE);
CREATE TABLE policies (id uuid PRIMARY KEY, created_at timestamptz NOT NULL,
	scope_type text NOT NULL DEFAULT 'tenant', scope_id uuid, client_id uuid);
CREATE TABLE phishing_templates (id uuid PRIMARY KEY, created_at timestamptz NOT NULL,
	name text, language text, own boolean NOT NULL DEFAULT true);
CREATE TABLE groups (id uuid PRIMARY KEY, created_at timestamptz NOT NULL, client_id uuid);
CREATE TABLE reports (id uuid PRIMARY KEY, created_at timestamptz NOT NULL, client_id uuid);
CREATE TABLE api_keys (id uuid PRIMARY KEY, partner_id uuid);
CREATE TABLE cell (one boolean PRIMARY KEY DEFAULT true, number integer NOT NULL, count integer NOT NULL)`

var tables = map[Kind]string{
	Client: "clients", Collection: "collections", Policy: "policies",
	Template: "phishing_templates", Group: "groups", Report: "reports",
}

func openURL(t testing.TB, address string) *pg.DB {
	t.Helper()
	d, err := pg.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// databaseURL makes a database of the test's own, with the tables alone or with
// the registry too.
func databaseURL(t testing.TB, migrated bool) string {
	t.Helper()
	schema := dbtest.Schema{Name: "objects", Key: objects, Apply: func(ctx context.Context, address string) error {
		return apply(ctx, address, false)
	}}
	if migrated {
		schema = dbtest.Schema{Name: "idmap", Key: objects + SchemaKey()}
		schema.Apply = func(ctx context.Context, address string) error { return apply(ctx, address, true) }
	}
	return dbtest.URL(t, schema)
}

func apply(ctx context.Context, address string, migrated bool) error {
	d, err := pg.Open(address)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := pg.Run(ctx, d, "make the objects", pg.SQL(objects)); err != nil || !migrated {
		return err
	}
	return Migrate(ctx, d)
}
