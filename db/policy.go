package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type policyRow struct {
	bun.BaseModel `bun:"table:policies,alias:p"`

	ClientID               domain.ClientID `bun:"client_id,pk"`
	ID                     domain.PolicyID `bun:"id,pk"`
	Title                  string
	Description            *string
	Version                int
	ScopeType              domain.ScopeType
	ScopeID                domain.ClientID // or that of a group or a collection
	RequiresAcknowledgment bool
	RenewalPeriodDays      int
	CreatedAt              time.Time
	AudienceCount          int
	AcknowledgedCount      int
	PublishedAt            *time.Time

	// Counted is whether the counts hold.
	Counted   bool      `bun:"counted,scanonly"`
	ChangedAt time.Time `bun:"changed_at,scanonly"`
}

func (r *policyRow) policy() domain.Policy {
	p := domain.Policy{
		ID: r.ID, Client: r.ClientID, Title: r.Title, Description: r.Description, Version: r.Version,
		ScopeType: r.ScopeType, Scope: domain.ScopeOf(r.ScopeType, r.ScopeID),
		MustSign: r.RequiresAcknowledgment, RenewalDays: r.RenewalPeriodDays, CreatedAt: r.CreatedAt, UpdatedAt: r.ChangedAt, PublishedAt: r.PublishedAt,
	}
	if p.MustSign && r.Counted {
		p.SignOff = &domain.SignOff{Audience: r.AudienceCount, Acknowledged: r.AcknowledgedCount}
	}
	return p
}

// changedSQL is when a policy, alias p, changed last as of ?: when something
// was written, or when a sign-off of the current version lapsed, which nobody
// writes.
const changedSQL = `greatest(p.updated_at, (
	SELECT max(l.signed_at) + make_interval(days => p.renewal_period_days) FROM policy_signatures AS l
	WHERE l.client_id = p.client_id AND l.policy_id = p.id AND l.version = p.version
		AND p.requires_acknowledgment AND l.signed_at <= ?::timestamptz - make_interval(days => p.renewal_period_days)))`

func (d *DB) withChanged(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
	return q.Column("p.client_id", "p.id", "p.title", "p.description", "p.version", "p.scope_type", "p.scope_id",
		"p.requires_acknowledgment", "p.renewal_period_days", "p.created_at", "p.audience_count", "p.acknowledged_count", "p.published_at").
		ColumnExpr("p.counted_until > ? AS counted", values.add(d.Now())).
		ColumnExpr(changedSQL+" AS changed_at", values.add(d.Now()))
}

// Policies reads a page of a client's policies with their counts, by their
// creation. Archived ones are left out. That the client is within reach is for
// its caller to have checked, here and below.
func (d *DB) Policies(ctx context.Context, client domain.ClientID, since *time.Time, w domain.Window) (domain.Slice[domain.Policy], error) {
	k := keyset{
		from: "policies AS p", key: "p.created_at", cast: "timestamptz", id: "p.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = q.Where("p.client_id = ? AND p.archived_at IS NULL", values.add(client))
			if since != nil {
				q = q.Where(changedSQL+" >= ?", values.add(d.Now()), values.add(*since))
			}
			return q
		},
	}
	rows, err := countedPage(ctx, d, k, w, d.withChanged, func(r *policyRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	slice := mapped(rows, (*policyRow).policy)
	if err != nil {
		return slice, err
	}
	return slice, d.recount(ctx, client, slice.Rows)
}

// LockPolicy is Policy for a transaction that changes it.
func (d *DB) LockPolicy(ctx context.Context, client domain.ClientID, id domain.PolicyID) (domain.Policy, error) {
	_, err := d.conn(ctx).NewRaw("SELECT 1 FROM policies WHERE client_id = ? AND id = ? FOR NO KEY UPDATE", client, id).Exec(ctx)
	if err != nil {
		return domain.Policy{}, d.bad("lock a policy", err)
	}
	return d.Policy(ctx, client, id)
}

// Policy reads one of a client's policies, whose counts may be missing. NotFound where
// the client has no such policy, or archived it.
func (d *DB) Policy(ctx context.Context, client domain.ClientID, id domain.PolicyID) (domain.Policy, error) {
	var values binds
	q := d.withChanged(d.Bun().NewSelect().Model((*policyRow)(nil)), &values).
		Where("p.client_id = ? AND p.id = ? AND p.archived_at IS NULL", values.add(client), values.add(id))
	row, err := readOne[policyRow](ctx, d, q.String(), values)
	return row.policy(), d.found(err, id.Noun())
}

// audience is the condition that a user, alias u, is of a policy's audience.
func audience(p domain.Policy) (string, []any) {
	active := "u.client_id = ? AND u.status = 'active'"
	switch p.ScopeType {
	case domain.GroupScope:
		return active + " AND u.group_id = ?", []any{p.Client, p.Scope.Group}
	case domain.CollectionScope:
		return active + ` AND EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = u.client_id AND m.collection_id = ? AND m.user_id = u.id)`, []any{p.Client, p.Scope.Collection}
	}
	return active, []any{p.Client}
}

// signature is the condition that a signature, alias s, is that of a user,
// alias u, for a policy, and is valid.
func (d *DB) signature(p domain.Policy) (string, []any) {
	return "s.client_id = u.client_id AND s.policy_id = ? AND s.version = ? AND s.user_id = u.id AND s.signed_at > ?",
		[]any{p.ID, p.Version, p.SignedSince(d.Now())}
}

type policyUserRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        domain.UserID
	Email     string
	FirstName string
	LastName  string
	CreatedAt time.Time

	SignedAt *time.Time `bun:"signed_at,scanonly"`
}

