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

	ClientID    domain.ClientID     `bun:"client_id,pk"`
	ID          domain.CollectionID `bun:"id,pk"`
	Name        string
	NameKey     string
	Description *string
	MemberCount int
	CreatedBy   domain.Creator
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

func (r *CollectionRow) collection() domain.Collection {
	return domain.Collection{
		ID: r.ID, Client: r.ClientID, Name: r.Name, Description: r.Description, Members: r.MemberCount,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Collections reads a page of the client's collections, in the order of creation. since, if
// not nil, selects those that changed at or after it.
func (t *Tenant) Collections(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	k := pg.ByTime("k.created_at", "k.id", func(r *CollectionRow) (time.Time, domain.CollectionID) {
		return r.CreatedAt, r.ID
	})
	k.Where.Add("k.client_id = ?", t.ID)
	pg.AddIf(&k.Where, "k.updated_at >= ?", since)
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*CollectionRow).collection), err
}

// Collection reads one of the client's collections.
func (t *Tenant) Collection(ctx context.Context, id domain.CollectionID) (domain.Collection, error) {
	row, err := pg.Find[CollectionRow](ctx, t.db, id.Noun(), pg.Prepared(
		pg.Rows[CollectionRow]().Where("k.client_id = ? AND k.id = ?", t.ID, id)))
	return row.collection(), err
}

type memberRow struct {
	bun.BaseModel `bun:"table:collection_members,alias:m"`

	UserID  domain.UserID
	AddedAt time.Time

	FirstName string `bun:"first_name,scanonly"`
	LastName  string `bun:"last_name,scanonly"`
	Email     string `bun:"email,scanonly"`
}

func (r *memberRow) member() domain.Member {
	name := domain.FullName(r.FirstName, r.LastName)
	return domain.Member{User: r.UserID, Name: name, Email: r.Email, AddedAt: r.AddedAt}
}

// Members reads a page of a collection's members, in the order in which they joined. since, if
// not nil, selects those who joined or changed at or after it.
func (t *Tenant) Members(
	ctx context.Context, of domain.Collection, since *time.Time, w domain.Window,
) (domain.Slice[domain.Member], error) {
	k := pg.ByTime("m.added_at", "m.user_id", func(r *memberRow) (time.Time, domain.UserID) {
		return r.AddedAt, r.UserID
	})
	k.Select = func(q *pg.Select) {
		q.Columns(pg.Columns[memberRow]()).Columns("u.first_name, u.last_name, u.email").
			Join("JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id")
	}
	k.Where.Add("m.client_id = ? AND m.collection_id = ?", t.ID, of.ID)
	if since != nil { // joining changes a user too
		k.Where.Add(`EXISTS (SELECT 1 FROM users AS u
			WHERE u.client_id = m.client_id AND u.id = m.user_id AND u.updated_at >= ?)`, *since)
	}
	rows, err := pg.Page(ctx, t.db, k, w)
	rows.Total = of.Members // callers want a total only without since
	return pg.Map(rows, (*memberRow).member), err
}

// InsertCollection adds a collection without members. Conflict when the client
// has one of that name.
func (t *Tenant) InsertCollection(ctx context.Context, c *Change, k domain.Collection) error {
	_, err := pg.Exec(ctx, c, "insert a collection", insertedCollection(t.ID, k))
	return err
}

func insertedCollection(client domain.ClientID, k domain.Collection) pg.Query {
	return pg.Insert(CollectionRow{
		ClientID: client, ID: k.ID, Name: k.Name, NameKey: domain.SortKey(k.Name), Description: k.Description,
		CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt, UpdatedAt: k.UpdatedAt,
	})
}

// DeleteCollection removes a collection and its memberships, and withdraws the courses of
// frameworks that were assigned to it (decisions 7.7). NotFound where the client has no such
// collection.
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
	c.Lock(CollectionLocks)
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

// LockUsers locks users and returns them. Those of other clients are left out.
func (t *Tenant) LockUsers(ctx context.Context, c *Change, ids []domain.UserID) ([]domain.UserID, error) {
	return t.lockUsers(ctx, c, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids)))
}

func (t *Tenant) lockUsers(ctx context.Context, c *Change, condition pg.Query) ([]domain.UserID, error) {
	keys, err := c.LockUserKeys(ctx, pg.SQL("u.client_id = ? AND ?", t.ID, condition))
	return pg.MapRows(keys, func(k *domain.UserKey) domain.UserID { return k.User }), err
}

// keysOf returns the keys of users of the client.
func (t *Tenant) keysOf(users []domain.UserID) []domain.UserKey {
	return pg.MapRows(users, func(id *domain.UserID) domain.UserKey { return domain.UserKey{Client: t.ID, User: *id} })
}

