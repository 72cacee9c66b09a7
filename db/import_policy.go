package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedPolicy is what a record sets of a row of policies, by the columns. Its
// counts are stale.
type importedPolicy struct {
	ClientID               string           `json:"client_id"`
	ID                     string           `json:"id"`
	Title                  string           `json:"title"`
	Description            *string          `json:"description"`
	Version                int              `json:"version"`
	ScopeType              domain.ScopeType `json:"scope_type"`
	ScopeID                string           `json:"scope_id"`
	RequiresAcknowledgment bool             `json:"requires_acknowledgment"`
	RenewalPeriodDays      int              `json:"renewal_period_days"`
	ReviewedAt             time.Time        `json:"reviewed_at"`
	PublishedAt            *time.Time       `json:"published_at"`
	ArchivedAt             *time.Time       `json:"archived_at"`
	CreatedAt              time.Time        `json:"created_at"`
	UpdatedAt              time.Time        `json:"updated_at"`
	CountedUntil           string           `json:"counted_until"`
}

// storedPolicy is the same, as it is read.
type storedPolicy struct {
	ClientID               domain.ClientID
	ID                     domain.PolicyID
	Title                  string
	Description            *string
	Version                int
	ScopeType              domain.ScopeType
	ScopeID                domain.GroupID // of whichever kind
	RequiresAcknowledgment bool
	RenewalPeriodDays      int
	ReviewedAt             time.Time
	PublishedAt            *time.Time
	ArchivedAt             *time.Time
	CreatedAt              time.Time
	UpdatedAt              time.Time
}

// importingPolicies is a batch of records of policies being applied.
type importingPolicies struct {
	*Change
	before      map[domain.PolicyID]storedPolicy
	clients     map[domain.ClientID]referredClient
	groups      map[domain.GroupID]domain.ClientID
	collections map[domain.CollectionID]domain.ClientID
}

// ImportPolicies applies records of policies. What was signed of a version stays
// signed of it.
func (d *DB) ImportPolicies(ctx context.Context, batch []domain.PolicyRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importPolicies)
}

func (c *Change) importPolicies(ctx context.Context, batch []domain.PolicyRecord, results []domain.ImportResult) error {
	m := &importingPolicies{Change: c}
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	var made, changed []importedPolicy
	for i := range batch {
		r := &batch[i]
		if results[i] = m.refusal(r); results[i].Refusal != "" {
			continue
		}
		old, there := m.before[r.ID.ID]
		after := m.after(r)
		switch {
		case !there:
			results[i].Outcome = domain.ImportCreated
			made = append(made, after)
		case old.same(&after):
			results[i].Outcome = domain.ImportUnchanged
		default:
			results[i].Outcome = domain.ImportUpdated
			after.UpdatedAt = latest(old.UpdatedAt, c.At)
			if after.Version > old.Version {
				after.PublishedAt = &after.UpdatedAt
				if !r.ReviewedAt.Has() {
					after.ReviewedAt = latest(old.ReviewedAt, c.At)
				}
			}
			changed = append(changed, after)
		}
	}
	if err := updateRows(ctx, c, "policies", "policies", changed, "client_id", "id"); err != nil {
		return err
	}
	return insertRows(ctx, c, "policies", "policies", made)
}

// read locks the policies that are there, and reads what the records refer to.
func (m *importingPolicies) read(ctx context.Context, batch []domain.PolicyRecord) error {
	ids, scopes := make([]domain.PolicyID, len(batch)), make([][16]byte, len(batch))
	clients := make([]domain.ClientID, len(batch))
	for i := range batch {
		ids[i], scopes[i], clients[i] = batch[i].ID.ID, batch[i].ScopeID.Value.UUID, batch[i].Client.Value.ID
	}
	m.lock(policyLocks)
	rows, err := pg.All[storedPolicy](ctx, m, "lock policies", pg.SQL(`
		SELECT client_id, id, title, description, version, scope_type, scope_id, requires_acknowledgment,
			renewal_period_days, reviewed_at, published_at, archived_at, created_at, updated_at
		FROM policies WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE`, pg.IDs(ids)))
	if err != nil {
		return err
	}
	m.before = mapped(rows, func(r *storedPolicy) domain.PolicyID { return r.ID })
	m.clients, err = clientsOf(ctx, m.Change, clients, func(id *domain.ClientID) domain.ClientID { return *id })
	if err != nil {
		return err
	}
	return m.readScopes(ctx, scopes)
}

