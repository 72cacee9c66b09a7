package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A sync run until it is applied: its lease, and the table in which its pages wait.

// SyncPage is a page of a client's directory, as platform/directory has it.
type SyncPage struct {
	Accounts []domain.DirectoryAccount
	Next     string
	Last     bool
	Whole    bool
}

// maxPosition bounds a directory's position, in bytes.
const maxPosition = 64 << 10

// The phases of applying, which are also their order.
const (
	syncUnchanged = iota // nothing to do
	syncLeaving          // accounts that are gone, or neither have a user nor are to have one
	syncUpdating
	syncRenaming
	syncJoining
)

// wantedSQL is the condition that the owner of a complete account is to be an
// active user (domain.AccountRecord.Wanted).
func wantedSQL(account string) string {
	return strings.ReplaceAll(`(NOT (a->>'gone')::boolean AND NOT (a->>'guest')::boolean
		AND (a->>'enabled')::boolean AND a->>'email' <> '')`, "a->", account+"->")
}

// existsSQL is the condition that the directory still has a complete account,
// enabled or not.
func existsSQL(account string) string { return "(NOT (" + account + "->>'gone')::boolean)" }

// phaseSQL is the phase of an account with the user whom it has so far. A user
// follows an account for as long as it exists, disabled too.
func phaseSQL(account, user string) string {
	return fmt.Sprintf("CASE WHEN %[1]s IS NOT NULL AND %[2]s THEN %[3]d WHEN %[1]s IS NULL AND %[4]s THEN %[5]d ELSE %[6]d END",
		user, existsSQL(account), syncUpdating, wantedSQL(account), syncJoining, syncLeaving)
}

// StageSync keeps a page that a run read, and with it the position after the page,
// to which it moves the lease.
func (d *DB) StageSync(ctx context.Context, l *SyncLease, page SyncPage) error {
	if len(page.Next) > maxPosition {
		return fmt.Errorf("the directory's position has %d bytes", len(page.Next))
	}
	stage := SyncReading
	if page.Last {
		stage = SyncJudging
	}
	err := d.Change(ctx, func(ctx context.Context, c *Change) error {
		run, err := c.lockRun(ctx, l)
		if err != nil {
			return err
		}
		if err := c.stageAccounts(ctx, l.Client, page.Accounts, run.FromStart); err != nil {
			return err
		}
		_, err = pg.Exec(ctx, c, "keep the position of a sync run", pg.SQL(`
			UPDATE sync_runs SET position = ?2, stage = ?3, whole = ?4 AND from_start, updated_at = ?5, deaths = 0
			WHERE client_id = ?0 AND id = ?1`, l.Client, l.Run, page.Next, stage, page.Whole, c.At))
		return err
	})
	if err == nil {
		l.Position, l.Stage = page.Next, stage
	}
	return err
}

