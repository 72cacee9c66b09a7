package records

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of collections.

// importedCollection is a row of collections with a part of the members, as JSON. Part numbers the parts from 0.
type importedCollection struct {
	bun.BaseModel `bun:"table:collections,alias:k"`
	db.CollectionRow

	Part    int    `bun:",scanonly"`
	Members string `bun:",scanonly"`
}

// Collections is the kind of collections. The members of a record are added to the existing members. An export splits a
// collection with more than domain.MaxMembers into several records.
var Collections Kind = &kind[domain.CollectionRecord, importedCollection]{
	object: "collection", partner: ofPartner("k"), order: "k.client_id, k.id, m.part",
	extendExport: func(q *bun.SelectQuery) {
		q.ColumnExpr("m.part, m.members::text AS members").Join("?", pg.SQL(`CROSS JOIN LATERAL (
			SELECT ((n - 1) / ?0::integer)::integer AS part, json_agg(json_build_object('user', user_id, 'added_at',
				CASE WHEN n > ?0::integer OR added_at <> since THEN added_at END) ORDER BY user_id) AS members
			FROM (
				SELECT m.user_id, m.added_at, greatest(k.created_at, u.created_at) AS since,
					row_number() OVER (ORDER BY m.user_id) AS n
				FROM collection_members AS m JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id
				WHERE m.client_id = k.client_id AND m.collection_id = k.id) AS numbered
			GROUP BY 1
			UNION ALL SELECT 0, '[]' WHERE NOT EXISTS (
				SELECT FROM collection_members WHERE client_id = k.client_id AND collection_id = k.id)
		) AS m`, domain.MaxMembers))
	},
	adjustRecord: adjustCollection,
	audiences:    db.SharedAudiences, begin: beginCollections, rank: db.CollectionLocks, locked: "k.client_id, k.id",
	setDefaults: func(r *importedCollection) { r.CreatedBy = domain.ByDashboard },
	names: &names[importedCollection]{
		field: "name", column: "name_key", held: "t.client_id = k.scope::uuid AND t.name_key = k.key",
		nameOf: func(r *importedCollection) name { return name{r.Client.UUID(), r.NameKey} },
	},
}

// adjustCollection sets the members of an exported record. It leaves out what a new collection gets anyway: the default
// creator, and the times of members who joined when the collection and the user existed (beginCollections).
func adjustCollection(r *importedCollection, out *domain.CollectionRecord) error {
	if r.CreatedBy == domain.ByDashboard {
		out.CreatedBy = domain.Optional[domain.Creator]{}
	}
	var list []struct {
		User    string     `json:"user"`
		AddedAt *time.Time `json:"added_at"`
	}
	if err := json.Unmarshal([]byte(r.Members), &list); err != nil {
		return fmt.Errorf("read the members of a collection: %w", err)
	}
	members := make([]domain.MemberRecord, len(list))
	for i, m := range list {
		if err := members[i].UnmarshalText([]byte(m.User)); err != nil {
			return err
		}
		if m.AddedAt != nil {
			members[i].AddedAt = &domain.Time{Time: *m.AddedAt}
		}
	}
	out.Members = domain.Give(members)
	return nil
}

type (
	importingCollections = recordBatch[domain.CollectionRecord, importedCollection]
	appliedCollection    = recordChange[domain.CollectionRecord, importedCollection]
)

// beginCollections finds the memberships that are not stored yet, and locks their users. It sets finish, which refuses
// members of other clients and notes whether a record has new ones, and afterStore, which inserts the memberships.
func beginCollections(ctx context.Context, b *importingCollections) error {
	existing := objects{}
	for _, a := range b.list {
		existing.want(a.record.ID)
	}
	if err := lookUp(ctx, b.Change, existing); err != nil {
		return err
	}
	var list []membership
	for _, a := range b.list {
		r, collection := a.record, existing.find(a.record.ID)
		client := r.Client.Value.ID
		if collection != nil {
			client = collection.ClientID
		}
		for _, m := range r.Members.Value {
			user, at := b.found.find(m.User), b.At
			if !user.isOf(client) {
				continue // finish refuses the record
			}
			switch {
			case m.AddedAt != nil:
				at = m.AddedAt.Time
			case collection == nil: // a member since both the collection and the user exist
				at = domain.Later(r.CreatedAt.Or(domain.Time{Time: b.At}).Time, user.CreatedAt)
			}
			list = append(list, membership{client, r.ID.ID, m.User.ID, at})
		}
	}
	newMembers, err := lockNewMemberships(ctx, b.Change, list)
	if err != nil {
		return err
	}

	joined := map[domain.CollectionID][]membership{}
	for _, m := range newMembers {
		joined[m.CollectionID] = append(joined[m.CollectionID], m)
	}
	b.kind.finish = func(b *importingCollections, a *appliedCollection) error {
		for n, m := range a.record.Members.Value {
			if !b.found.find(m.User).isOf(a.after.Client) {
				return fmt.Errorf("members[%d]: %s of the client", n, domain.NoSuchObject(m.User.Noun()))
			}
		}
		a.sideEffect = len(joined[a.after.ID]) > 0
		return nil
	}
	b.kind.afterStore = func(ctx context.Context, b *importingCollections) error {
		var list []membership
		for _, a := range b.list {
			if !a.refused() {
				list = append(list, joined[a.after.ID]...)
			}
		}
		return joinAll(ctx, b.Change, list)
	}
	return nil
}