func (m *importingPolicies) readScopes(ctx context.Context, ids [][16]byte) error {
	type scopeRow struct {
		ID         domain.GroupID // of whichever kind
		ClientID   domain.ClientID
		Collection bool
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

func (m *importingPolicies) refusal(r *domain.PolicyRecord) domain.ImportResult {
	old, there := m.before[r.ID.ID]
	switch {
	case !there && r.Missing != "":
		return missing(r.Missing)
	case there && r.Client.Has() && r.Client.Value.ID != old.ClientID:
		return cannotChange("client")
	case !there && !m.clients[r.Client.Value.ID].There:
		return noSuch("client", "client")
	}
	client := old.ClientID
	if !there {
		client = r.Client.Value.ID
	}
	scope := r.ScopeType.Or(old.ScopeType)
	if scope == domain.TenantScope || scope == "" {
		if id, ok := domain.RefAs[domain.ClientKind](r.ScopeID.Value); r.ScopeID.Has() && (!ok || id != client) {
			return domain.RefuseImport("scope_id: must be the policy's client, or be left out")
		}
		return domain.ImportResult{}
	}
	if !r.ScopeID.Has() {
		if r.ScopeType.Has() && scope != old.ScopeType {
			return missing("scope_id")
		}
		return domain.ImportResult{}
	}
	if there && r.ScopeID.Value.UUID == old.ScopeID && scope == old.ScopeType {
		return domain.ImportResult{} // which may have been deleted since
	}
	return m.scopeRefusal(r, scope, client)
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

// after is the policy as a record has it.
func (m *importingPolicies) after(r *domain.PolicyRecord) importedPolicy {
	old, there := m.before[r.ID.ID]
	if !there {
		created := r.CreatedAt.Or(domain.Moment{Time: m.At}).Time
		old = storedPolicy{
			ClientID: r.Client.Value.ID, Version: 1, ScopeType: domain.TenantScope, RequiresAcknowledgment: true,
			RenewalPeriodDays: 365, ReviewedAt: created, CreatedAt: created, UpdatedAt: m.At,
		}
	}
	after := importedPolicy{
		ClientID: old.ClientID.UUID(), ID: r.ID.UUID(), Title: r.Title.Or(old.Title), Description: old.Description,
		Version: r.Version.Or(old.Version), ScopeType: r.ScopeType.Or(old.ScopeType), ScopeID: old.ScopeID.UUID(),
		RequiresAcknowledgment: r.RequiresAcknowledgment.Or(old.RequiresAcknowledgment),
		RenewalPeriodDays:      r.RenewalPeriodDays.Or(old.RenewalPeriodDays), ReviewedAt: old.ReviewedAt,
		PublishedAt: old.PublishedAt, ArchivedAt: old.ArchivedAt,
		CreatedAt: r.CreatedAt.Or(domain.Moment{Time: old.CreatedAt}).Time, UpdatedAt: old.UpdatedAt,
		CountedUntil: "-infinity",
	}
	r.Description.ApplyNull(&after.Description)
	if r.ReviewedAt.Has() {
		after.ReviewedAt = r.ReviewedAt.Value.Time
	}
	switch {
	case after.ScopeType == domain.TenantScope:
		after.ScopeID = after.ClientID
	case r.ScopeID.Has():
		after.ScopeID = domain.GroupID(r.ScopeID.Value.UUID).UUID()
	}
	switch archived := r.Archived.Or(old.ArchivedAt != nil); {
	case !archived:
		after.ArchivedAt = nil
	case old.ArchivedAt == nil:
		after.ArchivedAt = &m.At
	}
	return after
}

func (s *storedPolicy) same(a *importedPolicy) bool {
	return s.Title == a.Title && sameValue(s.Description, a.Description) && s.Version == a.Version &&
		s.ScopeType == a.ScopeType && s.ScopeID.UUID() == a.ScopeID &&
		s.RequiresAcknowledgment == a.RequiresAcknowledgment && s.RenewalPeriodDays == a.RenewalPeriodDays &&
		(s.ArchivedAt == nil) == (a.ArchivedAt == nil) &&
		s.ReviewedAt.Equal(a.ReviewedAt) && s.CreatedAt.Equal(a.CreatedAt)
}