func (r *policyUserRow) policyUser() domain.PolicyUser {
	return domain.PolicyUser{User: r.ID, Email: r.Email, Name: domain.FullName(r.FirstName, r.LastName), AcknowledgedAt: r.SignedAt}
}

// signedSince is the condition that a user's sign-off changed at or after a time
// (it was recorded, it lapsed, or the version became the current one), or that
// the user did.
func (d *DB) signedSince(q *bun.SelectQuery, values *binds, p domain.Policy, since time.Time) *bun.SelectQuery {
	at := values.add(since)
	return q.Where("(u.updated_at >= ? OR ?::timestamptz >= ? OR EXISTS (SELECT 1 FROM policy_signatures AS s WHERE "+
		"s.client_id = ? AND s.policy_id = ? AND s.version = ? AND s.user_id = u.id AND (coalesce(s.recorded_at, s.signed_at) >= ?"+
		" OR s.signed_at <= ? AND s.signed_at + make_interval(days => ?) >= ?)))",
		at, values.add(p.PublishedAt), at, values.add(p.Client), values.add(p.ID), values.add(p.Version), at,
		values.add(p.SignedSince(d.Now())), values.add(p.RenewalDays), at)
}

// PolicyUsers reads a page of the active users of a policy's audience, by
// their creation. since, if not nil, leaves those who changed, or whose sign-off
// did, at or after it.
func (d *DB) PolicyUsers(ctx context.Context, p domain.Policy, f domain.SignFilter, since *time.Time, w domain.Window) (domain.Slice[domain.PolicyUser], error) {
	counted := w.Total && since == nil && p.MustSign
	if counted {
		policies := []domain.Policy{p}
		if err := d.recount(ctx, p.Client, policies); err != nil {
			return domain.Slice[domain.PolicyUser]{}, err
		}
		p = policies[0]
	}
	signature, signed := d.signature(p)
	k := keyset{
		from: "users AS u", key: "u.created_at", cast: "timestamptz", id: "u.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			condition, args := audience(p)
			q = q.Where(condition, values.addAll(args)...)
			switch f {
			case domain.Signed:
				q = q.Where("EXISTS (SELECT 1 FROM policy_signatures AS s WHERE "+signature+")", values.addAll(signed)...)
			case domain.Unsigned:
				q = q.Where("NOT EXISTS (SELECT 1 FROM policy_signatures AS s WHERE "+signature+")", values.addAll(signed)...)
			}
			if since != nil {
				q = d.signedSince(q, values, p, *since)
			}
			return q
		},
	}
	w.Total = w.Total && !counted
	rows, err := countedPage(ctx, d, k, w, func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
		return q.ColumnExpr("u.id, u.email, u.first_name, u.last_name, u.created_at, s.signed_at").
			Join("LEFT JOIN policy_signatures AS s ON "+signature, values.addAll(signed)...)
	}, func(r *policyUserRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	if counted {
		rows.Total = p.SignOff.Of(f)
	}
	return mapped(rows, (*policyUserRow).policyUser), err
}