// LockCollections locks collections and returns them. Those of other clients are left out.
func (t *Tenant) LockCollections(
	ctx context.Context, c *Change, ids ...domain.CollectionID,
) ([]domain.CollectionID, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ANY(?::uuid[])", pg.IDs(ids)))
	return pg.MapRows(rows, func(r *CollectionRow) domain.CollectionID { return r.ID }), err
}

// LockCollection is Collection for a change of the collection.
func (t *Tenant) LockCollection(ctx context.Context, c *Change, id domain.CollectionID) (domain.Collection, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ?", id))
	return findCollection(rows, id, err)
}

func (t *Tenant) lockCollections(ctx context.Context, c *Change, condition pg.Query) ([]CollectionRow, error) {
	c.Lock(CollectionLocks)
	return pg.All[CollectionRow](ctx, c, "lock collections", pg.Rows[CollectionRow]().Where("k.client_id = ?", t.ID).
		Where("?", condition).OrderBy("k.id").For("NO KEY UPDATE"))
}

// findCollection returns the collection with an id in rows; NotFound where it is missing.
func findCollection(rows []CollectionRow, id domain.CollectionID, err error) (domain.Collection, error) {
	i := slices.IndexFunc(rows, func(r CollectionRow) bool { return r.ID == id })
	if err == nil && i < 0 {
		err = domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return domain.Collection{}, err
	}
	return rows[i].collection(), nil
}

// AddMembers adds locked users to a locked collection, and returns how many were not in it
// before. The audiences of the client are shared (ShareAudiences).
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

// join adds users to collections and returns those who were not yet in all of them.
func (t *Tenant) join(
	ctx context.Context, c *Change, ids []domain.CollectionID, users []domain.UserID,
) ([]domain.UserID, error) {
	joined, err := c.JoinCollections(ctx, pg.SQL(`
		SELECT ?::uuid AS client_id, k.id AS collection_id, u.id AS user_id, ?::timestamptz AS added_at
		FROM unnest(?::uuid[]) AS k (id), unnest(?::uuid[]) AS u (id)`, t.ID, c.At, pg.IDs(ids), pg.IDs(users)))
	if len(joined) > 0 {
		t.membersChanged(c, ids...)
	}
	return pg.MapRows(joined, func(k *domain.UserKey) domain.UserID { return k.User }), err
}

// JoinCollections adds the memberships that a query selects, and returns the users of the new
// ones.
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

// RemoveMember removes a locked user from a collection. NotFound where the user is not in it.
func (t *Tenant) RemoveMember(ctx context.Context, c *Change, id domain.CollectionID, user domain.UserID) error {
	c.Lock(CollectionLocks)
	removed, err := t.removeMembers(ctx, c, "m.collection_id = ? AND m.user_id = ?", id, user)
	if err == nil && removed == 0 {
		return &domain.Error{
			Code: domain.NotFound, Object: user.Noun(), Message: "the user is not a member of this collection",
		}
	}
	return err
}

// removeMembers deletes the memberships, alias m, that match a condition and returns how many
// there were. Their users are locked, and so are their collections if there are several.
func (t *Tenant) removeMembers(ctx context.Context, c *Change, condition string, args ...any) (int, error) {
	type membership struct {
		CollectionID domain.CollectionID
		UserID       domain.UserID
	}
	removed, err := pg.All[membership](ctx, c, "remove members", pg.SQL(`
		WITH gone AS (
			DELETE FROM collection_members AS m WHERE m.client_id = ?0 AND ?1 RETURNING m.collection_id, m.user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count - g.n, updated_at = greatest(k.updated_at, ?2)
			FROM (SELECT collection_id, count(*) AS n FROM gone GROUP BY collection_id) AS g
			WHERE k.client_id = ?0 AND k.id = g.collection_id
		)
		SELECT collection_id, user_id FROM gone`, t.ID, pg.SQL(condition, args...), c.At))
	if err != nil || len(removed) == 0 {
		return 0, err
	}
	c.TouchUsers(t.keysOf(pg.MapRows(removed, func(m *membership) domain.UserID { return m.UserID }))...)
	t.membersChanged(c, pg.MapRows(removed, func(m *membership) domain.CollectionID { return m.CollectionID })...)
	return len(removed), nil
}

// membersChanged marks the counts of the policies of collections as stale.
func (t *Tenant) membersChanged(c *Change, ids ...domain.CollectionID) {
	c.PoliciesChanged("p.client_id = ? AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])", t.ID, pg.IDs(ids))
}
