package db

import (
	"context"

	"partnerapi/domain"
)

// importingCollections is a batch of records of collections being applied.
type importingCollections struct {
	*Change
	owners  map[domain.CollectionID]domain.ClientID
	clients map[domain.ClientID]referredClient
	users   map[domain.UserID]referredUser
	// joining are who comes into the collections, and joined the collections that
	// somebody comes into.
	joining []membership
	joined  map[domain.CollectionID]bool
}

type appliedCollection = applied[domain.CollectionRecord, collectionRow]

// ImportCollections applies records of collections. Their members are added to those
// that are in them.
func (d *DB) ImportCollections(ctx context.Context, batch []domain.CollectionRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(
		c *Change, ctx context.Context, batch []domain.CollectionRecord, results []domain.ImportResult,
	) error {
		return (&importingCollections{Change: c}).apply(ctx, batch, results)
	})
}

func (m *importingCollections) apply(
	ctx context.Context, batch []domain.CollectionRecord, results []domain.ImportResult,
) error {
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	if err := m.lockMembers(ctx, batch); err != nil {
		return err
	}
	m.Lock(CollectionLocks)
	rows, err := lockRows[domain.CollectionRecord, collectionRow](ctx, m.Change, batch, "k.client_id, k.id")
	if err != nil {
		return err
	}
	for i := range batch {
		_, found := m.owners[batch[i].ID.ID]
		if rows[rowID(&batch[i])] == nil && found {
			results[i] = domain.RefuseImport("the collection was deleted just now")
		}
	}

	k := kind[domain.CollectionRecord, collectionRow]{
		Change: m.Change, rows: rows, refuse: m.refusal, finish: m.finish,
		fresh: func(*domain.CollectionRecord) collectionRow {
			return collectionRow{CreatedBy: domain.ByDashboard, CreatedAt: m.At, UpdatedAt: m.At}
		},
		names: &names[collectionRow]{
			column: "name_key",
			of:     func(r *collectionRow) (scope, key string) { return r.ClientID.UUID(), r.NameKey },
			query: `SELECT id, client_id::text AS scope, name_key AS key FROM collections
				WHERE client_id = ANY(?0::text[]::uuid[]) AND name_key = ANY(?1::text[])`,
			taken: func(by [16]byte) domain.ImportResult { return takenBy("name", domain.CollectionID(by)) },
		},
		then: func(a *appliedCollection) {
			if a.changed {
				a.after.UpdatedAt = latest(a.after.UpdatedAt, m.At)
			}
		},
	}
	if err := k.apply(ctx, batch, results); err != nil {
		return err
	}
	return m.joinApplied(ctx, batch, results)
}

// read reads what the records refer to. The audiences of all clients that it concerns
// are shared then.
func (m *importingCollections) read(ctx context.Context, batch []domain.CollectionRecord) (err error) {
	ids := make([]domain.CollectionID, len(batch))
	var members []domain.UserID
	for i := range batch {
		ids[i] = batch[i].ID.ID
		for _, u := range batch[i].Members.Value {
			members = append(members, u.ID)
		}
	}
	if m.owners, err = m.collectionOwners(ctx, ids); err != nil {
		return err
	}
	clients := refsOf(batch, func(r *domain.CollectionRecord) clientRef { return r.Client })
	for _, owner := range m.owners {
		clients = append(clients, owner)
	}
	clients = sortedUnique(clients)
	if err := m.ShareAudiences(ctx, clients...); err != nil {
		return err
	}
	if m.clients, err = m.clientsCalled(ctx, clients); err != nil {
		return err
	}
	m.users, err = m.usersCalled(ctx, members)
	return err
}

// clientOf is whose the collection of a record is, or is to be.
func (m *importingCollections) clientOf(r *domain.CollectionRecord) domain.ClientID {
	if owner, there := m.owners[r.ID.ID]; there {
		return owner
	}
	return r.Client.Value.ID
}

func (m *importingCollections) refusal(r *domain.CollectionRecord, _ *collectionRow) domain.ImportResult {
	client := m.clientOf(r)
	if !m.clients[client].There {
		return noSuch("client", "client")
	}
	for n, u := range r.Members.Value {
		if found, there := m.users[u.ID]; !there || found.ClientID != client {
			return domain.RefuseImport("members[%d]: %s of the client", n, domain.NoSuchObject(u.Noun()))
		}
	}
	return domain.ImportResult{}
}

// lockMembers locks the users who join.
func (m *importingCollections) lockMembers(ctx context.Context, batch []domain.CollectionRecord) (err error) {
	var list []membership
	for i := range batch {
		r := &batch[i]
		_, there := m.owners[r.ID.ID]
		for _, u := range r.Members.Value {
			at := m.At
			if !there { // as long as the collection and the user have been there
				at = latest(r.CreatedAt.Or(domain.Moment{Time: m.At}).Time, m.users[u.ID].CreatedAt)
			}
			list = append(list, membership{m.clientOf(r), r.ID.ID, u.ID, at})
		}
	}
	m.joining, err = m.lockJoining(ctx, list)
	m.joined = map[domain.CollectionID]bool{}
	for _, j := range m.joining {
		m.joined[j.collection] = true
	}
	return err
}

// finish sets the key of a name. Beside the row users may join.
func (m *importingCollections) finish(a *appliedCollection) (beside bool, err error) {
	rename(a.record.Name, a.before == nil || a.before.Name != a.after.Name, &a.after.NameKey)
	return m.joined[a.after.ID], nil
}

// joinApplied has the users of records join that were not refused.
func (m *importingCollections) joinApplied(
	ctx context.Context, batch []domain.CollectionRecord, results []domain.ImportResult,
) error {
	applied := map[domain.CollectionID]bool{}
	for i := range batch {
		applied[batch[i].ID.ID] = results[i].Refusal == ""
	}
	var joining []membership
	for _, j := range m.joining {
		if applied[j.collection] {
			joining = append(joining, j)
		}
	}
	return m.joinAll(ctx, joining)
}
