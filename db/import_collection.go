package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of collections, their members, and groups.

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
				at = latest(r.CreatedAt.Or(domain.Time{Time: m.At}).Time, m.users[u.ID].CreatedAt)
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

// membership is that a user is to be in a collection of the same client.
type membership struct {
	client     domain.ClientID
	collection domain.CollectionID
	user       domain.UserID
	at         time.Time
}

// memberKey names a membership.
type memberKey struct {
	CollectionID domain.CollectionID
	UserID       domain.UserID
}

// referredUser is a user that records refer to.
type referredUser struct {
	ID        domain.UserID
	ClientID  domain.ClientID
	CreatedAt time.Time
}

// usersCalled reads those of the users that are there.
func (c *Change) usersCalled(ctx context.Context, ids []domain.UserID) (map[domain.UserID]referredUser, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := pg.All[referredUser](ctx, c, "look for users", pg.SQL(
		"SELECT id, client_id, created_at FROM users WHERE id = ANY(?::uuid[])", pg.IDs(sortedUnique(ids))))
	return mapped(rows, func(r *referredUser) domain.UserID { return r.ID }), err
}

// lockJoining drops the memberships that are there already, and locks the users of the
// others.
func (c *Change) lockJoining(ctx context.Context, list []membership) ([]membership, error) {
	if len(list) == 0 {
		return nil, nil
	}
	clients, collections, users := membershipLists(list)
	there, err := pg.All[memberKey](ctx, c, "look for members", pg.SQL(`
		SELECT m.collection_id, m.user_id FROM collection_members AS m
		JOIN unnest(?0::uuid[], ?1::uuid[], ?2::uuid[]) AS w (client_id, collection_id, user_id)
			ON m.client_id = w.client_id AND m.collection_id = w.collection_id AND m.user_id = w.user_id`,
		clients, collections, users))
	if err != nil {
		return nil, err
	}
	in := mapped(there, func(k *memberKey) memberKey { return *k })
	joining := slices.DeleteFunc(slices.Clone(list), func(m membership) bool {
		_, known := in[memberKey{m.collection, m.user}]
		return known
	})
	if len(joining) == 0 {
		return nil, nil
	}
	set := map[domain.UserKey]struct{}{}
	for _, m := range joining {
		set[domain.UserKey{Client: m.client, User: m.user}] = struct{}{}
	}
	owners, members := keyLists(sortedKeys(set))
	_, err = c.lockUsers(ctx, pg.SQL(isKey, owners, members))
	return joining, err
}

// joinAll adds locked users to locked collections, and does what follows from it. The
// audiences of the clients are shared.
func (c *Change) joinAll(ctx context.Context, list []membership) error {
	if len(list) == 0 {
		return nil
	}
	clients, collections, users := membershipLists(list)
	times := make([]time.Time, len(list))
	for i, m := range list {
		times[i] = m.at
	}
	joined, err := pg.All[domain.UserKey](ctx, c, "add imported members", pg.SQL(`
		WITH joined AS (
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT * FROM unnest(?0::uuid[], ?1::uuid[], ?2::uuid[], ?3::timestamptz[])
			ON CONFLICT DO NOTHING RETURNING client_id, collection_id, user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count + j.n, updated_at = greatest(k.updated_at, ?4)
			FROM (SELECT client_id, collection_id, count(*) AS n FROM joined GROUP BY 1, 2) AS j
			WHERE k.client_id = j.client_id AND k.id = j.collection_id
		)
		SELECT DISTINCT client_id AS client, user_id AS "user" FROM joined`, clients, collections, users, times, c.At))
	if err != nil {
		return err
	}
	c.touch(joined...)
	c.policiesOf("p.client_id = ANY(?::uuid[]) AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])",
		clients, collections)
	return c.enterAudiences(ctx, joined)
}

func membershipLists(list []membership) (clients, collections, users [][16]byte) {
	for _, m := range list {
		clients, collections, users = append(clients, m.client), append(collections, m.collection), append(users, m.user)
	}
	return clients, collections, users
}

// ImportMemberships puts the users of records, who are there, into the collections that
// the records name.
func (d *DB) ImportMemberships(ctx context.Context, batch []domain.UserRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importMemberships)
}

func (c *Change) importMemberships(
	ctx context.Context, batch []domain.UserRecord, results []domain.ImportResult,
) error {
	ids, named := make([]domain.UserID, len(batch)), []domain.CollectionID{}
	for i := range batch {
		ids[i] = batch[i].ID.ID
		for _, k := range batch[i].CollectionIDs.Value {
			named = append(named, k.ID)
		}
	}
	users, err := c.usersCalled(ctx, ids)
	if err != nil {
		return err
	}
	clients := make([]domain.ClientID, 0, len(users))
	for _, u := range users {
		clients = append(clients, u.ClientID)
	}
	// From here on no collection of theirs is deleted.
	if err := c.ShareAudiences(ctx, sortedUnique(clients)...); err != nil {
		return err
	}
	owners, err := c.collectionOwners(ctx, named)
	if err != nil {
		return err
	}

	joining, err := c.lockJoining(ctx, c.membershipsOf(batch, users, owners, results))
	if err != nil || len(joining) == 0 {
		return err
	}
	c.Lock(CollectionLocks)
	_, err = pg.Exec(ctx, c, "lock collections", pg.SQL(
		"SELECT FROM collections WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE",
		pg.IDs(sortedUnique(named))))
	if err != nil {
		return err
	}
	joined := map[domain.UserID]bool{}
	for _, m := range joining {
		joined[m.user] = true
	}
	for i := range batch {
		if joined[batch[i].ID.ID] {
			results[i].Outcome = domain.ImportUpdated
		}
	}
	return c.joinAll(ctx, joining)
}

