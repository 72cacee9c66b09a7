package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedPolicy is what an import and an export have of a row of policies.
type importedPolicy struct {
	bun.BaseModel `bun:"table:policies,alias:p"`

	ClientID               domain.ClientID `bun:"client_id,pk"`
	ID                     domain.PolicyID `bun:"id,pk"`
	Title                  string
	Description            *string
	Version                int
	ScopeType              domain.ScopeType
	ScopeID                [16]byte // of a client, a group or a collection
	RequiresAcknowledgment bool
	RenewalPeriodDays      int
	ReviewedAt             time.Time
	PublishedAt            *time.Time
	ArchivedAt             *time.Time
	CreatedAt              time.Time
	UpdatedAt              time.Time

	ScopeDeleted bool `bun:",scanonly"`
}

// importingPolicies is a batch of records of policies being applied.
type importingPolicies struct {
	*Change
	clients map[domain.ClientID]referredClient
	// groups and collections are those that are there, with their clients.
	groups      map[domain.GroupID]domain.ClientID
	collections map[domain.CollectionID]domain.ClientID
}

// ImportPolicies applies records of policies. What was signed of a version stays
// signed of it.
func (d *DB) ImportPolicies(ctx context.Context, batch []domain.PolicyRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importPolicies)
}

func (c *Change) importPolicies(ctx context.Context, batch []domain.PolicyRecord, results []domain.ImportResult) error {
	c.Lock(PolicyLocks)
	rows, err := lockRows[domain.PolicyRecord, importedPolicy](ctx, c, batch, "p.client_id, p.id")
	if err != nil {
		return err
	}
	m := &importingPolicies{Change: c}
	m.clients, err = c.clientsCalled(ctx, refsOf(batch, func(r *domain.PolicyRecord) clientRef { return r.Client }))
	if err != nil {
		return err
	}
	if err := m.readScopes(ctx, batch); err != nil {
		return err
	}
	k := kind[domain.PolicyRecord, importedPolicy]{
		Change: c, rows: rows, fresh: m.fresh, refuse: m.refusal, finish: m.finish, then: m.then,
	}
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	if err := k.store(ctx, made, changed); err != nil || len(changed) == 0 {
		return err
	}
	ids := make([]domain.PolicyID, len(changed))
	for i, a := range changed {
		ids[i] = a.after.ID
	}
	_, err = pg.Exec(ctx, c, "mark the counts of policies as stale", pg.SQL(
		"UPDATE policies SET counted_until = '-infinity' WHERE id = ANY(?::uuid[])", pg.IDs(ids)))
	return err
}

func (m *importingPolicies) readScopes(ctx context.Context, batch []domain.PolicyRecord) error {
	type scopeRow struct {
		ID         domain.GroupID // of whichever kind
		ClientID   domain.ClientID
		Collection bool
	}
	ids := make([][16]byte, len(batch))
	for i := range batch {
		ids[i] = batch[i].ScopeID.Value.UUID
	}
	rows, err := pg.All[scopeRow](ctx, m, "look for scopes", pg.SQL(`
		SELECT id, client_id, false AS collection FROM groups WHERE id = ANY(?0::uuid[])
		UNION ALL SELECT id, client_id, true FROM collections WHERE id = ANY(?0::uuid[])`, ids))
	m.groups, m.collections = map[domain.GroupID]domain.ClientID{}, map[domain.CollectionID]domain.ClientID{}
	for _, r := range rows {
		if r.Collection {
			m.collections[domain.CollectionID(r.ID)] = r.ClientID
		} else {
			m.groups[r.ID] = r.ClientID
		}
	}
	return err
}

func (m *importingPolicies) fresh(r *domain.PolicyRecord) importedPolicy {
	created := r.CreatedAt.Or(domain.Time{Time: m.At}).Time
	return importedPolicy{
		Version: 1, ScopeType: domain.TenantScope, RequiresAcknowledgment: true, RenewalPeriodDays: 365,
		ReviewedAt: created, CreatedAt: created, UpdatedAt: m.At,
	}
}

func (m *importingPolicies) refusal(r *domain.PolicyRecord, before *importedPolicy) domain.ImportResult {
	old := importedPolicy{ClientID: r.Client.Value.ID}
	if before != nil {
		old = *before
	} else if !m.clients[old.ClientID].There {
		return noSuch("client", "client")
	}
	scope := r.ScopeType.Or(old.ScopeType)
	switch {
	case scope == domain.TenantScope || scope == "":
		if id, ok := domain.RefAs[domain.ClientKind](r.ScopeID.Value); r.ScopeID.Given && (!ok || id != old.ClientID) {
			return domain.RefuseImport("scope_id: must be the policy's client, or be left out")
		}
	case !r.ScopeID.Given:
		if r.ScopeType.Given && scope != old.ScopeType {
			return missing("scope_id")
		}
	case before != nil && r.ScopeID.Value.UUID == old.ScopeID && scope == old.ScopeType:
		// which may have been deleted since
	default:
		return m.scopeRefusal(r, scope, old.ClientID)
	}
	return domain.ImportResult{}
}

// scopeRefusal refuses a scope that is not the client's.
func (m *importingPolicies) scopeRefusal(
	r *domain.PolicyRecord, scope domain.ScopeType, client domain.ClientID,
) domain.ImportResult {
	if scope == domain.GroupScope {
		id, ok := domain.RefAs[domain.GroupKind](r.ScopeID.Value)
		if !ok || m.groups[id] != client {
			return noSuch("scope_id", id.Noun())
		}
		return domain.ImportResult{}
	}
	id, ok := domain.RefAs[domain.CollectionKind](r.ScopeID.Value)
	owner, there := m.collections[id]
	switch {
	case ok && !there && r.ScopeDeleted.Value:
	case !ok || owner != client:
		return noSuch("scope_id", id.Noun())
	case r.ScopeDeleted.Value:
		return domain.RefuseImport("scope_deleted: the collection is there")
	}
	return domain.ImportResult{}
}

// finish sets what a record says beside columns.
func (m *importingPolicies) finish(a *applied[domain.PolicyRecord, importedPolicy]) (beside bool, err error) {
	switch {
	case a.after.ScopeType == domain.TenantScope:
		a.after.ScopeID = a.after.ClientID
	case a.record.ScopeID.Given:
		a.after.ScopeID = a.record.ScopeID.Value.UUID
	}
	m.archive(a.record.Archived, &a.after.ArchivedAt)
	return false, nil
}

// then notes when a policy changed and, with a new version, was published.
func (m *importingPolicies) then(a *applied[domain.PolicyRecord, importedPolicy]) {
	if a.before == nil {
		return
	}
	a.after.UpdatedAt = latest(a.before.UpdatedAt, m.At)
	if a.after.Version > a.before.Version {
		a.after.PublishedAt = &a.after.UpdatedAt
		if !a.record.ReviewedAt.Given {
			a.after.ReviewedAt = latest(a.before.ReviewedAt, m.At)
		}
	}
}
