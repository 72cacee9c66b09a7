// Package dirsync stores the connections of clients to directories, and the runs that sync users from them.
// platform/directory executes a run: it claims the run under a lease, stages the accounts that it reads from the
// directory, checks the result as a whole, and applies it in batches.
package dirsync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// errNoDirectory returns the Conflict of a client without a connection to a directory.
func errNoDirectory() *domain.Error {
	return domain.ErrConflict("directory", "directory sync is not configured for this client")
}

// Runs reads a page of the client's runs, the newest first; if since is not nil, only those that changed since then.
func Runs(
	ctx context.Context, t *db.Tenant, since *time.Time, w domain.Window,
) (domain.Slice[domain.SyncRun], error) {
	k := pg.ByTime("r.queued_at", "r.id", func(r *domain.SyncRun) (time.Time, domain.SyncRunID) { return r.QueuedAt, r.ID })
	k.Table, k.Select = "sync_runs AS r", func(q *bun.SelectQuery) { q.ColumnExpr(db.SelectSyncRun) }
	k.Desc, k.OneIndex = true, since == nil // with since, the best plan depends on its value
	k.Where.Add("r.client_id = ?", t.ID)
	delta, err := pg.DeltaOf(ctx, t.DB().DB, since, &w)
	if err != nil {
		return domain.Slice[domain.SyncRun]{}, err
	}
	k.Where.Changed(delta, "r.updated_at")
	return pg.CountedPage(ctx, t.DB(), k, w)
}