// stageAccounts stages accounts, each merged with what was known of it: what the
// run read before, or else, in a delta, what earlier runs applied.
func (c *Change) stageAccounts(
	ctx context.Context, client domain.ClientID, list []domain.DirectoryAccount, fromStart bool,
) error {
	if len(list) == 0 {
		return nil
	}
	merged := make(map[string]domain.AccountRecord, len(list))
	for i := range list {
		id := list[i].ObjectID
		if id == "" || len(id) > domain.MaxObjectID || strings.ContainsRune(id, 0) {
			continue // no directory has such ids
		}
		record := merged[id]
		record.Merge(list[i].Record())
		merged[id] = record
	}
	ids := slices.Sorted(maps.Keys(merged))
	accounts := make([]string, len(ids))
	for i, id := range ids {
		accounts[i] = marshalled(merged[id])
	}

	if err := lookUpByKey(ctx, c); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, c, "stage accounts", pg.SQL(`
		WITH merged AS MATERIALIZED (
			SELECT p.object_id, d.user_id, d.account AS known, coalesce(d.unsettled, false) AS unsettled,
				CASE WHEN s.object_id IS NOT NULL THEN coalesce(s.account, d.account)
					WHEN ?3::boolean THEN ?4::jsonb ELSE coalesce(d.account, ?4::jsonb) END || p.account::jsonb AS account
			FROM unnest(?1::text[], ?2::text[]) AS p (object_id, account)
			LEFT JOIN sync_accounts AS s ON s.client_id = ?0 AND s.object_id = p.object_id
			LEFT JOIN directory_accounts AS d ON d.client_id = ?0 AND d.object_id = p.object_id
		)
		INSERT INTO sync_accounts (client_id, object_id, account, phase)
		SELECT ?0, object_id, CASE WHEN same THEN NULL ELSE account END,
			CASE WHEN same THEN ?5 ELSE `+phaseSQL("account", "user_id")+` END
		FROM (SELECT *, coalesce(account = known, false) AND NOT unsettled AS same FROM merged) AS m
		ON CONFLICT (client_id, object_id) DO UPDATE SET account = excluded.account, phase = excluded.phase`,
		client, ids, accounts, fromStart, marshalled(domain.BlankAccount()), syncUnchanged))
	return err
}

// lookUpByKey has the rest of the transaction find rows by their keys. Tables in which
// things are staged grow from nothing within a run, ahead of their statistics, by which
// PostgreSQL would read them whole each time.
func lookUpByKey(ctx context.Context, r pg.Runner) error {
	_, err := pg.Exec(ctx, r, "look rows up by their keys", pg.SQL(`
		SELECT set_config(name, 'off', true)
		FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan']) AS name`))
	return err
}

func marshalled(r domain.AccountRecord) string {
	text, _ := json.Marshal(r) // texts and flags: cannot fail
	return string(text)
}

// StartSyncOver makes a run read everything from the beginning, for the directory
// has forgotten its position. It reports false where it did so before.
func (d *DB) StartSyncOver(ctx context.Context, l *SyncLease) (bool, error) {
	if l.StartedOver {
		return false, nil
	}
	err := d.Change(ctx, func(ctx context.Context, c *Change) error {
		if _, err := c.lockRun(ctx, l); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, c, "start a sync run over", pg.SQL(`
			WITH emptied AS (
				DELETE FROM sync_accounts WHERE client_id = ?0
			)
			UPDATE sync_runs SET position = '', from_start = true, started_over = true, stage = 'reading', updated_at = ?2
			WHERE client_id = ?0 AND id = ?1`, l.Client, l.Run, c.At))
		return err
	})
	if err == nil {
		l.Position, l.Stage, l.StartedOver = "", SyncReading, true
	}
	return err == nil, err
}

