package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
