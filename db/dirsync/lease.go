package dirsync

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A sync run is executed under a lease, like the emails of the outbox. It reads the directory into sync_accounts, one
// page per transaction, together with the position after the page. Then it checks the staged accounts as a whole, and
// applies them, one batch per transaction. So an interrupted run continues from its position once its lease has
// expired.

// Stage is the current stage of a run.
type Stage string

// The stages, in their order.
const (
	Reading  Stage = "reading"
	Checking Stage = "judging"
	Applying Stage = "applying"
)

// Lease is the right to work on a run.
type Lease struct {
	Client domain.ClientID  `bun:"client_id"`
	Run    domain.SyncRunID `bun:"id"`
	// Provider, Settings and the sealed Credentials are those of the connection. Provider is empty if the connection
	// was deleted.
	Provider    domain.Directory `bun:"provider,nullzero"`
	Settings    json.RawMessage
	Credentials []byte
	// Position is the directory's position from which reading continues.
	Position string
	Stage    Stage
	// StartedOver is true if the run has started over (StartOver).
	StartedOver bool
	// Deaths is the number of consecutive leases of the run that expired without progress, for example because the
	// process died.
	Deaths int
	// Token is the token of the claim, and Life the duration of the lease.
	Token uuid.UUID     `bun:"lease"`
	Life  time.Duration `bun:"-"`
}

// Claim leases the oldest run that is queued or whose lease has expired, for the duration life. It returns nil if there
// is none. A client has at most one open run, so clients need not take turns.
func Claim(ctx context.Context, d *db.DB, life time.Duration) (lease *Lease, err error) {
	err = d.Claim(ctx, func(ctx context.Context) error {
		lease = nil
		now, ok := d.ClaimTime(life)
		if !ok {
			return nil
		}
		lease, err = claim(ctx, d, life, pg.SQL(
			"coalesce(r.leased_until, '-infinity') <= ? AND r.client_id NOT IN ("+db.SuspendedClients+")", now))
		return err
	})
	return lease, err
}