// JudgeSync adds to what a run has read the accounts that a reading of everything
// did not name, those that earlier runs could not settle, and disabled ones whose
// users the release before left with an older address. It returns why the run must
// not go on; empty where it may.
func (d *DB) JudgeSync(ctx context.Context, l *SyncLease) (refusal string, err error) {
	type judged struct{ Leaving, Users int }
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		run, err := c.lockRun(ctx, l)
		if err != nil {
			return err
		}
		_, err = pg.Exec(ctx, c, "stage accounts that were not read", pg.SQL(`
			INSERT INTO sync_accounts (client_id, object_id, account, phase)
			SELECT d.client_id, d.object_id, d.account || '{"gone": true}', ?2
			FROM directory_accounts AS d
			WHERE ?1::boolean AND d.client_id = ?0 AND NOT (d.account->>'gone')::boolean AND NOT EXISTS (
				SELECT 1 FROM sync_accounts AS s WHERE s.client_id = d.client_id AND s.object_id = d.object_id)
			UNION ALL
			SELECT d.client_id, d.object_id, d.account, `+phaseSQL("d.account", "d.user_id")+`
			FROM directory_accounts AS d LEFT JOIN users AS u ON u.client_id = d.client_id AND u.id = d.user_id
			WHERE d.client_id = ?0 AND `+existsSQL("d.account")+` AND (d.unsettled
				OR NOT `+wantedSQL("d.account")+` AND d.account->>'email' NOT IN ('', u.email))
				AND (NOT ?1::boolean OR EXISTS (
					SELECT 1 FROM sync_accounts AS s WHERE s.client_id = d.client_id AND s.object_id = d.object_id))
			ON CONFLICT (client_id, object_id) DO UPDATE SET account = excluded.account, phase = excluded.phase
			WHERE sync_accounts.phase = ?3`, l.Client, run.Whole, syncLeaving, syncUnchanged))
		if err != nil {
			return err
		}

		n, err := pg.One[judged](ctx, c, "count who would be deactivated", pg.SQL(`
			SELECT count(*) AS users, count(*) FILTER (
				WHERE s.phase > ?1 AND NOT `+wantedSQL("s.account")+` AND NOT 'status' = ANY(u.overrides)) AS leaving
			FROM directory_accounts AS d JOIN users AS u ON u.client_id = d.client_id AND u.id = d.user_id
			LEFT JOIN sync_accounts AS s ON s.client_id = d.client_id AND s.object_id = d.object_id
			WHERE d.client_id = ?0 AND u.status = 'active'`, l.Client, syncUnchanged))
		if err != nil {
			return err
		}
		if !run.Force && domain.SyncGuarded(n.Leaving, n.Users) {
			refusal = fmt.Sprintf("the run would deactivate %d of the directory's %d active users, so nothing was changed: "+
				"check the directory and what of it is synced; if this is meant, run \"partnerapi directory run %s --force\"",
				n.Leaving, n.Users, l.Client)
			return nil
		}
		_, err = pg.Exec(ctx, c, "let a sync run be applied", pg.SQL(
			"UPDATE sync_runs SET stage = 'applying', updated_at = ?2, deaths = 0 WHERE client_id = ?0 AND id = ?1",
			l.Client, l.Run, c.At))
		return err
	})
	if err == nil && refusal == "" {
		l.Stage = SyncApplying
	}
	return refusal, err
}

// A sync run is worked on under a lease, as mails of the outbox are. It reads the
// directory into sync_accounts, a page in each transaction with the position after
// it; judges what was read as a whole; and applies it, a batch in each
// transaction. So a run that was cut short goes on where it was, once its lease
// has ended.

// SyncStage is how far a run is.
type SyncStage string

// The stages, in their order.
const (
	SyncReading  SyncStage = "reading"
	SyncJudging  SyncStage = "judging"
	SyncApplying SyncStage = "applying"
)

// SyncLease is the right to work on a run.
type SyncLease struct {
	Client domain.ClientID  `bun:"client_id"`
	Run    domain.SyncRunID `bun:"id"`
	// Provider, Settings and the sealed Credentials are the connection's; Provider
	// is empty where it is gone.
	Provider    domain.Directory `bun:"provider,nullzero"`
	Settings    json.RawMessage
	Credentials []byte
	// Position is where reading continues.
	Position string
	Stage    SyncStage
	// StartedOver says that the directory had forgotten a position before.
	StartedOver bool
	// Deaths is how many processes in a row lost the lease without progress, as those
	// do that die.
	Deaths int
	// Token is that of the claim, and Life how long the lease lasts.
	Token uuid.UUID     `bun:"lease"`
	Life  time.Duration `bun:"-"`
}

// ErrSyncLost says that a lease ended and the run is another's, or that the run was
// ended.
var ErrSyncLost = errors.New("the lease of the sync run has ended")

// ClaimSync leases the run that has waited longest, for so long: one that is
// queued, or whose lease has ended. It is nil where none waits. A client has one run at
// most, so clients take no turns.
func (d *DB) ClaimSync(ctx context.Context, life time.Duration) (lease *SyncLease, err error) {
	err = d.Claim(ctx, func(ctx context.Context) error {
		lease, err = d.claimSync(ctx, life, pg.SQL(
			"coalesce(r.leased_until, '-infinity') <= ? AND r.client_id NOT IN ("+Resting+")", d.Now()))
		return err
	})
	return lease, err
}