// membershipsOf are the memberships that records name, of users and of collections that
// owners says whose they are. A record that names another client's, or one that is not
// there, is refused.
func (c *Change) membershipsOf(
	batch []domain.UserRecord, users map[domain.UserID]referredUser, owners map[domain.CollectionID]domain.ClientID,
	results []domain.ImportResult,
) (list []membership) {
	for i := range batch {
		client := users[batch[i].ID.ID].ClientID
		for n, k := range batch[i].CollectionIDs.Value {
			if owner, there := owners[k.ID]; !there || owner != client {
				results[i] = domain.RefuseImport("collection_ids[%d]: %s; the user is there without them", n,
					domain.NoSuchObject(k.Noun()))
			}
		}
		if results[i].Refusal != "" {
			continue
		}
		results[i].Outcome = domain.ImportUnchanged
		for _, k := range batch[i].CollectionIDs.Value {
			list = append(list, membership{client, k.ID, batch[i].ID.ID, c.At})
		}
	}
	return list
}

// collectionOwners reads whose the collections are that are there.
func (c *Change) collectionOwners(
	ctx context.Context, ids []domain.CollectionID,
) (map[domain.CollectionID]domain.ClientID, error) {
	rows, err := pg.All[collectionRow](ctx, c, "look for collections", pg.SQL(
		"SELECT id, client_id FROM collections WHERE id = ANY(?::uuid[])", pg.IDs(sortedUnique(ids))))
	owners := make(map[domain.CollectionID]domain.ClientID, len(rows))
	for _, r := range rows {
		owners[r.ID] = r.ClientID
	}
	return owners, err
}

// groupRow is a row of groups.
type groupRow struct {
	bun.BaseModel `bun:"table:groups,alias:g"`

	ClientID  domain.ClientID `bun:"client_id,pk"`
	ID        domain.GroupID  `bun:"id,pk"`
	Name      string
	Manual    bool
	CreatedAt time.Time

	// Used says that users, policies or frameworks refer to it.
	Used bool `bun:",scanonly"`
}

// ImportGroups applies records of groups. One of users who are kept by hand takes the
// place of the one that its client has, as long as that is empty.
func (d *DB) ImportGroups(ctx context.Context, batch []domain.GroupRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importGroups)
}

func (c *Change) importGroups(ctx context.Context, batch []domain.GroupRecord, results []domain.ImportResult) error {
	rows, err := c.groupsBefore(ctx, batch)
	if err != nil {
		return err
	}
	clients, err := c.clientsCalled(ctx, refsOf(batch, func(r *domain.GroupRecord) clientRef { return r.Client }))
	if err != nil {
		return err
	}
	manual := map[domain.ClientID]*groupRow{}
	for i := range rows {
		if rows[i].Manual {
			manual[rows[i].ClientID] = &rows[i]
		}
	}

	var replaced []domain.GroupID
	k := kind[domain.GroupRecord, groupRow]{
		Change: c, rows: rowsByID(rows),
		fresh: func(*domain.GroupRecord) groupRow { return groupRow{CreatedAt: c.At} },
		refuse: func(r *domain.GroupRecord, before *groupRow) domain.ImportResult {
			other := manual[r.Client.Value.ID]
			switch {
			case before == nil && !clients[r.Client.Value.ID].There:
				return noSuch("client", "client")
			case before == nil && r.Manual.Value && other != nil && other.Used:
				return domain.RefuseImport("manual: the client has the group %s for users who are kept by hand", other.ID)
			}
			return domain.ImportResult{}
		},
		finish: func(a *applied[domain.GroupRecord, groupRow]) (bool, error) {
			if a.before != nil || !a.after.Manual {
				return false, nil
			}
			if other := manual[a.after.ClientID]; other != nil {
				replaced = append(replaced, other.ID)
			}
			manual[a.after.ClientID] = &groupRow{ID: a.after.ID, Used: true}
			return false, nil
		},
	}
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	if len(replaced) > 0 {
		_, err := pg.Exec(ctx, c, "replace empty groups",
			pg.SQL("DELETE FROM groups WHERE id = ANY(?::uuid[])", pg.IDs(replaced)))
		if err != nil {
			return err
		}
	}
	return k.store(ctx, made, changed)
}

// groupsBefore locks those of the groups that are there, and those that they may take
// the place of: of each client the one for users who are kept by hand.
func (c *Change) groupsBefore(ctx context.Context, batch []domain.GroupRecord) ([]groupRow, error) {
	var clients []domain.ClientID
	for i := range batch {
		if batch[i].Manual.Value {
			clients = append(clients, batch[i].Client.Value.ID)
		}
	}
	if len(clients) > 0 { // no user may come into a group that is replaced
		err := c.lockAudiences(ctx, "pg_advisory_xact_lock",
			pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(sortedUnique(clients))))
		if err != nil {
			return nil, err
		}
	}
	return pg.All[groupRow](ctx, c, "lock groups", pg.Rows[groupRow]().
		Columns(`EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = g.client_id AND u.group_id = g.id)
			OR EXISTS (SELECT 1 FROM policies AS p WHERE p.client_id = g.client_id AND p.scope_id = g.id)
			OR EXISTS (SELECT 1 FROM framework_assignments AS f
				WHERE f.client_id = g.client_id AND f.audience_id = g.id) AS used`).
		Where("g.id = ANY(?0::uuid[]) OR g.manual AND g.client_id = ANY(?1::uuid[])", idsOf(batch), pg.IDs(clients)).
		OrderBy("g.client_id, g.id").For("UPDATE"))
}
