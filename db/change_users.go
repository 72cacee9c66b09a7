package db

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// userEffects are what a change has to do to users.
type userEffects struct {
	rescored, due, touched map[domain.UserKey]struct{}
	// day is the day as of which scores are computed; zero for that of the change.
	day domain.Date
	// held are users whose rows the transaction inserted or locked: no lock
	// order forbids to write them later.
	held map[domain.UserKey]struct{}
}

// Rescore has the scores of users computed again from the signals that are
// stored.
func (c *Change) Rescore(users ...domain.UserKey) { note(&c.users.rescored, users) }

// courseDueMoved has it stored again which course of the users is due first.
func (c *Change) courseDueMoved(users ...domain.UserKey) { note(&c.users.due, users) }

// touch moves updated_at of users: something that their reads show has changed.
func (c *Change) touch(users ...domain.UserKey) { note(&c.users.touched, users) }

// hold notes that the transaction inserted or locked the rows of users.
func (c *Change) hold(users ...domain.UserKey) { note(&c.users.held, users) }

func note(set *map[domain.UserKey]struct{}, users []domain.UserKey) {
	if *set == nil {
		*set = make(map[domain.UserKey]struct{}, len(users))
	}
	for _, u := range users {
		(*set)[u] = struct{}{}
	}
}

// sortedKeys are the users of a set in the order in which they are locked.
func sortedKeys(set map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.SortedFunc(maps.Keys(set), func(a, b domain.UserKey) int {
		return cmp.Or(slices.Compare(a.Client[:], b.Client[:]), slices.Compare(a.User[:], b.User[:]))
	})
}

// keyLists are the keys of users as the values of two uuid[].
func keyLists(keys []domain.UserKey) (clients, users [][16]byte) {
	clients, users = make([][16]byte, len(keys)), make([][16]byte, len(keys))
	for i, k := range keys {
		clients[i], users[i] = k.Client, k.User
	}
	return clients, users
}

// flushUsers locks the users that the change concerns, in the order of their
// keys, and does to them what it noted.
func (c *Change) flushUsers(ctx context.Context) error {
	all := map[domain.UserKey]struct{}{}
	for _, set := range []map[domain.UserKey]struct{}{c.users.rescored, c.users.due, c.users.touched} {
		maps.Copy(all, set)
	}

	if len(without(all, c.users.held)) > 0 {
		clients, users := keyLists(sortedKeys(all))
		if _, err := c.lockUsers(ctx, pg.SQL(isKey, clients, users)); err != nil {
			return err
		}
	}

	if err := c.storeNextDue(ctx, without(c.users.due, c.users.rescored)); err != nil {
		return err
	}
	if err := c.storeTouched(ctx, sortedKeys(c.users.touched)); err != nil {
		return err
	}
	return c.score(ctx, sortedKeys(c.users.rescored)) // and what is due next
}

// without are the users of a set that are not in another one, in order.
func without(set, other map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.DeleteFunc(sortedKeys(set), func(u domain.UserKey) bool {
		_, in := other[u]
		return in
	})
}

// isKey is the condition that a user, alias u, is one of those with the keys.
const isKey = "(u.client_id, u.id) IN (SELECT * FROM unnest(?0::uuid[], ?1::uuid[]))"

// lockUsers locks the users, alias u, of a condition, in the order of their keys,
// and returns them. What other tables hold of them is to be read by a later
// statement: this one's snapshot is older than the locks that it waited for.
func (c *Change) lockUsers(ctx context.Context, condition pg.Query) ([]domain.UserKey, error) {
	c.Lock(UserLocks)
	keys, err := pg.All[domain.UserKey](ctx, c, "lock users", pg.SQL(`
		SELECT u.client_id AS client, u.id AS "user" FROM users AS u
		WHERE ? ORDER BY u.client_id, u.id FOR NO KEY UPDATE`, condition))
	c.hold(keys...)
	return keys, err
}

// LockRescored locks the users whose scores are to be computed again, for a change that
// goes on to lock rows that come after users.
func (c *Change) LockRescored(ctx context.Context) error {
	if len(c.users.rescored) == 0 {
		return nil
	}
	clients, users := keyLists(sortedKeys(c.users.rescored))
	_, err := c.lockUsers(ctx, pg.SQL(isKey, clients, users))
	return err
}

// nextDueSQL is the incomplete course of the user n that is due first.
const nextDueSQL = `
	SELECT a.due_on, a.course_id FROM assignments AS a
	WHERE a.client_id = n.client_id AND a.user_id = n.id AND a.completed_at IS NULL
	ORDER BY a.due_on, a.position, a.course_id LIMIT 1`

// storeNextDue stores for locked users which incomplete course is due first.
// updated_at moves with it, for it is shown.
func (c *Change) storeNextDue(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := keyLists(keys)
	_, err := pg.Exec(ctx, c, "store what is due next", pg.SQL(`
		UPDATE users AS u SET next_due_on = due.due_on, next_course_id = due.course_id,
			updated_at = greatest(u.updated_at, ?2)
		FROM unnest(?0::uuid[], ?1::uuid[]) AS n (client_id, id) LEFT JOIN LATERAL (`+nextDueSQL+`) AS due ON true
		WHERE u.client_id = n.client_id AND u.id = n.id
		AND (u.next_due_on, u.next_course_id) IS DISTINCT FROM (due.due_on, due.course_id)`, clients, users, c.At))
	return err
}

// storeTouched moves updated_at of locked users.
func (c *Change) storeTouched(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := keyLists(keys)
	_, err := pg.Exec(ctx, c, "touch users", pg.SQL(`
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?2)
		FROM unnest(?0::uuid[], ?1::uuid[]) AS w (client_id, user_id)
		WHERE u.client_id = w.client_id AND u.id = w.user_id`, clients, users, c.At))
	return err
}
