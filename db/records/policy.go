package records

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/domain"
)

// importedPolicy is a row of policies with the additional columns of imports and exports.
type importedPolicy struct {
	bun.BaseModel `bun:"table:policies,alias:p"`
	db.PolicyRow
	ReviewedAt time.Time
	ArchivedAt *time.Time

	ScopeDeleted bool `bun:",scanonly"`
}

// Policies is the kind of policies, including archived ones. If a record changes the version, the signatures of the old
// version remain signatures of that version.
var Policies = declare[policies](kind[domain.PolicyRecord, importedPolicy]{
	object: "policy", partner: ofPartner("p"), order: "p.client_id, p.created_at, p.id",
	rank: db.PolicyLocks, locked: "p.client_id, p.id",
	columns: `p.scope_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = p.client_id AND k.id = p.scope_id) AS scope_deleted`,
})

type policies struct {
	batch[domain.PolicyRecord, importedPolicy]
}

func (b *policies) create(in *domain.PolicyRecord, p *importedPolicy) {
	p.ID, p.CreatedAt, p.UpdatedAt, p.ReviewedAt = in.ID.ID, b.At, b.At, in.CreatedAt.Or(domain.Time{Time: b.At}).Time
	p.Version, p.ScopeType, p.MustSign, p.RenewalDays = 1, domain.TenantScope, true, 365
}

// apply checks and sets the scope, and sets the times of archiving and, for a new version, of review and publication.
func (b *policies) apply(in *domain.PolicyRecord, before, p *importedPolicy) error {
	if err := b.checkScope(in, before, p); err != nil {
		return err
	}
	switch {
	case p.ScopeType == domain.TenantScope:
		p.ScopeID = p.Client
	case in.ScopeID.Given:
		p.ScopeID = in.ScopeID.Value.UUID
	}
	b.setArchived(in.Archived, &p.ArchivedAt)
	if before != nil && p.Version > before.Version {
		p.PublishedAt = new(domain.Later(p.UpdatedAt, b.At)) // which becomes UpdatedAt too
		if !in.ReviewedAt.Given {
			p.ReviewedAt = domain.Later(p.ReviewedAt, b.At)
		}
	}
	b.touch(before, p, &p.UpdatedAt)
	return nil
}

// checkScope returns an error if the record's scope is not the client or one of its groups or collections, or is
// missing. An unchanged scope of an existing policy may have been deleted. A record can name a deleted collection by
// scope_deleted.
func (b *policies) checkScope(in *domain.PolicyRecord, before, p *importedPolicy) error {
	scope, typeChanged := in.ScopeID.Value, before == nil || p.ScopeType != before.ScopeType
	switch {
	case p.ScopeType == domain.TenantScope:
		if id, ok := domain.RefAs[domain.ClientKind](scope); in.ScopeID.Given && (!ok || id != p.Client) {
			return errors.New("scope_id must be the policy's client or be omitted")
		}
		return nil
	case !in.ScopeID.Given && in.ScopeType.Given && typeChanged:
		return missing("scope_id")
	case !in.ScopeID.Given, !typeChanged && scope.UUID == before.ScopeID:
		return nil // unchanged
	case p.ScopeType == domain.GroupScope:
		if id, ok := domain.RefAs[domain.GroupKind](scope); !ok || !b.found.find(id).isOf(p.Client) {
			return noSuch("scope_id", id)
		}
		return nil
	}

	id, ok := domain.RefAs[domain.CollectionKind](scope)
	collection := b.found.find(id)
	switch deleted := in.ScopeDeleted.Value; {
	case ok && collection == nil && deleted: // the record is of a policy for a deleted collection
	case !ok || !collection.isOf(p.Client):
		return noSuch("scope_id", id)
	case deleted:
		return errors.New("scope_deleted is true, but the collection exists")
	}
	return nil
}

// follow marks the counts of changed policies as stale.
func (b *policies) follow(context.Context) error {
	if len(b.updates) > 0 {
		b.PoliciesChanged("p.id = ANY(?::uuid[])", idsOf(b.updates))
	}
	return nil
}

func (b *policies) complete(p *importedPolicy, out *domain.PolicyRecord) error {
	if p.ScopeType != domain.TenantScope {
		out.ScopeID = domain.Give(domain.ScopeOf(p.ScopeType, p.ScopeID))
	}
	out.Archived = archivedField(p.ArchivedAt)
	return nil
}
