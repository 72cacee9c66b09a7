package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Collections of users, and their members.

// CollectionRow is a row of collections.
type CollectionRow struct {
	bun.BaseModel `bun:"table:collections,alias:k"`

	domain.Collection
	NameKey string
}

func (r *CollectionRow) collection() domain.Collection { return r.Collection }

// Collections reads a page of the client's collections, in the order of creation. If since is not nil, it selects only
// collections that changed at or after since.
func (t *Tenant) Collections(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	k := pg.ByTime("k.created_at", "k.id", func(r *CollectionRow) (time.Time, domain.CollectionID) {
		return r.CreatedAt, r.ID
	})
	k.Where.Add("k.client_id = ?", t.ID)
	delta, err := pg.DeltaOf(ctx, t.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.Collection]{}, err
	}
	k.Where.Changed(delta, "k.updated_at")
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*CollectionRow).collection), err
}

// Collection reads one of the client's collections.
func (t *Tenant) Collection(ctx context.Context, id domain.CollectionID) (domain.Collection, error) {
	row, err := pg.Find[CollectionRow](ctx, t.db, id.Noun(), pg.Prepared(
		pg.Rows[CollectionRow]().Apply(pg.Where("k.client_id = ? AND k.id = ?", t.ID, id))))
	return row.Collection, err
}

// FullName is the domain.FullName of a user, alias u.
const FullName = "concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))"

// Members reads a page of a collection's members, in the order in which they joined. If since is not nil, it selects
// only members who joined or changed at or after since.
func (t *Tenant) Members(
	ctx context.Context, of domain.Collection, since *time.Time, w domain.Window,
) (domain.Slice[domain.Member], error) {
	k := pg.ByTime("m.added_at", "m.user_id", func(m *domain.Member) (time.Time, domain.UserID) { return m.AddedAt, m.User })
	k.Table, k.Select = "collection_members AS m", func(q *bun.SelectQuery) {
		q.ColumnExpr(`m.user_id AS "user", ` + FullName + " AS name, u.email, m.added_at, u.updated_at").
			Join("JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id")
	}
	k.Where.Add("m.client_id = ? AND m.collection_id = ?", t.ID, of.ID)
	delta, err := pg.DeltaOf(ctx, t.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.Member]{}, err
	}
	if delta != nil { // joining sets updated_at of the user too
		at := pg.SQL("u.updated_at")
		k.Where.Add(`EXISTS (SELECT 1 FROM users AS u
			WHERE u.client_id = m.client_id AND u.id = m.user_id AND ? AND ?)`, delta.From(at), delta.Upto(at))
	}
	members, err := pg.Page(ctx, t.db, k, w)
	members.Total = of.Members // wrong with since: then callers ask for no total
	return members, err
}

// InsertCollection inserts a collection without members. It returns Conflict if the client has one of that name.
func (t *Tenant) InsertCollection(ctx context.Context, c *Change, k domain.Collection) error {
	return pg.Run(ctx, c, "insert a collection", collectionInsert(t.ID, k))
}

// collectionInsert returns the INSERT of a collection without members.
func collectionInsert(client domain.ClientID, k domain.Collection) pg.Query {
	k.Client, k.Members = client, 0
	return pg.Insert(CollectionRow{Collection: k, NameKey: domain.SortKey(k.Name)})
}

// LockMembers locks the members of a collection, and the client's audiences, so that no member is added or removed
// until the change ends. It returns the members.
func (t *Tenant) LockMembers(ctx context.Context, c *Change, id domain.CollectionID) ([]domain.UserID, error) {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return nil, err
	}
	return t.LockAudience(ctx, c, domain.Audience{Type: domain.OfCollection, Collection: id})
}

// TouchUsers registers that the records of locked users of the client changed.
func (t *Tenant) TouchUsers(c *Change, users []domain.UserID) { c.TouchUsers(t.keysOf(users)...) }

