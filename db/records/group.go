package records

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Groups is the kind of groups. An imported Manual group replaces the client's own Manual group while that is empty.
// The import locks the own group, so that no user can join it concurrently.
var Groups = declare[groups](kind[domain.GroupRecord, db.GroupRow]{
	object: "group", partner: ofPartner("g"), order: "g.client_id, g.id", audiences: db.ExclusiveAudiences,
})

type groups struct {
	batch[domain.GroupRecord, db.GroupRow]
	manual   map[domain.ClientID]*db.GroupRow // the clients' Manual groups
	replaced []domain.GroupID
}

// lock locks the existing groups and the clients' Manual groups.
func (b *groups) lock(ctx context.Context) error {
	rows, err := pg.All[db.GroupRow](ctx, b, "lock groups", pg.Rows[db.GroupRow]().
		ColumnExpr(`EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = g.client_id AND u.group_id = g.id)
			OR EXISTS (SELECT 1 FROM policies AS p WHERE p.client_id = g.client_id AND p.scope_id = g.id)
			OR EXISTS (SELECT 1 FROM framework_assignments AS f
				WHERE f.client_id = g.client_id AND f.audience_id = g.id) AS used`).
		Apply(pg.Where("g.id = ANY(?0::uuid[]) OR g.manual AND g.client_id = ANY(?1::uuid[])",
			idsOf(b.list), b.found.ids(domain.ClientID{}.Prefix()))).
		OrderExpr("g.client_id, g.id").For("UPDATE"))
	b.keep(rows)
	b.manual = map[domain.ClientID]*db.GroupRow{}
	for i := range rows {
		if rows[i].Manual {
			b.manual[rows[i].ClientID] = &rows[i]
		}
	}
	return err
}

func (b *groups) create(in *domain.GroupRecord, row *db.GroupRow) {
	row.ID, row.CreatedAt = in.ID.ID, b.At
}

// apply refuses a Manual group if the client's is in use or came in this batch.
func (b *groups) apply(_ *domain.GroupRecord, before, row *db.GroupRow) error {
	other := b.manual[row.ClientID]
	switch {
	case !row.Manual:
		return nil
	case other == nil || other.ID == row.ID:
	case other.Used || before != nil: // if row is not new, an earlier record has replaced it
		return fmt.Errorf("manual: the client already has the group %s for manually managed users", other.ID)
	default:
		b.replaced = append(b.replaced, other.ID)
	}
	b.manual[row.ClientID] = &db.GroupRow{ID: row.ID, Used: true} // no other one in the batch may replace it
	return nil
}

// store first deletes the empty Manual groups that are replaced.
func (b *groups) store(ctx context.Context) error {
	err := pg.Run(ctx, b, "replace empty groups",
		pg.SQL("DELETE FROM groups WHERE id = ANY(?::uuid[])", pg.IDs(b.replaced)))
	if err != nil {
		return err
	}
	return b.batch.store(ctx)
}
