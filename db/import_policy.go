package db

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of policies.

// importedPolicy is a policy with what an import and an export have beside.
type importedPolicy struct {
	bun.BaseModel `bun:"table:policies,alias:p"`
	policyRow
	ReviewedAt time.Time
	ArchivedAt *time.Time
	UpdatedAt  time.Time

	ScopeDeleted bool `bun:",scanonly"`
}

// PolicyRecords are policies, archived ones too. What was signed of a version stays
// signed of it.
var PolicyRecords Records = &kind[domain.PolicyRecord, importedPolicy]{
	object: "policy", partner: ofPartner("p"), order: "p.client_id, p.created_at, p.id",
	rank: PolicyLocks, locked: "p.client_id, p.id",
	columns: `p.scope_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = p.client_id AND k.id = p.scope_id) AS scope_deleted`,
	exported: func(r *importedPolicy, out *domain.PolicyRecord) error {
		switch r.ScopeType {
		case domain.GroupScope:
			out.ScopeID = domain.Give(domain.AnyRefTo(domain.GroupID(r.ScopeID)))
		case domain.CollectionScope:
			out.ScopeID = domain.Give(domain.AnyRefTo(domain.CollectionID(r.ScopeID)))
		}
		out.Archived = isArchived(r.ArchivedAt)
		return nil
	},
	fresh: func(r *importedPolicy) {
		r.Version, r.ScopeType, r.RequiresAcknowledgment, r.RenewalPeriodDays = 1, domain.TenantScope, true, 365
	},
	finish: finishPolicy,
	follow: func(_ context.Context, b *importingPolicies) error {
		ids := make([]domain.PolicyID, len(b.changed))
		for i, a := range b.changed {
			ids[i] = a.after.ID
		}
		if len(ids) > 0 {
			b.policiesOf("p.id = ANY(?::uuid[])", pg.IDs(ids))
		}
		return nil
	},
}

type (
	importingPolicies = importing[domain.PolicyRecord, importedPolicy]
	appliedPolicy     = applied[domain.PolicyRecord, importedPolicy]
)

// finishPolicy sets the scope, and when a policy was reviewed and, with a new version,
// published.
func finishPolicy(b *importingPolicies, a *appliedPolicy) error {
	if err := checkScope(b, a); err != nil {
		return err
	}
	r, p := a.record, a.after
	switch {
	case p.ScopeType == domain.TenantScope:
		p.ScopeID = p.ClientID
	case r.ScopeID.Given:
		p.ScopeID = r.ScopeID.Value.UUID
	}
	b.archive(r.Archived, &p.ArchivedAt)

	if a.before == nil {
		if !r.ReviewedAt.Given {
			p.ReviewedAt = p.CreatedAt
		}
		return nil
	}
	if p.Version > a.before.Version {
		at := latest(p.UpdatedAt, b.At)
		p.PublishedAt = &at
		if !r.ReviewedAt.Given {
			p.ReviewedAt = latest(p.ReviewedAt, b.At)
		}
	}
	return nil
}

// checkScope refuses a scope that is not the client's. One that a policy has may have been
// deleted since.
func checkScope(b *importingPolicies, a *appliedPolicy) error {
	r, p, to := a.record, a.after, a.record.ScopeID.Value
	moved := a.before == nil || p.ScopeType != a.before.ScopeType
	switch {
	case p.ScopeType == domain.TenantScope:
		if id, ok := domain.RefAs[domain.ClientKind](to); r.ScopeID.Given && (!ok || id != p.ClientID) {
			return errors.New("scope_id: must be the policy's client, or be left out")
		}
		return nil
	case !r.ScopeID.Given && r.ScopeType.Given && moved:
		return missing("scope_id")
	case !r.ScopeID.Given, !moved && to.UUID == a.before.ScopeID:
		return nil
	case p.ScopeType == domain.GroupScope:
		if id, ok := domain.RefAs[domain.GroupKind](to); !ok || !b.found.find(id).isOf(p.ClientID) {
			return noSuch("scope_id", id)
		}
		return nil
	}

	id, ok := domain.RefAs[domain.CollectionKind](to)
	collection := b.found.find(id)
	switch deleted := r.ScopeDeleted.Value; {
	case ok && collection == nil && deleted:
	case !ok || !collection.isOf(p.ClientID):
		return noSuch("scope_id", id)
	case deleted:
		return errors.New("scope_deleted: the collection is there")
	}
	return nil
}