// UpdateCollection stores the name and the description of a locked collection, and sets its UpdatedAt. It returns
// Conflict if the client has another collection of that name. An unchanged name keeps its key, as in Tenant.Update.
func (t *Tenant) UpdateCollection(ctx context.Context, c *Change, k *domain.Collection) (err error) {
	k.UpdatedAt, err = pg.One[time.Time](ctx, c, "update a collection", pg.SQL(`
		UPDATE collections SET name = ?name, name_key = CASE WHEN name = ?name THEN name_key ELSE ?nameKey END, description = ?description,
			updated_at = greatest(updated_at, ?now)
		WHERE client_id = ?client AND id = ?id RETURNING updated_at`, pg.Named{
		"client": t.ID, "id": k.ID, "name": k.Name, "nameKey": domain.SortKey(k.Name), "description": k.Description, "now": c.At,
	}))
	return err
}

// DeleteCollection deletes a collection and, by cascade, its memberships, and withdraws the courses of frameworks that
// were assigned to it (decisions 7.7). It returns NotFound if the client has no such collection.
func (t *Tenant) DeleteCollection(ctx context.Context, c *Change, id domain.CollectionID) error {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return err
	}
	if err := t.withdrawForCollection(ctx, c, id); err != nil {
		return err
	}
	members, err := t.LockAudience(ctx, c, domain.Audience{Type: domain.OfCollection, Collection: id})
	if err != nil {
		return err
	}
	c.WillLock(CollectionLocks)
	deleted, err := pg.Exec(ctx, c, "delete a collection",
		pg.SQL("DELETE FROM collections WHERE client_id = ? AND id = ?", t.ID, id))
	if err != nil {
		return err
	}
	if deleted == 0 {
		return domain.ErrNotFound(id.Noun())
	}

	c.TouchUsers(t.keysOf(members)...)
	t.membersChanged(c, id)
	return nil
}

// LockUsers locks the client's users among ids, and returns their ids.
func (t *Tenant) LockUsers(ctx context.Context, c *Change, ids []domain.UserID) ([]domain.UserID, error) {
	return t.lockUsers(ctx, c, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids)))
}

// lockUsers locks the client's users, alias u, that match a condition, and returns their ids, sorted.
func (t *Tenant) lockUsers(ctx context.Context, c *Change, condition pg.Query) ([]domain.UserID, error) {
	keys, err := c.LockUserKeys(ctx, pg.SQL("u.client_id = ? AND ?", t.ID, condition))
	return pg.MapRows(keys, func(k *domain.UserKey) domain.UserID { return k.User }), err
}

// keysOf returns the keys of users of the client.
func (t *Tenant) keysOf(users []domain.UserID) []domain.UserKey {
	return pg.MapRows(users, func(id *domain.UserID) domain.UserKey { return domain.UserKey{Client: t.ID, User: *id} })
}

// LockCollections locks the client's collections among ids, and returns their ids.
func (t *Tenant) LockCollections(
	ctx context.Context, c *Change, ids ...domain.CollectionID,
) ([]domain.CollectionID, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ANY(?::uuid[])", pg.IDs(ids)))
	return pg.MapRows(rows, func(r *CollectionRow) domain.CollectionID { return r.ID }), err
}

// LockCollection locks and reads one of the client's collections. It returns NotFound if the client has none with id.
func (t *Tenant) LockCollection(ctx context.Context, c *Change, id domain.CollectionID) (domain.Collection, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ?", id))
	return findCollection(rows, id, err)
}

// lockCollections locks the client's collections, alias k, that match a condition, and returns their rows.
func (t *Tenant) lockCollections(ctx context.Context, c *Change, condition pg.Query) ([]CollectionRow, error) {
	c.WillLock(CollectionLocks)
	return pg.All[CollectionRow](ctx, c, "lock collections", pg.Rows[CollectionRow]().Apply(pg.Where("k.client_id = ?", t.ID)).
		Where("?", condition).OrderExpr("k.id").For("NO KEY UPDATE"))
}

// findCollection returns the collection with an id in rows, or NotFound. If err is not nil, it returns err.
func findCollection(rows []CollectionRow, id domain.CollectionID, err error) (domain.Collection, error) {
	i := slices.IndexFunc(rows, func(r CollectionRow) bool { return r.ID == id })
	if err == nil && i < 0 {
		err = domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return domain.Collection{}, err
	}
	return rows[i].Collection, nil
}