// claim leases the oldest open run, alias r, that matches a condition. It returns nil if there is none. A queued run
// begins at the position of the connection. It must be called in a transaction. Taking over an expired lease adds to
// the run's deaths.
func claim(ctx context.Context, d *db.DB, life time.Duration, condition pg.Query) (*Lease, error) {
	now, err := d.Stamp(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pg.All[Lease](ctx, d, "claim a sync run", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT r.client_id, r.id FROM sync_runs AS r JOIN clients AS c ON c.id = r.client_id
			WHERE r.status IN ('queued', 'running') AND c.archived_at IS NULL AND (?condition)
			ORDER BY r.queued_at LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED
		)
		UPDATE sync_runs AS r SET status = 'running', lease = ?lease, leased_until = ?until,
			started_at = coalesce(r.started_at, ?now), updated_at = ?now, deaths = r.deaths + (r.lease IS NOT NULL)::integer,
			position = CASE r.status WHEN 'queued' THEN coalesce(k.position, '') ELSE r.position END,
			from_start = CASE r.status WHEN 'queued' THEN k.position IS NULL ELSE r.from_start END
		FROM chosen LEFT JOIN directory_connections AS k ON k.client_id = chosen.client_id
		WHERE r.client_id = chosen.client_id AND r.id = chosen.id
		RETURNING r.client_id, r.id, k.provider, k.settings, k.credentials, r.position, r.stage,
			r.started_over, r.deaths, r.lease`,
		pg.Named{"condition": condition, "lease": uuid.New(), "until": now.Add(life), "now": now}))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	rows[0].Life = life
	return &rows[0], nil
}

// Start inserts a run of a client and leases it to the caller. With force the run may deactivate any number of users.
// It returns Conflict if a run is open or the client has no directory, NotFound if the client is archived, and
// Unavailable if it is suspended.
func Start(
	ctx context.Context, d *db.DB, client domain.ClientID, force bool, life time.Duration,
) (lease *Lease, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.SyncLocks)
		run, err := insertRun(ctx, c, client, domain.SyncByCommand, force)
		if err == nil {
			err = c.RejectSuspended(ctx, []domain.ClientID{client})
		}
		if err != nil {
			return err
		}
		lease, err = claim(ctx, d, life, pg.SQL("r.client_id = ? AND r.id = ?", client, run.ID))
		if err == nil && lease == nil {
			err = domain.ErrNotFound(client.Noun()) // the client is archived
		}
		return err
	})
	return lease, err
}

// Extend makes a lease end after its life from now. It returns db.ErrLeaseLost if the lease is lost.
func Extend(ctx context.Context, d *db.DB, l *Lease) error {
	return setLease(ctx, d, l, l.Token, d.Now().Add(l.Life))
}

// Release gives up a lease, so that any process may claim the run at once. It does not add to Deaths. It returns
// db.ErrLeaseLost if the lease is lost.
func Release(ctx context.Context, d *db.DB, l *Lease) error {
	return setLease(ctx, d, l, nil, d.Now())
}

// setLease replaces the lease's token, l.Token, and its end. If next is nil, no process holds the run. It returns
// db.ErrLeaseLost if another process has the lease, or the run has ended.
func setLease(ctx context.Context, d *db.DB, l *Lease, next any, until time.Time) error {
	return pg.RunOr(ctx, d, db.ErrLeaseLost, "change the lease of a sync run", pg.SQL(`
		UPDATE sync_runs SET lease = ?next::uuid, leased_until = ?until
		WHERE client_id = ?client AND id = ?run AND lease = ?token AND status = 'running'`, pg.Named{
		"client": l.Client, "run": l.Run, "token": l.Token, "next": next, "until": until,
	}))
}

// lockedRun holds the columns of a run that its transactions need.
type lockedRun struct {
	Skipped   int  // the number of stored skipped accounts
	Force     bool // Check is skipped
	FromStart bool // reading began at the start, not at the position of an earlier run
	Whole     bool // the whole directory was read
}

// lockRun locks the run of a lease and extends the lease. It returns db.ErrLeaseLost if that is lost or the run ended.
func lockRun(ctx context.Context, c *db.Change, l *Lease) (lockedRun, error) {
	c.WillLock(db.SyncLocks)
	run, err := pg.One[lockedRun](ctx, c, "lock a sync run", pg.SQL(`
		UPDATE sync_runs SET leased_until = ?until
		WHERE client_id = ?client AND id = ?run AND lease = ?lease AND status = 'running'
		RETURNING jsonb_array_length(skipped) AS skipped, force, from_start, whole`,
		pg.Named{"client": l.Client, "run": l.Run, "lease": l.Token, "until": c.At.Add(l.Life)}))
	if errors.Is(err, pg.ErrNoRow) {
		err = db.ErrLeaseLost
	}
	return run, err
}

// Finish completes a run that was applied, deletes its staged accounts, and counts the accounts without an email
// address. The next run continues from its position.
// unchanged becomes the number of wanted accounts with a user that the run did not create, update or merge; updated
// also counts accounts that are not wanted (updated_inactive). Finish returns db.ErrLeaseLost if the lease is lost.
func Finish(ctx context.Context, d *db.DB, l *Lease) (run domain.SyncRun, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if _, err := lockRun(ctx, c, l); err != nil {
			return err
		}
		err := pg.Run(ctx, c, "complete a sync run", pg.SQL(`
			WITH done AS (
				UPDATE sync_runs SET status = 'completed', finished_at = ?now, updated_at = ?now, lease = NULL, leased_until = NULL,
					without_email = (
						SELECT count(*) FROM directory_accounts AS d WHERE d.client_id = ?client AND `+existsSQL("d.account")+`
							AND NOT (d.account->>'guest')::boolean AND d.account->>'email' = ''
					), unchanged = greatest(0, (
						SELECT count(*) FROM directory_accounts AS d
						WHERE d.client_id = ?client AND d.user_id IS NOT NULL AND `+wantedSQL("d.account")+`
					) - created - updated + updated_inactive - merged)
				WHERE client_id = ?client AND id = ?run RETURNING position
			), emptied AS (
				DELETE FROM sync_accounts WHERE client_id = ?client
			)
			UPDATE directory_connections SET position = nullif(done.position, ''), synced_at = ?now FROM done
			WHERE client_id = ?client`, pg.Named{"client": l.Client, "run": l.Run, "now": c.At}))
		c.ClientObjectEvent(domain.SyncDone, l.Client, l.Run.UUID())
		if err != nil {
			return err
		}
		run, err = readRun(ctx, c.DB, l)
		return err
	})
	return run, err
}

// maxFailure bounds the stored reason of a failed run, in characters.
const maxFailure = 500

// Fail ends a run as failed, and returns it. failure is the reason, which is cut to maxFailure. The next run begins at
// the same position as this one. Fail returns db.ErrLeaseLost if the lease is lost.
func Fail(ctx context.Context, d *db.DB, l *Lease, failure string) (run domain.SyncRun, err error) {
	if runes := []rune(failure); len(runes) > maxFailure {
		failure = string(runes[:maxFailure-1]) + "…"
	}
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if _, err := lockRun(ctx, c, l); err != nil {
			return err
		}
		if err := failRuns(ctx, c, l.Client, failure); err != nil {
			return err
		}
		run, err = readRun(ctx, c.DB, l)
		return err
	})
	return run, err
}

// failRuns ends the open run of a client, if there is one, as failed, and deletes its staged accounts.
func failRuns(ctx context.Context, c *db.Change, client domain.ClientID, failure string) error {
	c.WillLock(db.SyncLocks)
	ids, err := pg.All[domain.SyncRunID](ctx, c, "fail a sync run", pg.SQL(`
		WITH emptied AS (
			DELETE FROM sync_accounts WHERE client_id = ?client
		)
		UPDATE sync_runs SET status = 'failed', error = ?failure, finished_at = ?now, updated_at = ?now,
			started_at = coalesce(started_at, ?now), lease = NULL, leased_until = NULL
		WHERE client_id = ?client AND status IN ('queued', 'running') RETURNING id`,
		pg.Named{"client": client, "failure": failure, "now": c.At}))
	for _, id := range ids {
		c.ClientObjectEvent(domain.SyncStopped, client, id.UUID())
	}
	return err
}

func readRun(ctx context.Context, d *db.DB, l *Lease) (domain.SyncRun, error) {
	return pg.Find[domain.SyncRun](ctx, d, l.Run.Noun(),
		pg.From("sync_runs AS r").ColumnExpr(db.SelectSyncRun).Apply(pg.Where("r.client_id = ? AND r.id = ?", l.Client, l.Run)))
}
