package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Collections of users: reads, writes, members.

type collectionRow struct {
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

func (r *collectionRow) collection() domain.Collection {
	return domain.Collection{
		ID: r.ID, Client: r.ClientID, Name: r.Name, Description: r.Description, Members: r.MemberCount,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Collections reads a page of the client's collections, by their creation. since,
// if not nil, leaves those that changed at or after it.
func (t *Tenant) Collections(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	k := pg.Keyset[collectionRow]{
		Table: "collections AS k", Key: "k.created_at", Cast: "timestamptz", ID: "k.id",
		Position: func(r *collectionRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	k.Where.Add("k.client_id = ?", t.ID)
	if since != nil {
		k.Where.Add("k.updated_at >= ?", *since)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*collectionRow).collection), err
}

// Collection reads one of the client's collections.
func (t *Tenant) Collection(ctx context.Context, id domain.CollectionID) (domain.Collection, error) {
	row, err := pg.Find[collectionRow](ctx, t.db, id.Noun(), pg.Prepared(pg.From("collections AS k").
		Columns(pg.Columns[collectionRow]()).Where("k.client_id = ? AND k.id = ?", t.ID, id)))
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

// Members reads a page of a collection's members, by when they were added.
// since, if not nil, leaves those who joined or changed at or after it.
func (t *Tenant) Members(
	ctx context.Context, of domain.Collection, since *time.Time, w domain.Window,
) (domain.Slice[domain.Member], error) {
	k := pg.Keyset[memberRow]{
		Table: "collection_members AS m", Key: "m.added_at", Cast: "timestamptz", ID: "m.user_id",
		Select: func(q *pg.Select) {
			q.Columns(pg.Columns[memberRow]()).Columns("u.first_name, u.last_name, u.email").
				Join("JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id")
		},
		Position: func(r *memberRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.AddedAt), ID: r.UserID.UUID()}
		},
	}
	k.Where.Add("m.client_id = ? AND m.collection_id = ?", t.ID, of.ID)
	if since != nil { // joining changes a user too
		k.Where.Add(`EXISTS (SELECT 1 FROM users AS u
			WHERE u.client_id = m.client_id AND u.id = m.user_id AND u.updated_at >= ?)`, *since)
	}
	rows, err := pg.Page(ctx, t.db, k, w)
	rows.Total = of.Members // a total is asked for only without since
	return pg.Map(rows, (*memberRow).member), err
}

// InsertCollection adds a collection without members. Conflict when the client
// has one of that name.
func (t *Tenant) InsertCollection(ctx context.Context, c *Change, k domain.Collection) error {
	_, err := pg.Exec(ctx, c, "insert a collection", insertedCollection(t.ID, k))
	return err
}

func insertedCollection(client domain.ClientID, k domain.Collection) pg.Query {
	return pg.Insert(collectionRow{
		ClientID: client, ID: k.ID, Name: k.Name, NameKey: domain.SortKey(k.Name), Description: k.Description,
		CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt, UpdatedAt: k.UpdatedAt,
	})
}

// DeleteCollection removes a collection and its memberships; its members stay
// users, and lose the courses that frameworks assigned to the collection asked for
// (decisions 7.7). NotFound where the client has no such collection.
func (t *Tenant) DeleteCollection(ctx context.Context, c *Change, id domain.CollectionID) error {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return err
	}
	if err := t.emptyFrameworks(ctx, c, id); err != nil {
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

	c.touch(t.keysOf(members)...)
	t.scopeMoved(c, id)
	return nil
}

// LockUsers locks those of the users that are the client's and returns them.
func (t *Tenant) LockUsers(ctx context.Context, c *Change, ids []domain.UserID) ([]domain.UserID, error) {
	return t.lockUsers(ctx, c, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids)))
}

func (t *Tenant) lockUsers(ctx context.Context, c *Change, condition pg.Query) ([]domain.UserID, error) {
	keys, err := c.lockUsers(ctx, pg.SQL("u.client_id = ? AND ?", t.ID, condition))
	ids := make([]domain.UserID, len(keys))
	for i, key := range keys {
		ids[i] = key.User
	}
	return ids, err
}

// keysOf names users of the client beside it.
func (t *Tenant) keysOf(users []domain.UserID) []domain.UserKey {
	keys := make([]domain.UserKey, len(users))
	for i, id := range users {
		keys[i] = domain.UserKey{Client: t.ID, User: id}
	}
	return keys
}

// LockCollections locks those of the collections that are the client's and
// returns them.
func (t *Tenant) LockCollections(
	ctx context.Context, c *Change, ids ...domain.CollectionID,
) ([]domain.CollectionID, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ANY(?::uuid[])", pg.IDs(ids)))
	found := make([]domain.CollectionID, len(rows))
	for i := range rows {
		found[i] = rows[i].ID
	}
	return found, err
}

// LockCollection locks one of the client's collections and returns it as it is
// then.
func (t *Tenant) LockCollection(ctx context.Context, c *Change, id domain.CollectionID) (domain.Collection, error) {
	rows, err := t.lockCollections(ctx, c, pg.SQL("k.id = ?", id))
	return among(rows, id, err)
}

func (t *Tenant) lockCollections(ctx context.Context, c *Change, condition pg.Query) ([]collectionRow, error) {
	c.Lock(CollectionLocks)
	return pg.All[collectionRow](ctx, c, "lock collections",
		pg.From("collections AS k").Columns(pg.Columns[collectionRow]()).Where("k.client_id = ?", t.ID).
			Where("?", condition).OrderBy("k.id").For("NO KEY UPDATE"))
}

// among is the collection with an id among rows. NotFound without it.
func among(rows []collectionRow, id domain.CollectionID, err error) (domain.Collection, error) {
	i := slices.IndexFunc(rows, func(r collectionRow) bool { return r.ID == id })
	if err == nil && i < 0 {
		err = domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return domain.Collection{}, err
	}
	return rows[i].collection(), nil
}

// AddMembers adds users, who are locked, to a locked collection; those in it
// already stay as they are. It returns how many were added. The audiences of the
// client are shared (ShareAudiences).
func (t *Tenant) AddMembers(
	ctx context.Context, c *Change, id domain.CollectionID, users []domain.UserID,
) (added int, err error) {
	joined, err := t.join(ctx, c, []domain.CollectionID{id}, users)
	if err != nil {
		return 0, err
	}
	keys := t.keysOf(joined)
	c.touch(keys...)
	return len(joined), c.enterAudiences(ctx, keys)
}

// join adds users to collections and returns those who were not in them.
func (t *Tenant) join(
	ctx context.Context, c *Change, ids []domain.CollectionID, users []domain.UserID,
) ([]domain.UserID, error) {
	joined, err := c.join(ctx, pg.SQL(`
		SELECT ?::uuid AS client_id, k.id AS collection_id, u.id AS user_id, ?::timestamptz AS added_at
		FROM unnest(?::uuid[]) AS k (id), unnest(?::uuid[]) AS u (id)`, t.ID, c.At, pg.IDs(ids), pg.IDs(users)))
	if len(joined) > 0 {
		t.scopeMoved(c, ids...)
	}
	in := make([]domain.UserID, len(joined))
	for i, u := range joined {
		in[i] = u.User
	}
	return in, err
}

// join adds the memberships that a query selects, and returns the users who were not in
// one of the collections before.
func (c *Change) join(ctx context.Context, memberships pg.Query) ([]domain.UserKey, error) {
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

// RemoveMember takes a user, who is locked, out of a collection. NotFound
// where the user is not in it.
func (t *Tenant) RemoveMember(ctx context.Context, c *Change, id domain.CollectionID, user domain.UserID) error {
	c.Lock(CollectionLocks)
	left, err := t.leave(ctx, c, "m.collection_id = ? AND m.user_id = ?", id, user)
	if err == nil && left == 0 {
		return &domain.Error{
			Code: domain.NotFound, Object: user.Noun(), Message: "the user is not a member of this collection",
		}
	}
	return err
}

// leave ends the memberships, alias m, of a condition and returns how many there
// were. Their users are locked, and so are their collections if there are several.
func (t *Tenant) leave(ctx context.Context, c *Change, condition string, args ...any) (int, error) {
	type membership struct {
		CollectionID domain.CollectionID
		UserID       domain.UserID
	}
	left, err := pg.All[membership](ctx, c, "remove members", pg.SQL(`
		WITH gone AS (
			DELETE FROM collection_members AS m WHERE m.client_id = ?0 AND ?1 RETURNING m.collection_id, m.user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count - g.n, updated_at = greatest(k.updated_at, ?2)
			FROM (SELECT collection_id, count(*) AS n FROM gone GROUP BY collection_id) AS g
			WHERE k.client_id = ?0 AND k.id = g.collection_id
		)
		SELECT collection_id, user_id FROM gone`, t.ID, pg.SQL(condition, args...), c.At))
	if err != nil || len(left) == 0 {
		return 0, err
	}
	from := make([]domain.CollectionID, len(left))
	for i, m := range left {
		from[i] = m.CollectionID
		c.touch(domain.UserKey{Client: t.ID, User: m.UserID})
	}
	t.scopeMoved(c, from...)
	return len(left), nil
}

// scopeMoved notes that the members changed of collections: policies may have
// them as their scope.
func (t *Tenant) scopeMoved(c *Change, ids ...domain.CollectionID) {
	c.policiesOf("p.client_id = ? AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])", t.ID, pg.IDs(ids))
}
