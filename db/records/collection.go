package records

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedCollection is a row of collections with a part of the members, as JSON. Part numbers the parts from 0.
type importedCollection struct {
	bun.BaseModel `bun:"table:collections,alias:k"`
	db.CollectionRow

	Part    int    `bun:",scanonly"`
	Members string `bun:",scanonly"`
}

// Collections is the kind of collections. The members of a record are added to the existing members. An export splits a
// collection with more than domain.MaxMembers into several records.
var Collections = declare[collections](kind[domain.CollectionRecord, importedCollection]{
	object: "collection", partner: ofPartner("k"), order: "k.client_id, k.id, m.part",
	audiences: db.SharedAudiences, rank: db.CollectionLocks, locked: "k.client_id, k.id",
	unique: &unique{field: "name", column: "name_key", held: "t.client_id = k.scope::uuid AND t.name_key = k.key"},
})

type collections struct {
	batch[domain.CollectionRecord, importedCollection]
	joined map[domain.CollectionID][]membership // those that are not stored yet
}

// lock finds the memberships that are not stored yet, and locks their users and then the existing collections.
func (b *collections) lock(ctx context.Context) error {
	existing := objects{}
	for _, a := range b.list {
		existing.want(a.in.ID)
	}
	if err := lookUp(ctx, b.Change, existing); err != nil {
		return err
	}
	var list []membership
	for _, a := range b.list {
		list = append(list, b.membershipsOf(a.in, existing.find(a.in.ID))...)
	}
	newMembers, err := lockNewMemberships(ctx, b.Change, list)
	if err != nil {
		return err
	}
	b.joined = map[domain.CollectionID][]membership{}
	for _, m := range newMembers {
		b.joined[m.CollectionID] = append(b.joined[m.CollectionID], m)
	}
	return b.batch.lock(ctx)
}

// membershipsOf returns the memberships that a record names, without users of other clients, for which apply refuses the
// record. collection is nil for a new one.
func (b *collections) membershipsOf(in *domain.CollectionRecord, collection *foundObject) (list []membership) {
	client := in.Client.Value.ID
	if collection != nil {
		client = collection.ClientID
	}
	for _, m := range in.Members.Value {
		user, at := b.found.find(m.User), b.At
		switch {
		case !user.isOf(client):
			continue
		case m.AddedAt != nil:
			at = m.AddedAt.Time
		case collection == nil: // a member since both the collection and the user exist
			at = domain.Later(in.CreatedAt.Or(domain.Time{Time: b.At}).Time, user.CreatedAt)
		}
		list = append(list, membership{client, in.ID.ID, m.User.ID, at})
	}
	return list
}

func (b *collections) create(in *domain.CollectionRecord, row *importedCollection) {
	row.ID, row.CreatedAt, row.UpdatedAt, row.CreatedBy = in.ID.ID, b.At, b.At, domain.ByDashboard
}

// apply refuses members of other clients.
func (b *collections) apply(in *domain.CollectionRecord, before, row *importedCollection) error {
	setNameKey(domain.OrZero(before).Name, row.Name, &row.NameKey)
	for n, m := range in.Members.Value {
		if !b.found.find(m.User).isOf(row.Client) {
			return noneOfClient(fmt.Sprintf("members[%d]", n), m.User.Noun())
		}
	}
	b.touch(before, row, &row.UpdatedAt)
	return nil
}

func (b *collections) nameOf(row *importedCollection) (name, string) {
	return name{row.Client.UUID(), row.NameKey}, ""
}

func (b *collections) changesMore(in *domain.CollectionRecord) bool {
	return len(b.joined[in.ID.ID]) > 0
}

// follow inserts the memberships.
func (b *collections) follow(ctx context.Context) error {
	var list []membership
	for _, a := range b.list {
		if !a.refused() {
			list = append(list, b.joined[a.in.ID.ID]...)
		}
	}
	return joinAll(ctx, b.Change, list)
}

// extend selects the members, in parts.
func (b *collections) extend(q *bun.SelectQuery) {
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
}

// complete sets the members of an exported record. It leaves out what a new collection gets anyway: the default creator,
// and the times of members who joined when the collection and the user existed (membershipsOf).
func (b *collections) complete(row *importedCollection, out *domain.CollectionRecord) error {
	if row.CreatedBy == domain.ByDashboard {
		out.CreatedBy = domain.Optional[domain.Creator]{}
	}
	type object domain.MemberRecord // without its UnmarshalText, which makes JSON expect an id only
	var list []object
	if err := json.Unmarshal([]byte(row.Members), &list); err != nil {
		return fmt.Errorf("read the members of a collection: %w", err)
	}
	out.Members = domain.Give(pg.MapRows(list, func(m *object) domain.MemberRecord { return domain.MemberRecord(*m) }))
	return nil
}
