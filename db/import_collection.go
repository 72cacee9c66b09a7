package db

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of collections.

// importedCollection is a collection with a part of its members.
type importedCollection struct {
	bun.BaseModel `bun:"table:collections,alias:k"`
	collectionRow

	Part    int      `bun:",scanonly"`
	Members []string `bun:",array,scanonly"`
}

// CollectionRecords are collections. The members of a record are added to those that are
// in it. An export has several records of one with more members than a record may name.
var CollectionRecords Records = &kind[domain.CollectionRecord, importedCollection]{
	object: "collection", partner: ofPartner("k"), order: "k.client_id, k.id, m.part",
	listed: func(q *pg.Select) {
		q.Columns("m.part, m.members").Join(`CROSS JOIN LATERAL (
			SELECT ((n - 1) / ?::integer)::integer AS part, array_agg(user_id::text ORDER BY user_id) AS members FROM (
				SELECT user_id, row_number() OVER (ORDER BY user_id) AS n FROM collection_members
				WHERE client_id = k.client_id AND collection_id = k.id) AS numbered
			GROUP BY 1
			UNION ALL SELECT 0, '{}' WHERE NOT EXISTS (
				SELECT FROM collection_members WHERE client_id = k.client_id AND collection_id = k.id)
		) AS m`, domain.MaxMembers)
	},
	exported: func(r *importedCollection, out *domain.CollectionRecord) error {
		members := make([]domain.Ref[domain.UserKind], len(r.Members))
		for i, text := range r.Members {
			if err := members[i].UnmarshalText([]byte(text)); err != nil {
				return err
			}
		}
		out.Members = domain.Give(members)
		return nil
	},
	audiences: sharedLock, begin: beginCollections, rank: CollectionLocks, locked: "k.client_id, k.id",
	fresh: func(r *importedCollection) { r.CreatedBy = domain.ByDashboard },
	names: &names[importedCollection]{
		field: "name", column: "name_key", held: "t.client_id = k.scope::uuid AND t.name_key = k.key",
		of: func(r *importedCollection) name { return name{r.ClientID.UUID(), r.NameKey} },
	},
}

type (
	importingCollections = importing[domain.CollectionRecord, importedCollection]
	appliedCollection    = applied[domain.CollectionRecord, importedCollection]
)

// beginCollections locks the users who join.
func beginCollections(ctx context.Context, b *importingCollections) error {
	there := objects{}
	for _, a := range b.list {
		there.want(a.record.ID)
	}
	if err := b.lookUp(ctx, there); err != nil {
		return err
	}
	var list []membership
	for _, a := range b.list {
		r, collection := a.record, there.find(a.record.ID)
		client := r.Client.Value.ID
		if collection != nil {
			client = collection.ClientID
		}
		for _, u := range r.Members.Value {
			user, at := b.found.find(u), b.At
			if !user.isOf(client) {
				continue // the record is refused
			}
			if collection == nil { // as long as the collection and the user have been there
				at = latest(r.CreatedAt.Or(domain.Time{Time: b.At}).Time, user.CreatedAt)
			}
			list = append(list, membership{client, r.ID.ID, u.ID, at})
		}
	}
	joining, err := b.lockJoining(ctx, list)
	if err != nil {
		return err
	}

	joined := map[domain.CollectionID][]membership{}
	for _, m := range joining {
		joined[m.CollectionID] = append(joined[m.CollectionID], m)
	}
	b.kind.finish = func(b *importingCollections, a *appliedCollection) error {
		for n, u := range a.record.Members.Value {
			if !b.found.find(u).isOf(a.after.ClientID) {
				return fmt.Errorf("members[%d]: %s of the client", n, domain.NoSuchObject(u.Noun()))
			}
		}
		a.beside = len(joined[a.after.ID]) > 0
		return nil
	}
	b.kind.follow = func(ctx context.Context, b *importingCollections) error {
		var joining []membership
		for _, a := range b.list {
			if !a.refused() {
				joining = append(joining, joined[a.after.ID]...)
			}
		}
		return b.joinAll(ctx, joining)
	}
	return nil
}
