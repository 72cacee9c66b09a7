package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

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

// Collections reads a page of a client's collections, by their creation. That
// the client is within reach is for its caller to have checked, here and below.
func (d *DB) Collections(ctx context.Context, client domain.ClientID, since *time.Time, w domain.Window) (domain.Slice[domain.Collection], error) {
	k := keyset{
		from: "collections AS k", key: "k.created_at", cast: "timestamptz", id: "k.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = q.Where("k.client_id = ?", values.add(client))
			if since != nil {
				q = q.Where("k.updated_at >= ?", values.add(*since))
			}
			return q
		},
	}
	rows, err := countedPage(ctx, d, k, w, nil, func(r *collectionRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	return mapped(rows, (*collectionRow).collection), err
}

// Collection reads one of a client's collections.
func (d *DB) Collection(ctx context.Context, client domain.ClientID, id domain.CollectionID) (domain.Collection, error) {
	var row collectionRow
	q := d.conn(ctx).NewSelect().Model(&row).Where("k.client_id = ? AND k.id = ?", client, id)
	err := d.one(ctx, q, id.Noun())
	return row.collection(), err
}

// InsertCollection adds a collection without members. Conflict when the client
// has one of that name.
func (d *DB) InsertCollection(ctx context.Context, c domain.Collection) error {
	row := collectionRow{
		ClientID: c.Client, ID: c.ID, Name: c.Name, NameKey: domain.SortKey(c.Name), Description: c.Description,
		CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	_, err := d.conn(ctx).NewInsert().Model(&row).Exec(ctx)
	return d.bad("insert a collection", err)
}

// DeleteCollection removes a collection and its memberships; its members are
// users as before. NotFound where the client has no such collection.
func (d *DB) DeleteCollection(ctx context.Context, client domain.ClientID, id domain.CollectionID) error {
	members, err := d.LockAudience(ctx, client, domain.Audience{Type: domain.OfCollection, Collection: id})
	if err != nil {
		return err
	}
	_, err = d.conn(ctx).NewRaw("UPDATE users SET updated_at = ? WHERE client_id = ? AND id = ANY(?::uuid[])", d.Now(), client, uuids(members)).Exec(ctx)
	if err != nil {
		return d.bad("touch a collection's members", err)
	}
	done, err := d.conn(ctx).NewDelete().Model((*collectionRow)(nil)).Where("k.client_id = ? AND k.id = ?", client, id).Exec(ctx)
	if err != nil {
		return d.bad("delete a collection", err)
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return domain.ErrNotFound(id.Noun())
	}
	return d.touchPolicies(ctx, client, d.Now(), "p.scope_type = 'collection' AND p.scope_id = ?", id)
}

// touchAudiences notes that the audiences changed of the policies for those
// collections that the transaction of ctx has changed at the time.
func (d *DB) touchAudiences(ctx context.Context, client domain.ClientID, at time.Time) error {
	return d.touchPolicies(ctx, client, at, `p.scope_type = 'collection'
		AND p.scope_id IN (SELECT id FROM collections WHERE client_id = ? AND updated_at = ?)`, client, at)
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
	return domain.Member{User: r.UserID, Name: domain.FullName(r.FirstName, r.LastName), Email: r.Email, AddedAt: r.AddedAt}
}

// Members reads a page of a collection's members, by when they were added.
// since, if not nil, leaves those who joined or changed at or after it.
func (d *DB) Members(ctx context.Context, c domain.Collection, since *time.Time, w domain.Window) (domain.Slice[domain.Member], error) {
	k := keyset{
		from: "collection_members AS m", key: "m.added_at", cast: "timestamptz", id: "m.user_id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = q.Where("m.client_id = ? AND m.collection_id = ?", values.add(c.Client), values.add(c.ID))
			if since != nil { // joining changes a user too
				q = q.Where("EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = m.client_id AND u.id = m.user_id AND u.updated_at >= ?)", values.add(*since))
			}
			return q
		},
	}
	rows, err := page(ctx, d, k, w, func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
		return q.ColumnExpr("m.user_id, m.added_at, u.first_name, u.last_name, u.email").
			Join("JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id")
	}, func(r *memberRow) domain.Position {
		return domain.Position{Key: timeKey(r.AddedAt), ID: r.UserID.UUID()}
	})
	rows.Total = c.Members // a total is asked for only without since
	return mapped(rows, (*memberRow).member), err
}

