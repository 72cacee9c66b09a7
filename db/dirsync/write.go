package dirsync

import (
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// findGroups sets s.groups to the groups of the accounts, and inserts missing ones. It never takes a Manual group.
func (s *batch) findGroups(ctx context.Context, d domain.Directory) error {
	names := pg.MapRows(s.rows, func(r *stagedAccount) string { return r.GroupName(d) })
	slices.Sort(names)
	rows, err := pg.All[domain.Group](ctx, s, "find groups", pg.SQL(`
		WITH found AS MATERIALIZED (
			SELECT DISTINCT ON (name) id, name FROM groups
			WHERE client_id = ?client AND NOT manual AND name = ANY(?names::text[]) ORDER BY name, created_at, id
		), made AS (
			INSERT INTO groups (client_id, id, name, manual, created_at)
			SELECT ?client, uuid_v7(?at), name, false, ?at FROM unnest(?names::text[]) AS n (name)
			WHERE name NOT IN (SELECT name FROM found) RETURNING id, name
		)
		SELECT id, name FROM found UNION ALL SELECT id, name FROM made`,
		pg.Named{"client": s.client, "names": slices.Compact(names), "at": s.At}))
	s.groups = pg.Index(rows, func(g *domain.Group) (string, domain.GroupID) { return g.Name, g.ID })
	return err
}

// write writes the batch and the counts of the run, and adds the effects to the change. It sets deaths, the number of
// leases that expired without progress, to 0. The run stores the first n skipped accounts.
func (s *batch) write(ctx context.Context, l *Lease, n int) error {
	if err := s.writeChanged(ctx); err != nil {
		return err
	}
	if err := s.InsertUsers(ctx, s.created); err != nil {
		return err
	}
	if err := s.writeLinks(ctx); err != nil {
		return err
	}
	err := pg.Run(ctx, s, "count the accounts of a sync run", pg.SQL(`
		UPDATE sync_runs SET created = created + ?created, updated = updated + ?updated, deactivated = deactivated + ?deactivated,
			merged = merged + ?merged, skipped = skipped || ?skipped::jsonb, updated_at = ?now, updated_inactive = updated_inactive + ?updatedInactive,
			deaths = 0
		WHERE client_id = ?client AND id = ?run`, pg.Named{
		"client": l.Client, "run": l.Run, "created": s.counts.Created,
		"updated": s.counts.Updated + s.updatedInactive, "deactivated": s.counts.Deactivated,
		"merged": s.counts.Merged, "updatedInactive": s.updatedInactive, "now": s.At,
		"skipped": append([]domain.SkippedAccount{}, s.skipped[:n]...), // in JSON never null
	}))
	if err != nil {
		return err
	}
	s.addEffects()
	return nil
}

// writeChanged updates users, after ChangeEmails for changed addresses, which may pass from one user to another.
func (s *batch) writeChanged(ctx context.Context) error {
	if len(s.changed) == 0 {
		return nil
	}
	var renamed, respelled [][16]byte
	users := make([]domain.User, len(s.changed))
	for i, u := range s.changed {
		users[i] = u.after
		users[i].UpdatedAt = domain.Later(u.after.UpdatedAt, s.At)
		if u.before.Email != u.after.Email {
			renamed = append(renamed, u.after.ID)
			if domain.EmailKey(u.before.Email) == domain.EmailKey(u.after.Email) {
				respelled = append(respelled, u.after.ID)
			}
		}
	}
	if err := s.ChangeEmails(ctx, "users", renamed, respelled); err != nil {
		return err
	}
	return s.UpdateUsers(ctx, users)
}

// writeLinks stores the accounts in directory_accounts and deletes them from sync_accounts. It first unlinks the users
// in unlinked from their former accounts. It moves the accounts in toRename to phaseRename. The copies of the lists are
// never nil, which would be NULL.
func (s *batch) writeLinks(ctx context.Context) error {
	if len(s.unlinked) > 0 {
		err := pg.Run(ctx, s, "unlink users from their accounts", pg.SQL(
			"UPDATE directory_accounts SET user_id = NULL WHERE client_id = ? AND user_id = ANY(?::uuid[])",
			s.client, pg.IDs(s.unlinked)))
		if err != nil {
			return err
		}
	}
	if len(s.links)+len(s.toRename) == 0 {
		return nil
	}
	return pg.Run(ctx, s, "store accounts", pg.SQL(`
		WITH kept AS (
			INSERT INTO directory_accounts (client_id, object_id, account, user_id, unsettled)
			SELECT ?client, object_id, account, user_id, unsettled FROM json_populate_recordset(NULL::directory_accounts, ?links::json)
			ON CONFLICT (client_id, object_id) DO UPDATE SET
				account = excluded.account, user_id = excluded.user_id, unsettled = excluded.unsettled
			RETURNING object_id
		), later AS (
			UPDATE sync_accounts SET phase = ?phaseRename WHERE client_id = ?client AND object_id = ANY(?toRename::text[])
		)
		DELETE FROM sync_accounts AS s USING kept WHERE s.client_id = ?client AND s.object_id = kept.object_id`,
		pg.Named{
			"client":      s.client,
			"links":       append([]accountLink{}, s.links...),
			"toRename":    append([]string{}, s.toRename...),
			"phaseRename": phaseRename,
		}))
}

// addEffects adds the effects and events of created and changed users to the change.
func (s *batch) addEffects() {
	for i := range s.created {
		s.UserChanged(nil, &s.created[i])
		s.UserEvent(domain.UserCreated, s.created[i].Key())
	}
	for i := range s.changed {
		u := &s.changed[i]
		s.UserChanged(&u.before, &u.after)
		s.UserUpdated(&u.before, &u.after)
	}
}
