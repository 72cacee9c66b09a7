package db

import (
	"context"
	"sync"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Tenant is a client within the caller's reach. The client's objects are read and written
// through it, so that no code can forget that check.
type Tenant struct {
	domain.Client
	db *DB
}

// User is a user within the caller's reach, as Tenant is for clients.
type User struct {
	domain.User
	db        *DB
	darkWebOn bool // the user's client has Dark Web Monitoring
}

// DB is the database that the client is read from.
func (t *Tenant) DB() *DB { return t.db }

// DB is the database that the user is read from.
func (u *User) DB() *DB { return u.db }

// WithinReach is the condition that a client, alias c, is within the caller's reach:
// of the key's partner, not archived and, unless the key reaches all, listed for it. Every
// read and write of tenants uses it.
func WithinReach(ctx context.Context) pg.Query {
	caller := domain.CallerFrom(ctx)
	const ofPartner = "c.partner_id = ? AND c.archived_at IS NULL"
	if caller.AllClients {
		return pg.SQL(ofPartner, caller.Partner)
	}
	return pg.SQL(ofPartner+" AND EXISTS (SELECT 1 FROM api_key_clients AS k WHERE k.key_id = ? AND k.client_id = c.id)",
		caller.Partner, caller.Key)
}

// Tenant finds a client. NotFound where the caller does not reach it.
func (d *DB) Tenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	caller := domain.CallerFrom(ctx)
	if caller.AllClients {
		return d.tenant(ctx, id, pg.Prepared(pg.Raw(tenantOfPartner(), []any{id, caller.Partner})))
	}
	return d.tenant(ctx, id, pg.Prepared(pg.Raw(tenantOfKey(), []any{id, caller.Partner, caller.Key})))
}

// tenantOfPartner and tenantOfKey are the texts of tenantQuery for the two kinds
// of callers: nearly every request runs one of them.
var (
	tenantOfPartner = tenantText(&domain.Caller{AllClients: true})
	tenantOfKey     = tenantText(&domain.Caller{})
)

func tenantText(caller *domain.Caller) func() string {
	return sync.OnceValue(func() string {
		return pg.Text(tenantQuery(domain.WithCaller(context.Background(), caller), domain.ClientID{}))
	})
}

// tenantQuery binds the client, the partner and, for a key with listed clients, the key.
func tenantQuery(ctx context.Context, id domain.ClientID) *pg.Select {
	return pg.Rows[ClientRow]().Where("c.id = ?", id).Where("?", WithinReach(ctx))
}

// AnyTenant finds a client of any partner, for the service's own work. NotFound where it was
// archived.
func (d *DB) AnyTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	return d.tenant(ctx, id, pg.Prepared(pg.Rows[ClientRow]().Where("c.id = ? AND c.archived_at IS NULL", id)))
}

// LockTenant is Tenant for a change of the client itself. It locks the client until the
// transaction ends.
func (c *Change) LockTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	c.Lock(ClientLocks)
	return c.tenant(ctx, id, tenantQuery(ctx, id).For("NO KEY UPDATE OF c"))
}

// Reach returns NotFound if the caller does not reach a client or user that is not zero.
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

func (d *DB) tenant(ctx context.Context, id domain.ClientID, q pg.Query) (*Tenant, error) {
	row, err := pg.Find[ClientRow](ctx, d, id.Noun(), q)
	if err != nil {
		return nil, err
	}
	return d.tenantOf(&row), nil
}

func (d *DB) tenantOf(r *ClientRow) *Tenant { return &Tenant{Client: r.client(), db: d} }
