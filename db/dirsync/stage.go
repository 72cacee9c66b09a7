package dirsync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Staging the pages of a run in sync_accounts, and checking them.

// Page is a page of a client's directory.
type Page struct {
	Accounts []domain.DirectoryAccount
	Next     string // the position after the page
	Last     bool
	Whole    bool // with this page, the whole directory was read
}

// maxPosition bounds a directory's position, in bytes.
const maxPosition = 64 << 10

// The phases of applying accounts, in their order.
const (
	phaseUnchanged = iota // nothing to do
	phaseLeave            // accounts that no longer exist, or that have no user and are not wanted
	phaseUpdate           // existing accounts with a user
	phaseRename           // accounts of phaseUpdate whose address another user has
	phaseJoin             // wanted accounts without a user
)

// wantedSQL returns the condition that the owner of an account is to be an active user (domain.AccountRecord.Wanted).
// account is the expression of the account's record, in JSON with all of its fields.
func wantedSQL(account string) string {
	return strings.ReplaceAll(`(NOT (a->>'gone')::boolean AND NOT (a->>'guest')::boolean
		AND (a->>'enabled')::boolean AND a->>'email' <> '')`, "a->", account+"->")
}

// existsSQL returns the condition that the directory still has an account, as in wantedSQL, enabled or not.
func existsSQL(account string) string { return "(NOT (" + account + "->>'gone')::boolean)" }

// phaseSQL returns the SQL expression of an account's phase: phaseUpdate, phaseJoin or phaseLeave. user is the
// expression of its current user. The user of an account is updated while the account exists, even if it is disabled.
func phaseSQL(account, user string) string {
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL AND %s THEN %d WHEN %s IS NULL AND %s THEN %d ELSE %d END",
		user, existsSQL(account), phaseUpdate, user, wantedSQL(account), phaseJoin, phaseLeave)
}

// namesSQL returns the SQL expression of the user's names, first and last, as JSON, that follow from an account's
// given, family and display name. The display name is split at its last space, and used only if there is no other name;
// one of a single word is a first name.
func namesSQL(account string) string {
	return strings.NewReplacer("a->", account+"->", "last space", `'^(.*) ([^ ]*)$'`).Replace(`CASE
		WHEN a->>'display_name' IS NULL THEN '{}' -- release 1.0 has read it
		WHEN a->>'given_name' || (a->>'family_name') <> ''
			THEN jsonb_build_object('first', a->'given_name', 'last', a->'family_name')
		WHEN a->>'display_name' ~ last space THEN jsonb_build_object(
			'first', rtrim(regexp_replace(a->>'display_name', last space, '\1')),
			'last', regexp_replace(a->>'display_name', last space, '\2'))
		ELSE jsonb_build_object('first', a->'display_name', 'last', '') END`)
}

// StagePage stores a page that a run has read and the position after it. It sets l.Position to that, l.Stage to
// Checking after the last page, and the deaths of the run to 0. It returns db.ErrLeaseLost if the lease is lost.
func StagePage(ctx context.Context, d *db.DB, l *Lease, page Page) error {
	if len(page.Next) > maxPosition {
		return fmt.Errorf("the directory's position has %d bytes", len(page.Next))
	}
	stage := Reading
	if page.Last {
		stage = Checking
	}
	err := d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		run, err := lockRun(ctx, c, l)
		if err != nil {
			return err
		}
		if err := stageAccounts(ctx, c, l.Client, page.Accounts, run.FromStart); err != nil {
			return err
		}
		return pg.Run(ctx, c, "keep the position of a sync run", pg.SQL(`
			UPDATE sync_runs SET position = ?next, stage = ?stage, whole = ?whole AND from_start, updated_at = ?now, deaths = 0
			WHERE client_id = ?client AND id = ?run`, pg.Named{
			"client": l.Client, "run": l.Run, "next": page.Next, "stage": stage, "whole": page.Whole, "now": c.At,
		}))
	})
	if err == nil {
		l.Position, l.Stage = page.Next, stage
	}
	return err
}

