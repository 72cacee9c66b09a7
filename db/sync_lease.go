package db

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
	Client domain.ClientID
	Run    domain.SyncRunID
	// Provider, Settings and the sealed Credentials are the connection's; Provider
	// is empty where it is gone.
	Provider    domain.Directory
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

	token uuid.UUID
	life  time.Duration
}

// ErrSyncLost says that a lease ended and the run is another's, or that the run was
// ended.
var ErrSyncLost = errors.New("the lease of the sync run has ended")

type leasedRun struct {
	ClientID    domain.ClientID
	ID          domain.SyncRunID
	Provider    *domain.Directory
	Settings    *string
	Credentials []byte
	Position    string
	Stage       SyncStage
	StartedOver bool
	Deaths      int
}

// ClaimSync leases the run that has waited longest, for so long: one that is
// queued, or whose lease has ended. It is nil where none waits.
func (d *DB) ClaimSync(ctx context.Context, life time.Duration) (*SyncLease, error) {
	return d.claimSync(ctx, life, pg.SQL("coalesce(r.leased_until, '-infinity') <= ?", d.Now()))
}

func (d *DB) claimSync(ctx context.Context, life time.Duration, which pg.Query) (*SyncLease, error) {
	now, token := d.Now(), uuid.New()
	rows, err := pg.All[leasedRun](ctx, d, "claim a sync run", pg.SQL(`
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
		RETURNING r.client_id, r.id, k.provider, k.settings::text AS settings, k.credentials, r.position, r.stage,
			r.started_over, r.deaths`, which, token, now.Add(life), now))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := rows[0]
	return &SyncLease{
		Client: r.ClientID, Run: r.ID, Provider: pg.Or(r.Provider, ""), Settings: json.RawMessage(pg.Or(r.Settings, "")),
		Credentials: r.Credentials, Position: r.Position, Stage: r.Stage, StartedOver: r.StartedOver,
		Deaths: r.Deaths, token: token, life: life,
	}, nil
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
	return d.leaseUntil(ctx, l, l.token, d.Now().Add(l.life))
}

// ReleaseSync gives a lease back: the run waits for the next claim, which counts no
// death.
func (d *DB) ReleaseSync(ctx context.Context, l *SyncLease) error {
	return d.leaseUntil(ctx, l, nil, d.Now())
}

func (d *DB) leaseUntil(ctx context.Context, l *SyncLease, lease any, until time.Time) error {
	n, err := pg.Exec(ctx, d, "extend the lease of a sync run", pg.SQL(`
		UPDATE sync_runs SET lease = ?4::uuid, leased_until = ?3
		WHERE client_id = ?0 AND id = ?1 AND lease = ?2 AND status = 'running'`, l.Client, l.Run, l.token, until, lease))
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
		l.Client, l.Run, l.token, c.At.Add(l.life)))
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
	q := pg.From("sync_runs AS r").Where("r.client_id = ? AND r.id = ?", l.Client, l.Run)
	shownRun(q)
	row, err := pg.Find[syncRunRow](ctx, d, l.Run.Noun(), q)
	return row.run(), err
}
