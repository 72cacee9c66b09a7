package db

import (
	"context"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// reachSQL is the condition that a client, alias c, is within the caller's
// access: of the key's partner, not archived, and listed for the key unless it
// reaches all. Every read and write of tenants goes through it.
func reachSQL(caller *domain.Caller) (string, []any) {
	condition := "c.partner_id = ? AND c.archived_at IS NULL"
	if caller.AllClients {
		return condition, []any{caller.Partner}
	}
	condition += " AND EXISTS (SELECT 1 FROM api_key_clients AS k WHERE k.key_id = ? AND k.client_id = c.id)"
	return condition, []any{caller.Partner, caller.Key}
}

// reachable is reach for a query that is read with values.
func reachable(ctx context.Context, q *bun.SelectQuery, values *binds) *bun.SelectQuery {
	condition, args := reachSQL(domain.CallerFrom(ctx))
	return q.Where(condition, values.addAll(args)...)
}

// legacyReach restricts a query on clients, alias c, to what the caller of ctx reaches.
func legacyReach(ctx context.Context, q *bun.SelectQuery) *bun.SelectQuery {
	condition, args := reachSQL(domain.CallerFrom(ctx))
	return q.Where(condition, args...)
}