// stageAccounts stages accounts, except those without a valid id. Each is merged with its staged record, if the run has
// read it before, otherwise, unless fromStart, with the record that earlier runs applied. An account that did not
// change is staged as NULL with phaseUnchanged, unless an earlier run left it unsettled.
func stageAccounts(
	ctx context.Context, c *db.Change, client domain.ClientID, list []domain.DirectoryAccount, fromStart bool,
) error {
	if len(list) == 0 {
		return nil
	}
	merged := make(map[string]domain.AccountRecord, len(list))
	for i := range list {
		id := list[i].ObjectID
		if id == "" || len(id) > domain.MaxObjectID || strings.ContainsRune(id, 0) {
			continue // not a valid id of any directory
		}
		record := merged[id] // the page may have several of an account
		record.Merge(list[i].Record())
		merged[id] = record
	}
	ids := slices.Sorted(maps.Keys(merged))
	accounts := make([]string, len(ids))
	for i, id := range ids {
		accounts[i] = marshaled(merged[id])
	}

	if err := pg.PreferIndexes(ctx, c); err != nil {
		return err
	}
	return pg.Run(ctx, c, "stage accounts", pg.SQL(`
		WITH merged AS MATERIALIZED (
			SELECT p.object_id, d.user_id, d.account AS known, coalesce(d.unsettled, false) AS unsettled,
				CASE WHEN s.object_id IS NOT NULL THEN coalesce(s.account, d.account)
					WHEN ?fromStart::boolean THEN ?blank::jsonb ELSE coalesce(d.account, ?blank::jsonb) END || p.account::jsonb AS account
			FROM unnest(?ids::text[], ?accounts::text[]) AS p (object_id, account)
			LEFT JOIN sync_accounts AS s ON s.client_id = ?client AND s.object_id = p.object_id
			LEFT JOIN directory_accounts AS d ON d.client_id = ?client AND d.object_id = p.object_id
		), named AS MATERIALIZED (
			SELECT object_id, user_id, known, unsettled, account || `+namesSQL("account")+` AS account FROM merged
		)
		INSERT INTO sync_accounts (client_id, object_id, account, phase)
		SELECT ?client, object_id, CASE WHEN same THEN NULL ELSE account END,
			CASE WHEN same THEN ?phaseUnchanged ELSE `+phaseSQL("account", "user_id")+` END
		FROM (SELECT *, coalesce(account = known, false) AND NOT unsettled AS same FROM named) AS m
		ON CONFLICT (client_id, object_id) DO UPDATE SET account = excluded.account, phase = excluded.phase`,
		pg.Named{
			"client": client, "ids": ids, "accounts": accounts, "fromStart": fromStart,
			"blank": marshaled(domain.BlankAccount()), "phaseUnchanged": phaseUnchanged,
		}))
}

func marshaled(r domain.AccountRecord) string {
	text, _ := json.Marshal(r) // cannot fail: the fields are strings and booleans
	return string(text)
}

// StartOver deletes what a run has staged and makes it read the directory from the start again, because it cannot read
// at its position. expired means that the directory no longer accepts the position: StartOver then sets l.StartedOver.
func StartOver(ctx context.Context, d *db.DB, l *Lease, expired bool) error {
	err := d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if _, err := lockRun(ctx, c, l); err != nil {
			return err
		}
		return pg.Run(ctx, c, "start a sync run over", pg.SQL(`
			WITH emptied AS (
				DELETE FROM sync_accounts WHERE client_id = ?client
			)
			UPDATE sync_runs SET position = '', from_start = true, started_over = started_over OR ?expired, stage = 'reading',
				updated_at = ?now
			WHERE client_id = ?client AND id = ?run`,
			pg.Named{"client": l.Client, "run": l.Run, "now": c.At, "expired": expired}))
	})
	if err == nil {
		l.Position, l.Stage, l.StartedOver = "", Reading, l.StartedOver || expired
	}
	return err
}