// Users who join collections.

// Memberships is the kind of records of existing users who join the collections that the records name. Its export is
// empty: the records of Collections name the members.
var Memberships Kind = memberships{}

type memberships struct{}

// Object is that of Users, whose records name the collections of a user.
func (memberships) Object() string { return Users.Object() }

func (memberships) Type() reflect.Type { return Users.Type() }

// Export yields nothing: the exported records of Collections name the members.
func (memberships) Export(context.Context, *db.DB, domain.PartnerID) iter.Seq2[any, error] {
	return func(func(any, error) bool) {}
}

func (memberships) Import(ctx context.Context, d *db.DB, batch []any) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(ctx context.Context, c *db.Change, results []domain.ImportResult) error {
		return importMemberships(ctx, c, batch, results)
	})
}

// importMemberships imports a batch in one transaction, and sets the results.
func importMemberships(ctx context.Context, c *db.Change, batch []any, results []domain.ImportResult) error {
	users, found := make([]domain.UserID, len(batch)), objects{}
	for i, record := range batch {
		r := record.(*domain.UserRecord)
		users[i] = r.ID.ID
		found.want(r.ID)
		found.want(r.CollectionIDs.Value)
	}
	// This lock also prevents the deletion of collections of these clients.
	err := c.LockAudiencesWhere(ctx, db.SharedAudiences, pg.SQL(
		"(SELECT DISTINCT client_id AS id FROM users WHERE id = ANY(?::uuid[])) AS l", pg.IDs(users)))
	if err != nil {
		return err
	}
	if err := lookUp(ctx, c, found); err != nil {
		return err
	}
	newMembers, err := lockNewMemberships(ctx, c, membershipsOf(c, batch, found, results))
	if err != nil || len(newMembers) == 0 {
		return err
	}

	c.WillLock(db.CollectionLocks)
	err = pg.Run(ctx, c, "lock collections", pg.SQL(
		"SELECT FROM collections WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE",
		found.ids(domain.CollectionID{}.Prefix())))
	if err != nil {
		return err
	}
	joined := map[domain.UserID]bool{}
	for _, m := range newMembers {
		joined[m.UserID] = true
	}
	for i, user := range users {
		if joined[user] {
			results[i].Outcome = domain.ImportUpdated
		}
	}
	return joinAll(ctx, c, newMembers)
}

// membershipsOf returns the memberships that records name, and sets their results to unchanged. It refuses a record
// that names a collection that does not exist or belongs to another client, and leaves out records that are already
// refused.
func membershipsOf(c *db.Change, batch []any, found objects, results []domain.ImportResult) (list []membership) {
	for i, record := range batch {
		r := record.(*domain.UserRecord)
		client := domain.OrZero(found.find(r.ID)).ClientID
		for n, k := range r.CollectionIDs.Value {
			if !found.find(k).isOf(client) {
				results[i] = domain.RefuseImport("collection_ids[%d]: %s; the user is there without them", n,
					domain.NoSuchObject(k.Noun()))
			}
		}
		if results[i].Refusal != "" {
			continue
		}
		results[i].Outcome = domain.ImportUnchanged
		for _, k := range r.CollectionIDs.Value {
			list = append(list, membership{client, k.ID, r.ID.ID, c.At})
		}
	}
	return list
}

// membership is a user's membership in a collection of the same client.
type membership struct {
	ClientID     domain.ClientID
	CollectionID domain.CollectionID
	UserID       domain.UserID
	AddedAt      time.Time
}

// rowsOf returns memberships as an SQL FROM item with the alias w.
func rowsOf(list []membership) pg.Query {
	clients, collections, users := make([][16]byte, len(list)), make([][16]byte, len(list)), make([][16]byte, len(list))
	times := make([]time.Time, len(list))
	for i, m := range list {
		clients[i], collections[i], users[i], times[i] = m.ClientID, m.CollectionID, m.UserID, m.AddedAt
	}
	return pg.SQL(`unnest(?::uuid[], ?::uuid[], ?::uuid[], ?::timestamptz[])
		AS w (client_id, collection_id, user_id, added_at)`, clients, collections, users, times)
}