// LockUsers locks those of the users that are the client's, in the order of
// their ids, and returns them.
func (d *DB) LockUsers(ctx context.Context, client domain.ClientID, ids []domain.UserID) ([]domain.UserID, error) {
	return d.lockWhere(ctx, client, "AND id = ANY(?1::uuid[])", uuids(ids))
}

// LockCollections locks a collection and, where others are asked for, those
// that the users are in, in the order of their ids. NotFound where the client
// has no such collection.
func (d *DB) LockCollections(ctx context.Context, client domain.ClientID, id domain.CollectionID, others []domain.UserID) error {
	var found []domain.CollectionID
	err := d.conn(ctx).NewRaw(`
		SELECT id FROM collections WHERE client_id = ?0 AND (id = ?1 OR id IN (
			SELECT collection_id FROM collection_members WHERE client_id = ?0 AND user_id = ANY(?2::uuid[])))
		ORDER BY id FOR NO KEY UPDATE`, client, id, uuids(others)).Scan(ctx, &found)
	if err != nil {
		return d.bad("lock collections", err)
	}
	for _, f := range found {
		if f == id {
			return nil
		}
	}
	return domain.ErrNotFound(id.Noun())
}

// AddMembers adds users to a collection; those in it already stay as they are.
// With move they leave all other collections of the client. The collections
// and users are locked by its caller. It returns how many were added, and how
// many members there are then.
func (d *DB) AddMembers(ctx context.Context, client domain.ClientID, id domain.CollectionID, users []domain.UserID, move bool) (added, members int, err error) {
	now := d.Now()
	err = d.conn(ctx).NewRaw(`
		WITH gone AS (
			DELETE FROM collection_members
			WHERE ?4 AND client_id = ?0 AND collection_id <> ?1 AND user_id = ANY(?2::uuid[]) RETURNING collection_id, user_id
		), added AS (
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT ?0, ?1, unnest(?2::uuid[]), ?3 ON CONFLICT DO NOTHING RETURNING collection_id, user_id
		), steps AS (
			SELECT collection_id, sum(step) AS step FROM (
				SELECT collection_id, -1 AS step FROM gone UNION ALL SELECT collection_id, 1 FROM added) AS s GROUP BY collection_id
		), counted AS (
			UPDATE collections AS k SET member_count = member_count + s.step, updated_at = ?3
			FROM steps AS s WHERE k.client_id = ?0 AND k.id = s.collection_id RETURNING k.id, k.member_count
		), touched AS (
			UPDATE users SET updated_at = ?3 WHERE client_id = ?0
			AND id IN (SELECT user_id FROM gone UNION SELECT user_id FROM added)
		)
		SELECT (SELECT count(*) FROM added),
		       coalesce((SELECT member_count FROM counted WHERE id = ?1), (SELECT member_count FROM collections WHERE client_id = ?0 AND id = ?1))`,
		client, id, uuids(users), now, move).Scan(ctx, &added, &members)
	if err != nil {
		return 0, 0, d.bad("add members", err)
	}
	return added, members, d.touchAudiences(ctx, client, now)
}

// RemoveMember takes a user out of a collection. NotFound where the user is
// not in it.
func (d *DB) RemoveMember(ctx context.Context, client domain.ClientID, id domain.CollectionID, user domain.UserID) error {
	var removed int
	now := d.Now()
	err := d.conn(ctx).NewRaw(`
		WITH gone AS (
			DELETE FROM collection_members WHERE client_id = ?0 AND collection_id = ?1 AND user_id = ?2 RETURNING user_id
		), counted AS (
			UPDATE collections SET member_count = member_count - 1, updated_at = ?3
			WHERE client_id = ?0 AND id = ?1 AND EXISTS (SELECT 1 FROM gone)
		), touched AS (
			UPDATE users SET updated_at = ?3 WHERE client_id = ?0 AND id IN (SELECT user_id FROM gone)
		)
		SELECT count(*) FROM gone`, client, id, user, now).Scan(ctx, &removed)
	if err != nil {
		return d.bad("remove a member", err)
	}
	if removed == 0 {
		return &domain.Error{Code: domain.NotFound, Object: user.Noun(), Message: "the user is not a member of this collection"}
	}
	return d.touchAudiences(ctx, client, now)
}