// Check completes the staged accounts by what follows from them (stageMissing, stageManagers, stageAgain). It then sets
// l.Stage to Applying, and the deaths of the run to 0. If the run would deactivate too many users (domain.SyncGuarded)
// and is not forced, it instead returns the reason. Users whose status is an override are not deactivated.
func Check(ctx context.Context, d *db.DB, l *Lease) (refusal string, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		run, err := lockRun(ctx, c, l)
		if err != nil {
			return err
		}
		if err := stageMissing(ctx, c, l.Client, run.Whole); err != nil {
			return err
		}
		if err := stageManagers(ctx, c, l.Client); err != nil {
			return err
		}
		if err := stageAgain(ctx, c, l.Client); err != nil {
			return err
		}
		if refusal, err = guard(ctx, c, l.Client); err != nil || refusal != "" && !run.Force {
			return err
		}
		refusal = ""
		return pg.Run(ctx, c, "let a sync run be applied", pg.SQL(
			"UPDATE sync_runs SET stage = 'applying', updated_at = ?now, deaths = 0 WHERE client_id = ?client AND id = ?run",
			pg.Named{"client": l.Client, "run": l.Run, "now": c.At}))
	})
	if err == nil && refusal == "" {
		l.Stage = Applying
	}
	return refusal, err
}

// stageMissing stages the accounts that a read of the whole directory did not return, as gone.
func stageMissing(ctx context.Context, c *db.Change, client domain.ClientID, whole bool) error {
	if !whole {
		return nil
	}
	return pg.Run(ctx, c, "stage accounts that were not read", pg.SQL(`
		INSERT INTO sync_accounts (client_id, object_id, account, phase)
		SELECT d.client_id, d.object_id, d.account || '{"gone": true}', ?1 FROM directory_accounts AS d
		WHERE d.client_id = ?0 AND `+existsSQL("d.account")+` AND NOT EXISTS (
			SELECT 1 FROM sync_accounts AS s WHERE s.client_id = d.client_id AND s.object_id = d.object_id)`,
		client, phaseLeave))
}

// stageManagers stages the accounts whose manager has another email address than they have, or is gone. A directory
// whose runs read changes reports none of them. All accounts of a manager follow in the run that reads the manager's,
// or, if that fails after it has applied the manager's account, in the next one: the manager's account need not change
// again.
func stageManagers(ctx context.Context, c *db.Change, client domain.ClientID) error {
	if err := pg.PreferIndexes(ctx, c); err != nil { // for the rest of the transaction
		return err
	}
	return pg.Run(ctx, c, "stage accounts whose manager has changed", pg.SQL(`
		WITH latest AS MATERIALIZED (
			SELECT d.object_id, d.user_id, coalesce(s.account, d.account) AS account
			FROM directory_accounts AS d
			LEFT JOIN LATERAL (SELECT s.account FROM sync_accounts AS s
				WHERE s.client_id = d.client_id AND s.object_id = d.object_id OFFSET 0) AS s ON true
			WHERE d.client_id = ?0 AND (EXISTS ( -- otherwise nothing has changed
				SELECT 1 FROM sync_accounts WHERE client_id = ?0 AND account IS NOT NULL
			) OR EXISTS ( -- a run since the last completed one has applied a part
				SELECT 1 FROM sync_runs AS r WHERE r.client_id = ?0 AND r.status = 'failed' AND r.stage = 'applying'
					AND r.finished_at >= (SELECT coalesce(max(synced_at), '-infinity') FROM directory_connections WHERE client_id = ?0)
			))
			UNION ALL
			SELECT s.object_id, NULL, s.account FROM sync_accounts AS s
			WHERE s.client_id = ?0 AND s.account IS NOT NULL AND NOT EXISTS ( -- an account that is not known is not NULL
				SELECT 1 FROM directory_accounts AS d WHERE d.client_id = s.client_id AND d.object_id = s.object_id)
		), managed AS (
			SELECT a.object_id, a.user_id, a.account,
				CASE WHEN `+existsSQL("m.account")+` THEN m.account->>'email' ELSE '' END AS email
			FROM latest AS a, LATERAL (SELECT coalesce(
				(SELECT s.account FROM sync_accounts AS s WHERE s.client_id = ?0 AND s.object_id = a.account->>'manager'),
				(SELECT d.account FROM directory_accounts AS d WHERE d.client_id = ?0 AND d.object_id = a.account->>'manager')
			) AS account OFFSET 0) AS m
			WHERE `+existsSQL("a.account")+` AND a.account->>'manager' <> '' AND m.account IS NOT NULL
		)
		INSERT INTO sync_accounts (client_id, object_id, account, phase)
		SELECT ?0, object_id, account || jsonb_build_object('manager_email', email), `+phaseSQL("account", "user_id")+`
		FROM managed WHERE account->>'manager_email' <> email
		ON CONFLICT (client_id, object_id) DO UPDATE SET account = excluded.account, phase = excluded.phase`, client))
}

