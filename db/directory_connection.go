package db

import (
	"context"
	"encoding/json"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// DirectoryConnection is a client's connection to its directory.
type DirectoryConnection struct {
	Client   domain.ClientID
	Name     string // the client's
	Partner  string
	Provider domain.Directory
	// Settings are what is no secret, as JSON.
	Settings string
	SyncedAt *time.Time
	NextAt   time.Time
	// Last is the status of the latest run; nil where there was none.
	Last  *domain.SyncStatus
	Error *string
}

// ConnectDirectory connects a client to a directory, or replaces the settings and
// the sealed credentials of its connection: where the settings are others, an open
// run fails, for it reads by those of before, and the next one reads everything. It
// starts no run. Conflict where the client is
// connected to another provider.
func (d *DB) ConnectDirectory(
	ctx context.Context, client domain.ClientID, provider domain.Directory, settings json.RawMessage, credentials []byte,
) error {
	if err := d.partFromAccounts(ctx, client); err != nil {
		return err
	}
	return d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.Lock(SyncLocks)
		changed, err := pg.One[bool](ctx, c, "look for other settings", pg.SQL(`
			SELECT EXISTS (SELECT 1 FROM directory_connections
				WHERE client_id = ? AND provider = ? AND settings <> ?::jsonb)`, client, provider, string(settings)))
		if err == nil && changed {
			err = c.failRuns(ctx, client, "the directory was connected with other settings meanwhile")
		}
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, c, "connect a directory", pg.SQL(`
			INSERT INTO directory_connections AS k
				(client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			SELECT c.id, ?3, ?4::jsonb, ?5, `+slotSQL+`, ?0, ?0
			FROM clients AS c, `+slotOf("c.id")+` WHERE c.id = ?2 AND c.archived_at IS NULL
			ON CONFLICT (client_id) DO UPDATE SET settings = excluded.settings, credentials = excluded.credentials,
				position = CASE WHEN k.settings = excluded.settings THEN k.position END, updated_at = excluded.updated_at
			WHERE k.provider = excluded.provider`,
			c.At, int(domain.SyncEvery.Seconds()), client, provider, string(settings), credentials))
		if err == nil && n == 0 {
			err = domain.ErrConflict("directory", "the client is connected to another directory: disconnect that first")
		}
		if err != nil {
			return err
		}
		return c.showDirectory(ctx, client, &provider)
	})
}

// showDirectory stores which directory a client is shown to have.
func (c *Change) showDirectory(ctx context.Context, client domain.ClientID, provider *domain.Directory) error {
	c.Lock(ClientLocks)
	_, err := pg.Exec(ctx, c, "show the directory of a client", pg.SQL(`
		UPDATE clients SET directory_sync = ?1, updated_at = greatest(updated_at, ?2)
		WHERE id = ?0 AND directory_sync IS DISTINCT FROM ?1`, client, provider, c.At))
	return err
}

// DisconnectDirectory ends a client's connection, and an open run with it. Users
// stay, and count as made by hand. NotFound where the client has none. It may be
// repeated where it was cut short.
func (d *DB) DisconnectDirectory(ctx context.Context, client domain.ClientID) error {
	err := d.Change(ctx, func(ctx context.Context, c *Change) error {
		if err := c.failRuns(ctx, client, "the directory was disconnected"); err != nil {
			return err
		}
		n, err := pg.Exec(ctx, c, "disconnect a directory", pg.SQL(
			"DELETE FROM directory_connections WHERE client_id = ?", client))
		if err != nil {
			return err
		}
		left, err := pg.One[bool](ctx, c, "look for accounts", pg.SQL(
			"SELECT EXISTS (SELECT 1 FROM directory_accounts WHERE client_id = ?)", client))
		if err == nil && n == 0 && !left {
			err = domain.ErrNotFound("directory of this client")
		}
		if err != nil {
			return err
		}
		return c.showDirectory(ctx, client, nil)
	})
	if err != nil {
		return err
	}
	return d.partFromAccounts(ctx, client)
}

// partFromAccounts forgets the accounts of a client that has no connection, a
// batch in each transaction: their users are kept by hand from then on.
func (d *DB) partFromAccounts(ctx context.Context, client domain.ClientID) error {
	for more := true; more; {
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			more, err = c.partBatch(ctx, client)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) partBatch(ctx context.Context, client domain.ClientID) (more bool, err error) {
	keys, err := c.lockUsers(ctx, pg.SQL(`u.client_id = ?0 AND u.id IN (
		SELECT user_id FROM directory_accounts AS d
		WHERE d.client_id = ?0 AND d.user_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM directory_connections AS k WHERE k.client_id = ?0)
		ORDER BY d.user_id LIMIT ?1)`, client, syncBatch))
	if err != nil {
		return false, err
	}
	if len(keys) == 0 {
		_, err := pg.Exec(ctx, c, "forget accounts", pg.SQL(`
			DELETE FROM directory_accounts AS d WHERE d.client_id = ?0
			AND NOT EXISTS (SELECT 1 FROM directory_connections AS k WHERE k.client_id = ?0)`, client))
		return false, err
	}

	_, users := keyLists(keys)
	moved, err := pg.All[domain.UserID](ctx, c, "keep users by hand", pg.SQL(`
		WITH forgotten AS (
			DELETE FROM directory_accounts WHERE client_id = ?0 AND user_id = ANY(?1::uuid[])
		)
		UPDATE users SET source = ?2, updated_at = greatest(updated_at, ?3)
		WHERE client_id = ?0 AND id = ANY(?1::uuid[]) AND source <> ?2 RETURNING id`,
		client, users, domain.FromHand, c.At))
	for _, id := range moved {
		c.UserEvent(domain.UserUpdated, domain.UserKey{Client: client, User: id})
	}
	return true, err
}

// DirectoryConnections lists the connections of all clients, by partner and name,
// for an operator.
func (d *DB) DirectoryConnections(ctx context.Context) ([]DirectoryConnection, error) {
	return pg.All[DirectoryConnection](ctx, d, "list directories", pg.SQL(`
		SELECT c.id AS client, c.name, p.name AS partner, k.provider, k.settings::text AS settings, k.synced_at,
			k.next_run_at AS next_at, r.status AS last, r.error
		FROM directory_connections AS k JOIN clients AS c ON c.id = k.client_id JOIN partners AS p ON p.id = c.partner_id
		LEFT JOIN LATERAL (
			SELECT status, error FROM sync_runs WHERE client_id = k.client_id ORDER BY queued_at DESC, id DESC LIMIT 1
		) AS r ON true
		WHERE c.archived_at IS NULL ORDER BY p.name_key, c.name_key, c.id`))
}
