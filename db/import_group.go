package db

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of groups.

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

// GroupRecords are groups. One of users who are kept by hand takes the place of the one
// that its client has, as long as that is empty: no user may come into it meanwhile.
var GroupRecords Records = &kind[domain.GroupRecord, groupRow]{
	object: "group", partner: ofPartner("g"), order: "g.client_id, g.id", audiences: soleLock, begin: beginGroups,
}

type (
	importingGroups = importing[domain.GroupRecord, groupRow]
	appliedGroup    = applied[domain.GroupRecord, groupRow]
)

// beginGroups locks those of the groups that are there, and those that they may take the
// place of.
func beginGroups(ctx context.Context, b *importingGroups) error {
	rows, err := pg.All[groupRow](ctx, b, "lock groups", pg.Rows[groupRow]().
		Columns(`EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = g.client_id AND u.group_id = g.id)
			OR EXISTS (SELECT 1 FROM policies AS p WHERE p.client_id = g.client_id AND p.scope_id = g.id)
			OR EXISTS (SELECT 1 FROM framework_assignments AS f
				WHERE f.client_id = g.client_id AND f.audience_id = g.id) AS used`).
		Where("g.id = ANY(?0::uuid[]) OR g.manual AND g.client_id = ANY(?1::uuid[])",
			b.ids(), b.found.ids(domain.ClientKind{}.Prefix())).
		OrderBy("g.client_id, g.id").For("UPDATE"))
	if err != nil {
		return err
	}
	b.keep(rows)
	manual := map[domain.ClientID]*groupRow{}
	for i := range rows {
		if rows[i].Manual {
			manual[rows[i].ClientID] = &rows[i]
		}
	}

	var replaced []domain.GroupID
	b.kind.finish = func(_ *importingGroups, a *appliedGroup) error {
		other := manual[a.after.ClientID]
		switch {
		case a.before != nil || !a.after.Manual:
			return nil
		case other != nil && other.Used:
			return fmt.Errorf("manual: the client has the group %s for users who are kept by hand", other.ID)
		case other != nil:
			replaced = append(replaced, other.ID)
		}
		manual[a.after.ClientID] = &groupRow{ID: a.after.ID, Used: true}
		return nil
	}
	b.kind.prepare = func(ctx context.Context, b *importingGroups) error {
		_, err := pg.Exec(ctx, b, "replace empty groups",
			pg.SQL("DELETE FROM groups WHERE id = ANY(?::uuid[])", pg.IDs(replaced)))
		return err
	}
	return nil
}
