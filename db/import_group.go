package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedGroup is a row of groups, by its columns.
type importedGroup struct {
	ClientID  string    `json:"client_id"`
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Manual    bool      `json:"manual"`
	CreatedAt time.Time `json:"created_at"`
}

// storedGroup is the same, as it is read, and whether anybody is in the group.
type storedGroup struct {
	ClientID  domain.ClientID
	ID        domain.GroupID
	Name      string
	Manual    bool
	CreatedAt time.Time
	Used      bool
}

// ImportGroups applies records of groups. One of users who are kept by hand takes the
// place of the one that its client has, as long as nobody is in that.
func (d *DB) ImportGroups(ctx context.Context, batch []domain.GroupRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importGroups)
}

func (c *Change) importGroups(ctx context.Context, batch []domain.GroupRecord, results []domain.ImportResult) error {
	before, manual, err := c.groupsBefore(ctx, batch)
	if err != nil {
		return err
	}
	clients, err := clientsOf(ctx, c, batch, func(r *domain.GroupRecord) domain.ClientID { return r.Client.Value.ID })
	if err != nil {
		return err
	}
	var made, changed []importedGroup
	var replaced []domain.GroupID
	for i := range batch {
		r := &batch[i]
		old, there := before[r.ID.ID]
		other, rival := manual[r.Client.Value.ID]
		switch {
		case !there && r.Missing != "":
			results[i] = missing(r.Missing)
			continue
		case there && r.Client.Has() && r.Client.Value.ID != old.ClientID:
			results[i] = cannotChange("client")
			continue
		case there && r.Manual.Has() && r.Manual.Value != old.Manual:
			results[i] = cannotChange("manual")
			continue
		case !there && !clients[r.Client.Value.ID].There:
			results[i] = noSuch("client", "client")
			continue
		case !there && r.Manual.Value && rival && other.Used:
			results[i] = domain.RefuseImport("manual: the client has the group %s for users who are kept by hand",
				other.ID)
			continue
		case !there:
			old = storedGroup{ClientID: r.Client.Value.ID, Manual: r.Manual.Value, CreatedAt: c.At}
			if rival && old.Manual {
				replaced = append(replaced, other.ID)
			}
			if old.Manual {
				manual[old.ClientID] = storedGroup{ID: r.ID.ID, Used: true}
			}
		}
		after := importedGroup{
			old.ClientID.UUID(), r.ID.UUID(), r.Name.Or(old.Name), old.Manual,
			r.CreatedAt.Or(domain.Moment{Time: old.CreatedAt}).Time,
		}
		switch {
		case !there:
			results[i].Outcome = domain.ImportCreated
			made = append(made, after)
		case old.Name == after.Name && old.CreatedAt.Equal(after.CreatedAt):
			results[i].Outcome = domain.ImportUnchanged
		default:
			results[i].Outcome = domain.ImportUpdated
			changed = append(changed, after)
		}
	}
	return c.writeGroups(ctx, made, changed, replaced)
}

func (c *Change) writeGroups(ctx context.Context, made, changed []importedGroup, replaced []domain.GroupID) error {
	if len(replaced) > 0 {
		_, err := pg.Exec(ctx, c, "replace groups that nobody is in",
			pg.SQL("DELETE FROM groups WHERE id = ANY(?::uuid[])", pg.IDs(replaced)))
		if err != nil {
			return err
		}
	}
	if err := updateRows(ctx, c, "groups", "groups", changed, "client_id", "id"); err != nil {
		return err
	}
	return insertRows(ctx, c, "groups", "groups", made)
}

// groupsBefore locks those of the groups that are there, and those that they may take
// the place of: of each client the one for users who are kept by hand.
func (c *Change) groupsBefore(ctx context.Context, batch []domain.GroupRecord) (
	before map[domain.GroupID]storedGroup, manual map[domain.ClientID]storedGroup, err error,
) {
	ids, clients := make([]domain.GroupID, len(batch)), []domain.ClientID{}
	for i := range batch {
		ids[i] = batch[i].ID.ID
		if batch[i].Manual.Value {
			clients = append(clients, batch[i].Client.Value.ID)
		}
	}
	if len(clients) > 0 { // nobody may come into a group that is replaced
		err := c.lockAudiences(ctx, "pg_advisory_xact_lock",
			pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(sortedUnique(clients))))
		if err != nil {
			return nil, nil, err
		}
	}
	rows, err := pg.All[storedGroup](ctx, c, "lock groups", pg.SQL(`
		SELECT g.client_id, g.id, g.name, g.manual, g.created_at,
			EXISTS (SELECT 1 FROM users AS u WHERE u.client_id = g.client_id AND u.group_id = g.id)
			OR EXISTS (SELECT 1 FROM policies AS p WHERE p.client_id = g.client_id AND p.scope_id = g.id)
			OR EXISTS (SELECT 1 FROM framework_assignments AS f
				WHERE f.client_id = g.client_id AND f.audience_id = g.id) AS used
		FROM groups AS g WHERE g.id = ANY(?0::uuid[]) OR g.manual AND g.client_id = ANY(?1::uuid[])
		ORDER BY g.client_id, g.id FOR UPDATE`, pg.IDs(ids), pg.IDs(clients)))
	before, manual = map[domain.GroupID]storedGroup{}, map[domain.ClientID]storedGroup{}
	for _, g := range rows {
		before[g.ID] = g
		if g.Manual {
			manual[g.ClientID] = g
		}
	}
	return before, manual, err
}