// lockNewMemberships returns those memberships of a list that are not stored yet, and locks their users.
func lockNewMemberships(ctx context.Context, c *db.Change, list []membership) ([]membership, error) {
	if len(list) == 0 {
		return nil, nil
	}
	newMembers, err := pg.All[membership](ctx, c, "look for members", pg.SQL(`
		SELECT w.client_id, w.collection_id, w.user_id, w.added_at FROM ? WHERE NOT EXISTS (
			SELECT FROM collection_members AS m
			WHERE m.client_id = w.client_id AND m.collection_id = w.collection_id AND m.user_id = w.user_id)`,
		rowsOf(list)))
	if err != nil || len(newMembers) == 0 {
		return nil, err
	}
	users := pg.MapRows(newMembers, func(m *membership) domain.UserID { return m.UserID })
	_, err = c.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(users)))
	return newMembers, err
}

// joinAll inserts the memberships of locked users in locked collections, and adds their effects to the change. The
// caller must hold a lock of the clients' audiences.
func joinAll(ctx context.Context, c *db.Change, list []membership) error {
	if len(list) == 0 {
		return nil
	}
	joined, err := c.JoinCollections(ctx, pg.SQL("SELECT * FROM ?", rowsOf(list)))
	if err != nil {
		return err
	}
	c.TouchUsers(joined...)
	c.PoliciesChanged("p.client_id = ANY(?::uuid[]) AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])",
		pg.MapRows(list, func(m *membership) [16]byte { return m.ClientID }),
		pg.MapRows(list, func(m *membership) [16]byte { return m.CollectionID }))
	return c.EnterAudiences(ctx, joined)
}

// Imports and exports of groups.

// Groups is the kind of groups. An imported Manual group replaces the client's own Manual group while that is empty.
// The import locks the own group, so that no user can join it concurrently.
var Groups Kind = &kind[domain.GroupRecord, db.GroupRow]{
	object: "group", partner: ofPartner("g"), order: "g.client_id, g.id", audiences: db.ExclusiveAudiences, begin: beginGroups,
}

type (
	importingGroups = recordBatch[domain.GroupRecord, db.GroupRow]
	appliedGroup    = recordChange[domain.GroupRecord, db.GroupRow]
)

// beginGroups locks the existing groups and the clients' Manual groups. It sets finish, which refuses a Manual group if
// the client's is in use or came in this batch, and prepare, which deletes the empty ones that are replaced.
func beginGroups(ctx context.Context, b *importingGroups) error {
	rows, err := pg.All[db.GroupRow](ctx, b, "lock groups", pg.Rows[db.GroupRow]().
		ColumnExpr(`EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = g.client_id AND u.group_id = g.id)
			OR EXISTS (SELECT 1 FROM policies AS p WHERE p.client_id = g.client_id AND p.scope_id = g.id)
			OR EXISTS (SELECT 1 FROM framework_assignments AS f
				WHERE f.client_id = g.client_id AND f.audience_id = g.id) AS used`).
		Apply(pg.Where("g.id = ANY(?0::uuid[]) OR g.manual AND g.client_id = ANY(?1::uuid[])",
			b.ids(), b.found.ids(domain.ClientID{}.Prefix()))).
		OrderExpr("g.client_id, g.id").For("UPDATE"))
	if err != nil {
		return err
	}
	b.keep(rows)
	manual := map[domain.ClientID]*db.GroupRow{}
	for i := range rows {
		if rows[i].Manual {
			manual[rows[i].ClientID] = &rows[i]
		}
	}

	var replaced []domain.GroupID
	b.kind.finish = func(_ *importingGroups, a *appliedGroup) error {
		other := manual[a.after.ClientID]
		switch {
		case !a.after.Manual:
			return nil
		case other == nil || other.ID == a.after.ID:
		case other.Used || a.before != nil: // if a is not new, an earlier record has replaced it
			return fmt.Errorf("manual: the client has the group %s for users who are kept by hand", other.ID)
		default:
			replaced = append(replaced, other.ID)
		}
		manual[a.after.ClientID] = &db.GroupRow{ID: a.after.ID, Used: true} // no other one in the batch may replace it
		return nil
	}
	b.kind.prepare = func(ctx context.Context, b *importingGroups) error {
		return pg.Run(ctx, b, "replace empty groups",
			pg.SQL("DELETE FROM groups WHERE id = ANY(?::uuid[])", pg.IDs(replaced)))
	}
	return nil
}