// Request queues a run for a caller. It returns Conflict if the client has no directory or a run is open, and
// RateLimited within an hour of the last request. The client must be locked (LockTenant).
func Request(ctx context.Context, t *db.Tenant, c *db.Change) (domain.SyncRun, error) {
	type state struct {
		Connected, Open bool
		Last            *time.Time
	}
	s, err := pg.One[state](ctx, c, "look at the client's directory", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM directory_connections WHERE client_id = ?client) AS connected,
			EXISTS (SELECT 1 FROM sync_runs WHERE client_id = ?client AND status IN ('queued', 'running')) AS open,
			(SELECT max(queued_at) FROM sync_runs WHERE client_id = ?client AND trigger = ?syncByAPI AND queued_at > ?since) AS last`,
		pg.Named{"client": t.ID, "syncByAPI": domain.SyncByAPI, "since": c.At.Add(-domain.SyncRequestEvery)}))
	switch {
	case err != nil:
		return domain.SyncRun{}, err
	case !s.Connected:
		return domain.SyncRun{}, errNoDirectory()
	case s.Open:
		return domain.SyncRun{}, db.Clash("sync_runs_open")
	case s.Last != nil:
		return domain.SyncRun{}, &domain.Error{
			Code: domain.RateLimited, Object: domain.SyncRunID{}.Noun(),
			RetryAfter: s.Last.Add(domain.SyncRequestEvery).Sub(c.At),
			Message:    "a sync of this client was requested within the last hour; try again later",
		}
	}
	return insertRun(ctx, c, t.ID, domain.SyncByAPI, false /* force */)
}

// insertRun inserts a queued run. It returns Conflict if the client has no directory or, by the unique index
// sync_runs_open, if a run is open. With force the run may deactivate any number of users.
func insertRun(
	ctx context.Context, c *db.Change, client domain.ClientID, trigger domain.SyncTrigger, force bool,
) (domain.SyncRun, error) {
	run := domain.SyncRun{
		ID: db.NewID[domain.SyncRunKind](), Client: client, Status: domain.SyncQueued, Trigger: trigger, QueuedAt: c.At,
	}
	err := pg.RunOr(ctx, c, errNoDirectory(), "queue a sync run", pg.SQL(`
		INSERT INTO sync_runs (client_id, id, status, trigger, force, queued_at, updated_at)
		SELECT client_id, ?id, ?status, ?trigger, ?force, ?now::timestamptz, ?now
		FROM directory_connections WHERE client_id = ?client`, pg.Named{
		"client": client, "id": run.ID, "status": run.Status, "trigger": trigger, "force": force, "now": c.At,
	}))
	return run, err
}

// scheduleBatch bounds the runs that one call of Schedule queues.
const scheduleBatch = 100

// slotSQL is the SQL expression of the client's next scheduled time after ?now. The times are ?every seconds apart.
// Their offset, slot.at, is derived from the client's id, to spread the clients.
const slotSQL = `to_timestamp((floor((extract(epoch FROM ?now::timestamptz) - slot.at) / ?every) + 1) * ?every + slot.at)`

// slotOf returns an SQL LATERAL item, alias slot, with the client's offset in slotSQL: its hash, which may be negative,
// modulo ?every.
func slotOf(client string) string {
	return fmt.Sprintf("LATERAL (SELECT mod(mod(hashtextextended(%s::text, 0), ?every) + ?every, ?every) AS at) AS slot", client)
}

// Schedule queues the scheduled runs that are due, up to scheduleBatch, and returns the number of clients that were
// due. A client with an open run gets no second run, but its next scheduled time is set.
func Schedule(ctx context.Context, d *db.DB) (n int, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.SyncLocks)
		n, err = pg.One[int](ctx, c, "queue sync runs", pg.SQL(`
			WITH due AS MATERIALIZED (
				SELECT k.client_id FROM directory_connections AS k JOIN clients AS c ON c.id = k.client_id
				WHERE k.next_run_at <= ?now AND c.archived_at IS NULL
				ORDER BY k.next_run_at LIMIT ?most FOR NO KEY UPDATE OF k SKIP LOCKED
			), moved AS (
				UPDATE directory_connections AS k SET next_run_at = `+slotSQL+`
				FROM due, `+slotOf("due.client_id")+` WHERE k.client_id = due.client_id RETURNING k.client_id
			), queued AS (
				INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at)
				SELECT client_id, uuid_v7(?now), 'queued', ?trigger, ?now, ?now FROM due
				ON CONFLICT (client_id) WHERE status IN ('queued', 'running') DO NOTHING
			)
			SELECT count(*) FROM moved`, pg.Named{
			"now": c.At, "every": int(domain.SyncEvery.Seconds()), "trigger": domain.SyncBySchedule, "most": scheduleBatch,
		}))
		return err
	})
	return n, err
}

// Connection is a client's connection to its directory.
type Connection struct {
	Client   domain.ClientID
	Name     string // the client's name
	Partner  string // the partner's name
	Provider domain.Directory
	// Settings are the settings that are not secret, as JSON.
	Settings string
	SyncedAt *time.Time
	NextAt   time.Time
	// Last is the status of the latest run, and Error its error; nil if there is none.
	Last  *domain.SyncStatus
	Error *string
	// WithoutEmail is the number of accounts without an email address at the end of the latest completed run; nil if
	// there is none.
	WithoutEmail *int
}

// Connect connects a client to a directory, or replaces the settings and the sealed credentials of its connection. If
// the settings change, an open run fails, because it reads with the old settings, and the next run reads the whole
// directory. Connect starts no run: it sets the time of the first scheduled one (slotSQL). It returns NotFound if the
// client does not exist or is archived, and Conflict if it is connected to another provider.
func Connect(
	ctx context.Context, d *db.DB, client domain.ClientID, provider domain.Directory, settings json.RawMessage, credentials []byte,
) error {
	if err := unlinkUsers(ctx, d, client); err != nil { // if Disconnect was interrupted
		return err
	}
	return d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.SyncLocks)
		changed, err := pg.One[bool](ctx, c, "look for other settings", pg.SQL(`
			SELECT EXISTS (SELECT 1 FROM directory_connections
				WHERE client_id = ?client AND provider = ?provider AND settings <> ?settings::jsonb)`,
			pg.Named{"client": client, "provider": provider, "settings": string(settings)}))
		if err == nil && changed {
			err = failRuns(ctx, c, client, "the directory was connected with other settings meanwhile")
		}
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, c, "connect a directory", pg.SQL(`
			INSERT INTO directory_connections AS k
				(client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			SELECT c.id, ?provider, ?settings::jsonb, ?credentials, `+slotSQL+`, ?now, ?now
			FROM clients AS c, `+slotOf("c.id")+` WHERE c.id = ?client AND c.archived_at IS NULL
			ON CONFLICT (client_id) DO UPDATE SET settings = excluded.settings, credentials = excluded.credentials,
				position = CASE WHEN k.settings = excluded.settings THEN k.position END, updated_at = excluded.updated_at
			WHERE k.provider = excluded.provider`,
			pg.Named{
				"now": c.At, "every": int(domain.SyncEvery.Seconds()), "client": client,
				"provider": provider, "settings": string(settings), "credentials": credentials,
			}))
		if err == nil && n == 0 {
			err = notConnected(ctx, d, client)
		}
		if err != nil {
			return err
		}
		return showDirectory(ctx, c, client, &provider)
	})
}

// notConnected returns the reason why Connect wrote no connection: NotFound or Conflict.
func notConnected(ctx context.Context, d *db.DB, client domain.ClientID) error {
	if _, err := d.AnyTenant(ctx, client); err != nil {
		return err
	}
	return domain.ErrConflict("directory", "the client is connected to another directory; disconnect that first")
}

// showDirectory stores the provider in the client's visible field; nil for none.
func showDirectory(ctx context.Context, c *db.Change, client domain.ClientID, provider *domain.Directory) error {
	c.WillLock(db.ClientLocks)
	return pg.Run(ctx, c, "show the directory of a client", pg.SQL(`
		UPDATE clients SET directory_sync = ?provider, updated_at = greatest(updated_at, ?now)
		WHERE id = ?client AND directory_sync IS DISTINCT FROM ?provider`,
		pg.Named{"client": client, "provider": provider, "now": c.At}))
}

// Disconnect deletes a client's connection. An open run fails. The users remain, with the source domain.FromHand. It
// returns NotFound if the client has neither a connection nor accounts of one, so an interrupted call may be repeated.
func Disconnect(ctx context.Context, d *db.DB, client domain.ClientID) error {
	err := d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := failRuns(ctx, c, client, "the directory was disconnected"); err != nil {
			return err
		}
		n, err := pg.Exec(ctx, c, "disconnect a directory", pg.SQL(
			"DELETE FROM directory_connections WHERE client_id = ?", client))
		if err != nil {
			return err
		}
		hasAccounts, err := pg.One[bool](ctx, c, "look for accounts", pg.SQL(
			"SELECT EXISTS (SELECT 1 FROM directory_accounts WHERE client_id = ?)", client))
		if err == nil && n == 0 && !hasAccounts {
			err = domain.ErrNotFound("directory of this client")
		}
		if err != nil {
			return err
		}
		return showDirectory(ctx, c, client, nil)
	})
	if err != nil {
		return err
	}
	return unlinkUsers(ctx, d, client)
}

// unlinkUsers deletes the accounts of a client, one batch per transaction, and sets the source of their users to
// domain.FromHand. It does nothing if the client has a connection.
func unlinkUsers(ctx context.Context, d *db.DB, client domain.ClientID) error {
	for more := true; more; {
		err := d.Change(ctx, func(ctx context.Context, c *db.Change) (err error) {
			more, err = unlinkBatch(ctx, c, client)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unlinkBatch does nothing if the client has a connection. It unlinks up to BatchSize users: it deletes their accounts
// and sets their source to domain.FromHand. more is then true. If no account has a user, it deletes the other accounts.
func unlinkBatch(ctx context.Context, c *db.Change, client domain.ClientID) (more bool, err error) {
	keys, err := c.LockUserKeys(ctx, pg.SQL(`u.client_id = ?0 AND u.id IN (
		SELECT user_id FROM directory_accounts AS d
		WHERE d.client_id = ?0 AND d.user_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM directory_connections AS k WHERE k.client_id = ?0)
		ORDER BY d.user_id LIMIT ?1)`, client, BatchSize))
	if err != nil {
		return false, err
	}
	if len(keys) == 0 {
		err := pg.Run(ctx, c, "forget accounts", pg.SQL(`
			DELETE FROM directory_accounts AS d WHERE d.client_id = ?0
			AND NOT EXISTS (SELECT 1 FROM directory_connections AS k WHERE k.client_id = ?0)`, client))
		return false, err
	}

	_, users := db.KeyArrays(keys)
	changed, err := pg.All[domain.UserID](ctx, c, "set the source of users", pg.SQL(`
		WITH deleted AS (
			DELETE FROM directory_accounts WHERE client_id = ?client AND user_id = ANY(?users::uuid[])
		)
		UPDATE users SET source = ?byHand, updated_at = greatest(updated_at, ?now)
		WHERE client_id = ?client AND id = ANY(?users::uuid[]) AND source <> ?byHand RETURNING id`,
		pg.Named{"client": client, "users": users, "byHand": domain.FromHand, "now": c.At}))
	for _, id := range changed {
		c.UserEvent(domain.UserUpdated, domain.UserKey{Client: client, User: id})
	}
	return true, err
}

// Connections lists the connections of all clients that are not archived, ordered by partner and name, for an operator.
func Connections(ctx context.Context, d *db.DB) ([]Connection, error) {
	return pg.All[Connection](ctx, d, "list directories", pg.SQL(`
		SELECT c.id AS client, c.name, p.name AS partner, k.provider, k.settings::text AS settings, k.synced_at,
			k.next_run_at AS next_at, r.status AS last, r.error, (
				SELECT without_email FROM sync_runs WHERE client_id = k.client_id AND status = 'completed'
				ORDER BY queued_at DESC, id DESC LIMIT 1
			) AS without_email
		FROM directory_connections AS k JOIN clients AS c ON c.id = k.client_id JOIN partners AS p ON p.id = c.partner_id
		LEFT JOIN LATERAL (
			SELECT status, error FROM sync_runs WHERE client_id = k.client_id ORDER BY queued_at DESC, id DESC LIMIT 1
		) AS r ON true
		WHERE c.archived_at IS NULL ORDER BY p.name_key, c.name_key, c.id`))
}
