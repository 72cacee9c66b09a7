package db

import (
	"context"
	"sync"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Tenant is a client within the caller's reach. The client's objects are read and written through it, so that no code
// can forget to check the reach.
type Tenant struct {
	domain.Client
	db *DB
}

// User is a user within the caller's reach. The user's objects are read and written through it.
type User struct {
	domain.User
	db        *DB
	darkWebOn bool // the user's client has Dark Web Monitoring
}

// DB returns the database from which the client was read.
func (t *Tenant) DB() *DB { return t.db }

// DB returns the database from which the user was read.
func (u *User) DB() *DB { return u.db }

// WithinReach returns the condition that a client, alias c, is within the caller's reach: it belongs to the key's
// partner, is not archived and, unless the key has access to all clients, is Listed.
func WithinReach(ctx context.Context) pg.Query {
	return pg.SQL("c.archived_at IS NULL AND ?", withinReachOrArchived(ctx))
}

// withinReachOrArchived returns the condition that a client, alias c, is within the caller's reach or would be if it
// were not archived.
func withinReachOrArchived(ctx context.Context) pg.Query {
	caller := domain.CallerFrom(ctx)
	const ofPartner = "c.partner_id = ?"
	if caller.AllClients {
		return pg.SQL(ofPartner, caller.Partner)
	}
	return pg.SQL(ofPartner+" AND ?", caller.Partner, Listed(ctx, "c.id"))
}

// Listed returns the condition that a client, an SQL expression, is one of those that are listed for the caller's key or,
// if the caller is limited to one (domain.Caller.Only), that one. The caller must not have access to all clients.
func Listed(ctx context.Context, client string) pg.Query {
	caller := domain.CallerFrom(ctx)
	if !caller.Only.IsZero() {
		return pg.SQL(client+" = ?", caller.Only)
	}
	return pg.SQL("EXISTS (SELECT 1 FROM api_key_clients AS k WHERE k.key_id = ? AND k.client_id = "+client+")", caller.Key)
}

// CoveredKey returns the condition that the key whose id is in a column is limited to a list of clients, which is not
// empty, and that all of these are Listed for the caller too.
func CoveredKey(ctx context.Context, column string) pg.Query {
	return pg.SQL(`(EXISTS (SELECT 1 FROM api_keys AS o JOIN api_key_clients AS l ON l.key_id = o.id
			WHERE o.id = `+column+` AND NOT o.all_clients)
		AND NOT EXISTS (SELECT 1 FROM api_key_clients AS l WHERE l.key_id = `+column+` AND NOT ?))`, Listed(ctx, "l.client_id"))
}

// Tenant returns a client. It returns NotFound if the client is not within the caller's reach. The text of the query is
// built only once for each kind of caller.
func (d *DB) Tenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	caller := domain.CallerFrom(ctx)
	values := []any{id, caller.Partner}
	switch {
	case caller.AllClients:
		return d.tenant(ctx, id, pg.Prepared(pg.Raw(tenantOfPartner(), values)))
	case caller.Only.IsZero():
		return d.tenant(ctx, id, pg.Prepared(pg.Raw(tenantOfKey(), append(values, caller.Key))))
	}
	return d.tenant(ctx, id, pg.Prepared(tenantQuery(ctx, id)))
}

// tenantOfPartner and tenantOfKey return the text of tenantQuery for callers who reach all clients, and for those
// limited to listed clients. They are built only once because nearly every request runs one of them.
var (
	tenantOfPartner = tenantText(&domain.Caller{AllClients: true})
	tenantOfKey     = tenantText(&domain.Caller{})
)

// tenantText returns a function that returns tenantQuery's text, without values, for callers like caller; built once.
func tenantText(caller *domain.Caller) func() string {
	return sync.OnceValue(func() string {
		return pg.Text(tenantQuery(domain.WithCaller(context.Background(), caller), domain.ClientID{}))
	})
}

// tenantQuery selects a client within the caller's reach. Its parameters are the client, the partner and, for a key
// with listed clients, the key.
func tenantQuery(ctx context.Context, id domain.ClientID) *bun.SelectQuery {
	return pg.Rows[ClientRow]().Apply(pg.Where("c.id = ?", id)).Where("?", WithinReach(ctx))
}

// AnyTenant returns a client of any partner, for the service's own work. It returns NotFound if the client does not
// exist or is archived.
func (d *DB) AnyTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	return d.tenant(ctx, id, pg.Prepared(pg.Rows[ClientRow]().Apply(pg.Where("c.id = ? AND c.archived_at IS NULL", id))))
}

// LockTenant locks and returns a client within the caller's reach, or NotFound, for a change of the client itself.
func (c *Change) LockTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	c.WillLock(ClientLocks)
	return c.tenant(ctx, id, tenantQuery(ctx, id).For("NO KEY UPDATE OF c"))
}

// Reach returns NotFound if the client or the user is not within the caller's reach. A zero id is not checked.
func (d *DB) Reach(ctx context.Context, client domain.ClientID, user domain.UserID) error {
	if !client.IsZero() {
		if _, err := d.Tenant(ctx, client); err != nil {
			return err
		}
	}
	if user.IsZero() {
		return nil
	}
	_, err := d.User(ctx, user)
	return err
}

// tenant returns the client that q selects, or NotFound.
func (d *DB) tenant(ctx context.Context, id domain.ClientID, q pg.Query) (*Tenant, error) {
	row, err := pg.Find[ClientRow](ctx, d, id.Noun(), q)
	if err != nil {
		return nil, err
	}
	return d.tenantOf(&row), nil
}

func (d *DB) tenantOf(r *ClientRow) *Tenant { return &Tenant{Client: r.Client, db: d} }
