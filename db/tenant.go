package db

import (
	"context"
	"sync"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Tenant is a client that was found within the caller's reach. What belongs to
// the client is read and written through it, so that nothing can be reached
// without that check.
type Tenant struct {
	domain.Client
	db *DB
}

// User is a user who was found within the caller's reach, as Tenant is for
// clients.
type User struct {
	domain.User
	db *DB
	// watched says that the user's client has Dark Web Monitoring.
	watched bool
}

// DB is the database that the client is read from.
func (t *Tenant) DB() *DB { return t.db }

// DB is the database that the user is read from.
func (u *User) DB() *DB { return u.db }

// WithinReach is the condition that a client, alias c, is within the caller's access:
// of the key's partner, not archived, and listed for the key unless it reaches
// all. Every read and write of tenants goes through it.
func WithinReach(ctx context.Context) pg.Query {
	caller := domain.CallerFrom(ctx)
	const reached = "c.partner_id = ? AND c.archived_at IS NULL"
	if caller.AllClients {
		return pg.SQL(reached, caller.Partner)
	}
	return pg.SQL(reached+" AND EXISTS (SELECT 1 FROM api_key_clients AS k WHERE k.key_id = ? AND k.client_id = c.id)",
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

// tenantQuery binds the client, the partner and, where its clients are listed, the
// key.
func tenantQuery(ctx context.Context, id domain.ClientID) *pg.Select {
	return pg.From("clients AS c").Columns(pg.Columns[clientRow]()).Where("c.id = ?", id).Where("?", WithinReach(ctx))
}

// AnyTenant finds a client for the service's own work, whatever partner's it is.
// NotFound where it was archived.
func (d *DB) AnyTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	return d.tenant(ctx, id, pg.Prepared(pg.From("clients AS c").Columns(pg.Columns[clientRow]()).
		Where("c.id = ? AND c.archived_at IS NULL", id)))
}

// LockTenant is Tenant for a change of the client itself: until the transaction
// ends, no other such change goes on.
func (c *Change) LockTenant(ctx context.Context, id domain.ClientID) (*Tenant, error) {
	c.Lock(ClientLocks)
	return c.tenant(ctx, id, tenantQuery(ctx, id).For("NO KEY UPDATE OF c"))
}

// Reach reports NotFound for a client or a user, where they are not zero, that the
// caller does not reach.
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
	row, err := pg.Find[clientRow](ctx, d, id.Noun(), q)
	if err != nil {
		return nil, err
	}
	return &Tenant{Client: row.client(), db: d}, nil
}