func (d *DB) claimSync(ctx context.Context, life time.Duration, which pg.Query) (*SyncLease, error) {
	now := d.Now()
	rows, err := pg.All[SyncLease](ctx, d, "claim a sync run", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT r.client_id, r.id FROM sync_runs AS r JOIN clients AS c ON c.id = r.client_id
			WHERE r.status IN ('queued', 'running') AND c.archived_at IS NULL AND (?0)
			ORDER BY r.queued_at LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED
		)
		UPDATE sync_runs AS r SET status = 'running', lease = ?1, leased_until = ?2,
			started_at = coalesce(r.started_at, ?3), updated_at = ?3, deaths = r.deaths + (r.lease IS NOT NULL)::integer,
			position = CASE r.status WHEN 'queued' THEN coalesce(k.position, '') ELSE r.position END,
			from_start = CASE r.status WHEN 'queued' THEN k.position IS NULL ELSE r.from_start END
		FROM chosen LEFT JOIN directory_connections AS k ON k.client_id = chosen.client_id
		WHERE r.client_id = chosen.client_id AND r.id = chosen.id
		RETURNING r.client_id, r.id, k.provider, k.settings, k.credentials, r.position, r.stage,
			r.started_over, r.deaths, r.lease`, which, uuid.New(), now.Add(life), now))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	rows[0].Life = life
	return &rows[0], nil
}

// StartSync begins a run of a connected client at once, under a lease of the
// caller's. force passes the guard. Conflict where a run is open, or the client
// has no directory.
func (d *DB) StartSync(
	ctx context.Context, client domain.ClientID, force bool, life time.Duration,
) (lease *SyncLease, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.Lock(SyncLocks)
		connected, err := pg.One[bool](ctx, c, "look for a directory", pg.SQL(
			"SELECT EXISTS (SELECT 1 FROM directory_connections WHERE client_id = ?)", client))
		if err == nil && !connected {
			err = errNoDirectory()
		}
		if err != nil {
			return err
		}
		run, err := c.insertRun(ctx, client, domain.SyncByCommand, force)
		if err == nil {
			err = c.refuseResting(ctx, []domain.ClientID{client})
		}
		if err != nil {
			return err
		}
		lease, err = d.claimSync(ctx, life, pg.SQL("r.client_id = ? AND r.id = ?", client, run.ID))
		if err == nil && lease == nil {
			err = domain.ErrNotFound(client.Noun()) // it is archived
		}
		return err
	})
	return lease, err
}

// ExtendSync makes a lease last its life from now on. ErrSyncLost where it has
// ended.
func (d *DB) ExtendSync(ctx context.Context, l *SyncLease) error {
	return d.leaseUntil(ctx, l, l.Token, d.Now().Add(l.Life))
}

// ReleaseSync gives a lease back: the run waits for the next claim, which counts no
// death.
func (d *DB) ReleaseSync(ctx context.Context, l *SyncLease) error {
	return d.leaseUntil(ctx, l, nil, d.Now())
}

func (d *DB) leaseUntil(ctx context.Context, l *SyncLease, lease any, until time.Time) error {
	n, err := pg.Exec(ctx, d, "extend the lease of a sync run", pg.SQL(`
		UPDATE sync_runs SET lease = ?4::uuid, leased_until = ?3
		WHERE client_id = ?0 AND id = ?1 AND lease = ?2 AND status = 'running'`, l.Client, l.Run, l.Token, until, lease))
	return l.held(n, err)
}

func (l *SyncLease) held(n int, err error) error {
	if err == nil && n == 0 {
		err = ErrSyncLost
	}
	return err
}

// lockedRun is what a transaction of a run needs to know of it.
type lockedRun struct {
	Skipped   int
	Force     bool
	FromStart bool
	Whole     bool
}

// lockRun locks the run of a lease and extends the lease. ErrSyncLost where it is
// another's by now.
func (c *Change) lockRun(ctx context.Context, l *SyncLease) (lockedRun, error) {
	c.Lock(SyncLocks)
	rows, err := pg.All[lockedRun](ctx, c, "lock a sync run", pg.SQL(`
		UPDATE sync_runs SET leased_until = ?3
		WHERE client_id = ?0 AND id = ?1 AND lease = ?2 AND status = 'running'
		RETURNING jsonb_array_length(skipped) AS skipped, force, from_start, whole`,
		l.Client, l.Run, l.Token, c.At.Add(l.Life)))
	if err := l.held(len(rows), err); err != nil {
		return lockedRun{}, err
	}
	return rows[0], nil
}

// FinishSync completes a run whose accounts are applied: the next one begins where
// this one ended.
func (d *DB) FinishSync(ctx context.Context, l *SyncLease) (run domain.SyncRun, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		if _, err := c.lockRun(ctx, l); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, c, "complete a sync run", pg.SQL(`
			WITH done AS (
				UPDATE sync_runs SET status = 'completed', finished_at = ?2, updated_at = ?2, lease = NULL, leased_until = NULL,
					unchanged = greatest(0, (
						SELECT count(*) FROM directory_accounts AS d
						WHERE d.client_id = ?0 AND d.user_id IS NOT NULL AND `+wantedSQL("d.account")+`
					) - created - updated + updated_inactive - merged)
				WHERE client_id = ?0 AND id = ?1 RETURNING position
			), emptied AS (
				DELETE FROM sync_accounts WHERE client_id = ?0
			)
			UPDATE directory_connections SET position = nullif(done.position, ''), synced_at = ?2 FROM done
			WHERE client_id = ?0`, l.Client, l.Run, c.At))
		c.ClientObjectEvent(domain.SyncDone, l.Client, l.Run.UUID())
		if err != nil {
			return err
		}
		run, err = c.syncRun(ctx, l)
		return err
	})
	return run, err
}

// maxFailure is how much is kept of why a run failed, in characters.
const maxFailure = 500

// FailSync ends a run as failed, and says why. The next one begins where this one
// did.
func (d *DB) FailSync(ctx context.Context, l *SyncLease, failure string) (run domain.SyncRun, err error) {
	if runes := []rune(failure); len(runes) > maxFailure {
		failure = string(runes[:maxFailure-1]) + "…"
	}
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		if _, err := c.lockRun(ctx, l); err != nil {
			return err
		}
		if err := c.failRuns(ctx, l.Client, failure); err != nil {
			return err
		}
		run, err = c.syncRun(ctx, l)
		return err
	})
	return run, err
}

// failRuns ends the open run of a client, if there is one, as failed.
func (c *Change) failRuns(ctx context.Context, client domain.ClientID, failure string) error {
	c.Lock(SyncLocks)
	ids, err := pg.All[domain.SyncRunID](ctx, c, "fail a sync run", pg.SQL(`
		WITH emptied AS (
			DELETE FROM sync_accounts WHERE client_id = ?0
		)
		UPDATE sync_runs SET status = 'failed', error = ?1, finished_at = ?2, updated_at = ?2,
			started_at = coalesce(started_at, ?2), lease = NULL, leased_until = NULL
		WHERE client_id = ?0 AND status IN ('queued', 'running') RETURNING id`, client, failure, c.At))
	for _, id := range ids {
		c.ClientObjectEvent(domain.SyncStopped, client, id.UUID())
	}
	return err
}

func (d *DB) syncRun(ctx context.Context, l *SyncLease) (domain.SyncRun, error) {
	row, err := pg.Find[syncRunRow](ctx, d, l.Run.Noun(),
		pg.Rows[syncRunRow]().Where("r.client_id = ? AND r.id = ?", l.Client, l.Run))
	return row.run(), err
}
