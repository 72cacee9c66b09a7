package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The keys of email addresses (domain.EmailKey), which are stored beside the addresses of users, admins and invites.

// EmailKey is the key of the address of a user, alias u.
var EmailKey = EmailKeyOf("u")

// EmailKeyOf returns the expression of the key of the address in a row of users, admins or admin_invites, with an
// alias. The column is NULL if the address is its own key.
func EmailKeyOf(alias string) string { return "coalesce(" + alias + ".email_key, " + alias + ".email)" }

// EmailKeys returns what the expression EmailKeyOf may be in rows with one of the addresses. Until the key of a row
// that an earlier release wrote is computed, its address stands for it; no other key equals an address, unless it is
// its key.
func EmailKeys(emails ...string) []string {
	keys := make([]string, 0, 2*len(emails))
	for _, email := range emails {
		keys = append(keys, domain.EmailKey(email))
		if !domain.IsOwnKey(email) {
			keys = append(keys, email)
		}
	}
	return keys
}

// StoredEmailKey returns the column email_key of an address.
func StoredEmailKey(email string) *string {
	if domain.IsOwnKey(email) {
		return nil
	}
	return new(domain.EmailKey(email))
}

// hasEmail returns the condition that a user, alias u, has an address. It is one that indexes of all clients serve.
func hasEmail(email string) pg.Query {
	key := domain.EmailKey(email)
	return pg.SQL("(u.email = ?0 OR u.email = ?1 OR u.email_key = ?0)", key, email)
}

// containsEmail returns the condition that the address of a user, alias u, contains a text in one of its spellings.
func containsEmail(text string) pg.Query {
	conditions := pg.SQL("false")
	for _, texts := range domain.EmailTexts(text) {
		conditions = pg.SQL("?0 OR u.email LIKE ?1 OR u.email_key LIKE ?1", conditions, pg.Pattern(texts...))
	}
	return conditions
}

// sharedEmail is the email_state of a row whose key another row of the client has claimed. The state is NULL if the row
// claims the key, and 'unsettled' in rows that an earlier release wrote.
const sharedEmail = "shared"

// ChangeEmails prepares locked rows of users or admins for new addresses, which may pass from one row to another: the
// unique indexes are checked for each row even within a statement. It stores a placeholder in place of the addresses.
// The rows then claim their keys, except those in same, whose key does not change.
func (c *Change) ChangeEmails(ctx context.Context, table string, ids, same [][16]byte) error {
	if len(ids) == 0 {
		return nil
	}
	return pg.Run(ctx, c, "replace addresses by placeholders", pg.SQL(`
		UPDATE `+table+` SET email = '=' || id, email_key = NULL,
			email_state = CASE WHEN id = ANY(?1::uuid[]) THEN email_state END WHERE id = ANY(?0::uuid[])`,
		ids, append([][16]byte{}, same...)))
}

// encodesKeys is the condition that the database can store any key. In one with another encoding, which a new database
// cannot have, the addresses of an earlier release stay their own keys.
const encodesKeys = `getdatabaseencoding() IN ('UTF8', 'SQL_ASCII')`

// notPlainEmail is the condition that an address in a row, alias t, is not known to be its own key (domain.IsOwnKey).
const notPlainEmail = `t.email ~ '[^ -~]|xn--'`

// keyedTables are the tables with keys of addresses. unsettled is the condition that the key of a row, alias t, is to
// be computed; of invites, which are not unique, only the key.
var keyedTables = []struct {
	name, order, unsettled string
	unique                 bool
}{
	{"users", "t.client_id, t.id", "t.email_state = 'unsettled'", true},
	{"admins", "t.id", "t.email_state = 'unsettled'", true},
	{"admin_invites", "t.id", "t.email_key IS NULL AND " + notPlainEmail, false},
}

// settleBatch bounds the rows whose keys one transaction computes.
const settleBatch = 1000

