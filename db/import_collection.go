package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedCollection is what a record sets of a row of collections, by the columns.
type importedCollection struct {
	ClientID    string    `json:"client_id"`
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	NameKey     string    `json:"name_key"`
	Description *string   `json:"description"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// newCollection is a collection that is not there yet.
type newCollection struct {
	importedCollection
	MemberCount int            `json:"member_count"`
	CreatedBy   domain.Creator `json:"created_by"`
}

// importingCollections is a batch of records of collections being applied.
type importingCollections struct {
	*Change
	batch   []domain.CollectionRecord
	results []domain.ImportResult

	owners  map[domain.CollectionID]domain.ClientID
	clients map[domain.ClientID]referredClient
	users   map[domain.UserID]referredUser
	joining []membership
	before  map[domain.CollectionID]collectionRow
}

// ImportCollections applies records of collections. Their members are added to those
// that are in them.
func (d *DB) ImportCollections(ctx context.Context, batch []domain.CollectionRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(
		c *Change, ctx context.Context, batch []domain.CollectionRecord, results []domain.ImportResult,
	) error {
		return (&importingCollections{Change: c, batch: batch, results: results}).apply(ctx)
	})
}

func (m *importingCollections) apply(ctx context.Context) error {
	if err := m.read(ctx); err != nil {
		return err
	}
	if err := m.lockAll(ctx); err != nil {
		return err
	}
	named, err := m.settleNames(ctx)
	if err != nil {
		return err
	}
	if err := m.write(ctx, named); err != nil {
		return err
	}
	applied := map[domain.CollectionID]bool{}
	for i := range m.batch {
		applied[m.batch[i].ID.ID] = m.results[i].Refusal == ""
	}
	var joining []membership
	for _, j := range m.joining {
		if applied[j.collection] {
			joining = append(joining, j)
		}
	}
	return m.joinAll(ctx, joining)
}

// read reads what the records refer to, and refuses what cannot be applied. The
// audiences of all clients that it concerns are shared then.
func (m *importingCollections) read(ctx context.Context) (err error) {
	ids := make([]domain.CollectionID, len(m.batch))
	var members []domain.UserID
	var clients []domain.ClientID
	for i := range m.batch {
		r := &m.batch[i]
		ids[i] = r.ID.ID
		clients = append(clients, r.Client.Value.ID)
		for _, u := range r.Members.Value {
			members = append(members, u.ID)
		}
	}
	if m.owners, err = m.collectionOwners(ctx, ids); err != nil {
		return err
	}
	for _, owner := range m.owners {
		clients = append(clients, owner)
	}
	clients = sortedUnique(clients)
	if err := m.ShareAudiences(ctx, clients...); err != nil {
		return err
	}
	m.clients, err = clientsOf(ctx, m.Change, clients, func(id *domain.ClientID) domain.ClientID { return *id })
	if err != nil {
		return err
	}
	if m.users, err = m.usersCalled(ctx, members); err != nil {
		return err
	}
	for i := range m.batch {
		m.results[i] = m.refusal(&m.batch[i])
	}
	return nil
}

// clientOf is whose the collection of a record is, or is to be.
func (m *importingCollections) clientOf(r *domain.CollectionRecord) domain.ClientID {
	if owner, there := m.owners[r.ID.ID]; there {
		return owner
	}
	return r.Client.Value.ID
}

func (m *importingCollections) refusal(r *domain.CollectionRecord) domain.ImportResult {
	owner, there := m.owners[r.ID.ID]
	client := m.clientOf(r)
	switch {
	case !there && r.Missing != "":
		return missing(r.Missing)
	case there && r.Client.Has() && r.Client.Value.ID != owner:
		return cannotChange("client")
	case !m.clients[client].There:
		return noSuch("client", "client")
	}
	for n, u := range r.Members.Value {
		if found, there := m.users[u.ID]; !there || found.ClientID != client {
			return domain.RefuseImport("members[%d]: %s of the client", n, domain.NoSuchObject(u.Noun()))
		}
	}
	return domain.ImportResult{}
}

// lockAll locks the users who join, and then the collections that are there.
func (m *importingCollections) lockAll(ctx context.Context) (err error) {
	var list []membership
	ids := make([]domain.CollectionID, len(m.batch))
	for i := range m.batch {
		r := &m.batch[i]
		ids[i] = r.ID.ID
		_, there := m.owners[r.ID.ID]
		for _, u := range r.Members.Value {
			if m.results[i].Refusal != "" {
				break
			}
			at := m.At
			if !there { // as long as the collection and the user have been there
				at = latest(r.CreatedAt.Or(domain.Moment{Time: m.At}).Time, m.users[u.ID].CreatedAt)
			}
			list = append(list, membership{m.clientOf(r), r.ID.ID, u.ID, at})
		}
	}
	if m.joining, err = m.lockJoining(ctx, list); err != nil {
		return err
	}
	m.lock(collectionLocks)
	rows, err := pg.All[collectionRow](ctx, m, "lock collections", pg.From("collections AS k").
		Columns(pg.Columns[collectionRow]()).Where("k.id = ANY(?::uuid[])", pg.IDs(ids)).
		OrderBy("k.client_id, k.id").For("NO KEY UPDATE"))
	m.before = mapped(rows, func(r *collectionRow) domain.CollectionID { return r.ID })
	for i := range m.batch {
		_, found := m.owners[m.batch[i].ID.ID]
		if _, there := m.before[m.batch[i].ID.ID]; found && !there {
			m.results[i] = domain.RefuseImport("the collection was deleted just now")
		}
	}
	return err
}

// after is the collection as a record has it.
func (m *importingCollections) after(r *domain.CollectionRecord) importedCollection {
	old, there := m.before[r.ID.ID]
	if !there {
		old = collectionRow{CreatedAt: m.At, UpdatedAt: m.At}
	}
	after := importedCollection{
		ClientID: m.clientOf(r).UUID(), ID: r.ID.UUID(), Name: r.Name.Or(old.Name), NameKey: old.NameKey,
		Description: old.Description, CreatedAt: r.CreatedAt.Or(domain.Moment{Time: old.CreatedAt}).Time,
		UpdatedAt: old.UpdatedAt,
	}
	if after.Name != old.Name {
		after.NameKey = domain.SortKey(after.Name)
	}
	r.Description.ApplyNull(&after.Description)
	return after
}

func (m *importingCollections) settleNames(ctx context.Context) (settledClaims, error) {
	var claims []claim
	for i := range m.batch {
		r := &m.batch[i]
		if m.results[i].Refusal != "" {
			continue
		}
		if old, after := m.before[r.ID.ID], m.after(r); old.NameKey != after.NameKey {
			claims = append(claims, claim{id: r.ID.Bytes(), scope: after.ClientID, key: after.NameKey})
		}
	}
	named, err := m.settleClaims(ctx, claims, `SELECT id, client_id::text AS scope, name_key AS key FROM collections
		WHERE client_id = ANY(?0::text[]::uuid[]) AND name_key = ANY(?1::text[])`)
	for i := range m.batch {
		if holder, lost := named.lost[m.batch[i].ID.Bytes()]; lost {
			m.results[i] = takenBy("name", domain.CollectionID(holder))
		}
	}
	return named, err
}

func (m *importingCollections) write(ctx context.Context, named settledClaims) error {
	joins := map[domain.CollectionID]bool{}
	for _, j := range m.joining {
		joins[j.collection] = true
	}
	var made []newCollection
	var changed []importedCollection
	for i := range m.batch {
		r := &m.batch[i]
		if m.results[i].Refusal != "" {
			continue
		}
		old, there := m.before[r.ID.ID]
		after := m.after(r)
		same := old.Name == after.Name && sameValue(old.Description, after.Description) &&
			old.CreatedAt.Equal(after.CreatedAt)
		switch {
		case !there:
			m.results[i].Outcome = domain.ImportCreated
			made = append(made, newCollection{after, 0, domain.ByDashboard})
			continue
		case same && !joins[r.ID.ID]:
			m.results[i].Outcome = domain.ImportUnchanged
			continue
		case !same:
			after.UpdatedAt = latest(after.UpdatedAt, m.At)
			changed = append(changed, after)
		}
		m.results[i].Outcome = domain.ImportUpdated
	}
	if err := m.giveUp(ctx, named, "collections", "name_key"); err != nil {
		return err
	}
	if err := updateRows(ctx, m.Change, "collections", "collections", changed, "client_id", "id"); err != nil {
		return err
	}
	return insertRows(ctx, m.Change, "collections", "collections", made)
}