// AddMembers adds locked users to a locked collection, and enrolls them in the courses that frameworks require of the
// collection. It returns the number of users who were not members before. The caller must hold a lock of the client's
// audiences (LockAudiencesShared).
func (t *Tenant) AddMembers(
	ctx context.Context, c *Change, id domain.CollectionID, users []domain.UserID,
) (added int, err error) {
	joined, err := t.join(ctx, c, []domain.CollectionID{id}, users)
	if err != nil {
		return 0, err
	}
	keys := t.keysOf(joined)
	c.TouchUsers(keys...)
	return len(joined), c.EnterAudiences(ctx, keys)
}

// join adds users to collections, and registers that the audiences of the collections changed. It returns the users who
// were not in all of them before.
func (t *Tenant) join(
	ctx context.Context, c *Change, ids []domain.CollectionID, users []domain.UserID,
) ([]domain.UserID, error) {
	joined, err := c.JoinCollections(ctx, pg.SQL(`
		SELECT ?client::uuid AS client_id, k.id AS collection_id, u.id AS user_id, ?now::timestamptz AS added_at
		FROM unnest(?ids::uuid[]) AS k (id), unnest(?users::uuid[]) AS u (id)`,
		pg.Named{"client": t.ID, "now": c.At, "ids": pg.IDs(ids), "users": pg.IDs(users)}))
	if len(joined) > 0 {
		t.membersChanged(c, ids...)
	}
	return pg.MapRows(joined, func(k *domain.UserKey) domain.UserID { return k.User }), err
}

// JoinCollections inserts the memberships that a query selects, and counts them in the collections. It returns the
// users with a new membership.
func (c *Change) JoinCollections(ctx context.Context, memberships pg.Query) ([]domain.UserKey, error) {
	return pg.All[domain.UserKey](ctx, c, "add members", pg.SQL(`
		WITH joined AS (
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT client_id, collection_id, user_id, added_at FROM (?0) AS w
			ON CONFLICT DO NOTHING RETURNING client_id, collection_id, user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count + j.n, updated_at = greatest(k.updated_at, ?1)
			FROM (SELECT client_id, collection_id, count(*) AS n FROM joined GROUP BY client_id, collection_id) AS j
			WHERE k.client_id = j.client_id AND k.id = j.collection_id
		)
		SELECT DISTINCT client_id AS client, user_id AS "user" FROM joined`, memberships, c.At))
}

// RemoveMember removes a locked user (LockUsers) from a collection. It returns NotFound if the user is not a member.
func (t *Tenant) RemoveMember(ctx context.Context, c *Change, id domain.CollectionID, user domain.UserID) error {
	c.WillLock(CollectionLocks)
	removed, err := t.removeMembers(ctx, c, "m.collection_id = ? AND m.user_id = ?", id, user)
	if err == nil && removed == 0 {
		return &domain.Error{
			Code: domain.NotFound, Object: user.Noun(), Message: "the user is not a member of this collection",
		}
	}
	return err
}

// removeMembers deletes the client's memberships, alias m, that match a condition, and returns their number. It
// registers the effects on users and policies. The users must be locked and, if there are several, the collections.
func (t *Tenant) removeMembers(ctx context.Context, c *Change, condition string, args ...any) (int, error) {
	type membership struct {
		CollectionID domain.CollectionID
		UserID       domain.UserID
	}
	removed, err := pg.All[membership](ctx, c, "remove members", pg.SQL(`
		WITH deleted AS (
			DELETE FROM collection_members AS m WHERE m.client_id = ?client AND ?condition RETURNING m.collection_id, m.user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count - g.n, updated_at = greatest(k.updated_at, ?now)
			FROM (SELECT collection_id, count(*) AS n FROM deleted GROUP BY collection_id) AS g
			WHERE k.client_id = ?client AND k.id = g.collection_id
		)
		SELECT collection_id, user_id FROM deleted`,
		pg.Named{"client": t.ID, "condition": pg.SQL(condition, args...), "now": c.At}))
	if err != nil || len(removed) == 0 {
		return 0, err
	}
	c.TouchUsers(t.keysOf(pg.MapRows(removed, func(m *membership) domain.UserID { return m.UserID }))...)
	t.membersChanged(c, pg.MapRows(removed, func(m *membership) domain.CollectionID { return m.CollectionID })...)
	return len(removed), nil
}

// membersChanged registers that the audiences of the policies of collections changed.
func (t *Tenant) membersChanged(c *Change, ids ...domain.CollectionID) {
	c.PoliciesChanged("p.client_id = ? AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])", t.ID, pg.IDs(ids))
}