// stageAgain stages accounts that have not changed since an earlier run: those that are unsettled, disabled ones whose
// users have another address, which an earlier release left, and those that are gone and whose users are active, as
// their status is an override.
func stageAgain(ctx context.Context, c *db.Change, client domain.ClientID) error {
	return pg.Run(ctx, c, "stage unsettled accounts", pg.SQL(`
		INSERT INTO sync_accounts (client_id, object_id, account, phase)
		SELECT d.client_id, d.object_id, d.account, `+phaseSQL("d.account", "d.user_id")+`
		FROM directory_accounts AS d LEFT JOIN users AS u ON u.client_id = d.client_id AND u.id = d.user_id
		WHERE d.client_id = ?0 AND (d.unsettled
			OR `+existsSQL("d.account")+` AND NOT `+wantedSQL("d.account")+` AND d.account->>'email' NOT IN ('', u.email)
			OR NOT `+existsSQL("d.account")+` AND u.status = 'active' AND 'status' = ANY(u.overrides))
		ON CONFLICT (client_id, object_id) DO UPDATE SET account = excluded.account, phase = excluded.phase
		WHERE sync_accounts.phase = ?1`, client, phaseUnchanged))
}

// guard returns the reason why the guard stops a run that applies the staged accounts, or "" if it does not. It looks
// up the staged account of each account, as batch.read does: a join would be planned for few of them.
func guard(ctx context.Context, c *db.Change, client domain.ClientID) (refusal string, err error) {
	type counts struct{ Leaving, WithoutEmail, Users, Kept int }
	n, err := pg.One[counts](ctx, c, "count who would be deactivated", pg.SQL(`
		SELECT count(*) AS users, count(*) FILTER (WHERE kept) AS kept, count(*) FILTER (WHERE leaves) AS leaving,
			count(*) FILTER (WHERE leaves AND `+wantedSQL(`(account || '{"email": "any"}')`)+`) AS without_email
		FROM (
			SELECT s.account, o.kept, s.phase > ?1 AND NOT `+wantedSQL("s.account")+` AND NOT o.kept AS leaves
			FROM directory_accounts AS d JOIN users AS u ON u.client_id = d.client_id AND u.id = d.user_id
			CROSS JOIN LATERAL (SELECT 'status' = ANY(u.overrides) AS kept) AS o
			LEFT JOIN LATERAL (SELECT s.account, s.phase FROM sync_accounts AS s
				WHERE s.client_id = d.client_id AND s.object_id = d.object_id OFFSET 0) AS s ON true
			WHERE d.client_id = ?0 AND u.status = 'active'
		) AS a`, client, phaseUnchanged))
	if err != nil || !domain.SyncGuarded(n.Leaving, n.Users, n.Kept) {
		return "", err
	}
	var reason string
	if n.WithoutEmail > 0 {
		reason = fmt.Sprintf(" (%d of them only because their accounts have no email address or no mailbox)", n.WithoutEmail)
	}
	return fmt.Sprintf("the run would deactivate %d of the directory's %d active users%s, so nothing was changed; "+
		"check the directory and which part of it is synced. If this is intended, run \"partnerapi directory run %s --force\"",
		n.Leaving, n.Users, reason, client), nil
}