// SettleEmails computes the keys of addresses that an earlier release wrote, at most settleBatch of a table, and
// returns their number. A row claims its key unless another row of the client has claimed it; then it shares the key.
func (d *DB) SettleEmails(ctx context.Context) (settled int, err error) {
	for i := range keyedTables {
		batch, err := d.settleAfter(ctx, i, domain.UserID{}, keyedTables[i].unsettled)
		settled += len(batch)
		if err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// KeyEmails computes the keys of all addresses that have none and are not their own keys, in batches. It is a
// migration: it uses the columns of that time, and may be repeated.
func (d *DB) KeyEmails(ctx context.Context) error {
	for i := range keyedTables {
		for last := (domain.UserID{}); ; {
			batch, err := d.settleAfter(ctx, i, last, "t.email_key IS NULL AND "+notPlainEmail)
			if err != nil {
				return err
			}
			if len(batch) == 0 {
				break
			}
			last = batch[len(batch)-1]
		}
	}
	return nil
}

// settleAfter settles the first rows of a table of keyedTables, by their ids, that match a condition and come after an
// id. It returns their ids, which are of any kind, sorted.
func (d *DB) settleAfter(ctx context.Context, table int, after domain.UserID, condition string) ([]domain.UserID, error) {
	t := keyedTables[table]
	ids, err := pg.All[domain.UserID](ctx, d, "look for addresses without a key", pg.SQL(
		"SELECT t.id FROM "+t.name+" AS t WHERE t.id > ? AND "+condition+" AND "+encodesKeys+" ORDER BY t.id LIMIT ?", after, settleBatch))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return ids, d.RetryChange(ctx, func(ctx context.Context, c *Change) error {
		if t.name == "users" {
			c.WillLock(UserLocks)
		}
		rows, err := pg.All[struct {
			ID    domain.UserID
			Email string
		}](ctx, c, "lock addresses without a key", pg.SQL("SELECT t.id, t.email FROM "+t.name+" AS t WHERE t.id = ANY(?::uuid[]) AND "+
			condition+" ORDER BY "+t.order+" FOR NO KEY UPDATE", pg.IDs(ids)))
		if err != nil || len(rows) == 0 {
			return err
		}
		found, keys := make([]domain.UserID, len(rows)), make([]*string, len(rows))
		for i, r := range rows {
			found[i], keys[i] = r.ID, StoredEmailKey(r.Email)
		}
		statement := "UPDATE admin_invites AS t SET email_key = k.key FROM unnest(?::uuid[], ?::text[]) AS k (id, key) WHERE t.id = k.id"
		if t.unique {
			statement = settleSQL(t.name)
		}
		return pg.Run(ctx, c, "store the keys of addresses", pg.SQL(statement, pg.IDs(found), keys))
	})
}

// settleSQL returns the statement that stores keys in locked rows of a table, and claims those that no other row has
// claimed. Of several rows with the same key the one that has claimed it keeps it, otherwise the oldest one gets it.
func settleSQL(table string) string {
	return `
		WITH k AS MATERIALIZED (
			SELECT t.id, k.key, row_number() OVER (
				PARTITION BY coalesce(t.client_id, t.id), coalesce(k.key, t.email)
				ORDER BY (t.email_state IS NULL AND ` + EmailKeyOf("t") + ` = coalesce(k.key, t.email)) DESC, t.created_at, t.id) AS place
			FROM unnest(?::uuid[], ?::text[]) AS k (id, key) JOIN ` + table + ` AS t ON t.id = k.id
		)
		UPDATE ` + table + ` AS t SET email_key = k.key, email_state = CASE WHEN k.place > 1 OR EXISTS (
			SELECT FROM ` + table + ` AS o WHERE o.client_id = t.client_id AND ` + EmailKeyOf("o") + ` = coalesce(k.key, t.email)
				AND o.email_state IS NULL AND o.id <> t.id) THEN '` + sharedEmail + `' END
		FROM k WHERE t.id = k.id`
}
