package db

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The effects of a change on users, audiences and stored counts.

// userEffects are the users that a change writes when it ends.
type userEffects struct {
	rescored, due, touched map[domain.UserKey]struct{}
	// Scores are computed as of day; if zero, as of the day of the change.
	day domain.Date
	// locked are users whose rows the transaction inserted or locked: it may write them
	// later than the lock order says.
	locked map[domain.UserKey]struct{}
}

// Rescore computes the scores of users again from the stored signals, at the end of the
// change.
func (c *Change) Rescore(users ...domain.UserKey) { addUsers(&c.users.rescored, users) }

// NextDueChanged finds and stores the next due course of users at the end of the change.
func (c *Change) NextDueChanged(users ...domain.UserKey) { addUsers(&c.users.due, users) }

// TouchUsers moves updated_at of users at the end of the change. Call it if something visible
// of a user changed.
func (c *Change) TouchUsers(users ...domain.UserKey) { addUsers(&c.users.touched, users) }

// UsersInserted adds users whose rows the transaction inserted or locked: they may be written
// again without a lock.
func (c *Change) UsersInserted(users ...domain.UserKey) { addUsers(&c.users.locked, users) }

func addUsers(set *map[domain.UserKey]struct{}, users []domain.UserKey) {
	all := made(set)
	for _, u := range users {
		all[u] = struct{}{}
	}
}

// made returns the map at m; a nil map is made first.
func made[K comparable, V any](m *map[K]V) map[K]V {
	if *m == nil {
		*m = map[K]V{}
	}
	return *m
}

// sortedKeys returns the users of a set in the order of locks.
func sortedKeys(set map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.SortedFunc(maps.Keys(set), func(a, b domain.UserKey) int {
		return cmp.Or(slices.Compare(a.Client[:], b.Client[:]), slices.Compare(a.User[:], b.User[:]))
	})
}

// KeyArrays returns the keys of users as the values of two uuid[].
func KeyArrays(keys []domain.UserKey) (clients, users [][16]byte) {
	clients = pg.MapRows(keys, func(k *domain.UserKey) [16]byte { return k.Client })
	return clients, pg.MapRows(keys, func(k *domain.UserKey) [16]byte { return k.User })
}

// flushUsers locks the users of userEffects, in the order of their keys, and writes them.
func (c *Change) flushUsers(ctx context.Context) error {
	all := map[domain.UserKey]struct{}{}
	for _, set := range []map[domain.UserKey]struct{}{c.users.rescored, c.users.due, c.users.touched} {
		maps.Copy(all, set)
	}

	if len(without(all, c.users.locked)) > 0 {
		if _, err := c.LockUserKeys(ctx, haveKeys(sortedKeys(all))); err != nil {
			return err
		}
	}

	if err := c.storeNextDue(ctx, without(c.users.due, c.users.rescored)); err != nil {
		return err
	}
	if err := c.storeTouched(ctx, sortedKeys(c.users.touched)); err != nil {
		return err
	}
	return c.score(ctx, sortedKeys(c.users.rescored)) // stores the next due course, too
}

// without returns the users of a set that are not in another one, in order.
func without(set, other map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.DeleteFunc(sortedKeys(set), func(u domain.UserKey) bool {
		_, in := other[u]
		return in
	})
}

// haveKeys is the condition that users, alias u, have one of the keys.
func haveKeys(keys []domain.UserKey) pg.Query {
	clients, users := KeyArrays(keys)
	return pg.SQL("(u.client_id, u.id) IN (SELECT * FROM unnest(?0::uuid[], ?1::uuid[]))", clients, users)
}

// probeUser joins the user, alias u, of each key, alias w, by an index. With a plain join the
// planner would read all users, up to some 100,000, for a batch of 1,000.
const probeUser = `JOIN LATERAL (SELECT * FROM users WHERE client_id = w.client_id AND id = w.user_id LIMIT 1) AS u ON true`

// LockUserKeys locks the users, alias u, that match a condition, in the order of their keys,
// and returns them. Read their rows in other tables by a later statement: the snapshot of
// this one is older than the locks that it waited for.
func (c *Change) LockUserKeys(ctx context.Context, condition pg.Query) ([]domain.UserKey, error) {
	c.Lock(UserLocks)
	keys, err := pg.All[domain.UserKey](ctx, c, "lock users", pg.SQL(`
		SELECT u.client_id AS client, u.id AS "user" FROM users AS u
		WHERE ? ORDER BY u.client_id, u.id FOR NO KEY UPDATE`, condition))
	c.UsersInserted(keys...)
	return keys, err
}

// LockRescored locks the users passed to Rescore now, not at the end of the change: for a
// change that next locks rows that follow users in the lock order.
func (c *Change) LockRescored(ctx context.Context) error {
	if len(c.users.rescored) == 0 {
		return nil
	}
	_, err := c.LockUserKeys(ctx, haveKeys(sortedKeys(c.users.rescored)))
	return err
}

// LockUserRows is LockUserKeys, and reads the users.
func (c *Change) LockUserRows(ctx context.Context, which pg.Query) ([]UserRow, error) {
	keys, err := c.LockUserKeys(ctx, which)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return pg.All[UserRow](ctx, c, "read users", pg.Rows[UserRow]().Where("?", haveKeys(keys)))
}

// nextDueSQL selects the incomplete course of the user n that is due first.
const nextDueSQL = `
	SELECT a.due_on, a.course_id FROM assignments AS a
	WHERE a.client_id = n.client_id AND a.user_id = n.id AND a.completed_at IS NULL
	ORDER BY a.due_on, a.position, a.course_id LIMIT 1`

// storeNextDue stores the next due course of locked users. updated_at moves with it: it is
// visible.
func (c *Change) storeNextDue(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := KeyArrays(keys)
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
	clients, users := KeyArrays(keys)
	_, err := pg.Exec(ctx, c, "touch users", pg.SQL(`
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?2)
		FROM unnest(?0::uuid[], ?1::uuid[]) AS w (client_id, user_id)
		WHERE u.client_id = w.client_id AND u.id = w.user_id`, clients, users, c.At))
	return err
}

// Assigning a framework enrols the users who are in its audience. A user who enters an
// audience is enrolled by the frameworks that are assigned to it. An advisory lock for each
// client keeps two such transactions from missing each other: changes of users share it, a
// change of framework assignments holds it alone.

// ShareAudiences locks the framework assignments of clients against changes. A change that
// may add users to an audience (a new user, or one who becomes active or changes role, group
// or collections) calls it before any other lock, and EnrolUsers or EnterAudiences later.
func (c *Change) ShareAudiences(ctx context.Context, clients ...domain.ClientID) error {
	return c.LockAudiencesWhere(ctx, SharedAudiences, pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(clients)))
}

// ShareAudiencesOf is ShareAudiences for the client of a user, if the user exists.
func (c *Change) ShareAudiencesOf(ctx context.Context, user domain.UserID) error {
	return c.LockAudiencesWhere(ctx, SharedAudiences,
		pg.SQL("(SELECT client_id AS id FROM users WHERE id = ?) AS l", user))
}

// LockAudiences locks the framework assignments and the audiences of a client against
// changes.
func (c *Change) LockAudiences(ctx context.Context, client domain.ClientID) error {
	return c.LockAudiencesWhere(ctx, ExclusiveAudiences, pg.SQL("(SELECT ?::uuid AS id) AS l", client))
}

// AudienceLock is the mode of a lock of audiences.
type AudienceLock string

// The locks of audiences, by PostgreSQL's functions: a shared one keeps the framework
// assignments as they are, an exclusive one also keeps users from entering audiences.
const (
	SharedAudiences    AudienceLock = "pg_advisory_xact_lock_shared"
	ExclusiveAudiences AudienceLock = "pg_advisory_xact_lock"
)

// LockAudiencesWhere locks the audiences of the clients in a FROM item with the alias l (id).
func (c *Change) LockAudiencesWhere(ctx context.Context, kind AudienceLock, clients pg.Query) error {
	type lockedRow struct {
		ID   domain.ClientID
		Lock string // empty
	}
	c.Lock(AudienceLocks)
	lock := string(kind) + "(hashtextextended('audiences/' || l.id, 0))::text"
	if ctx.Value(tryAllKey{}) != nil { // TryAll rolls back, and may change any number of clients
		lock = "''"
	}
	rows, err := pg.All[lockedRow](ctx, c, "lock the audiences of clients", pg.SQL(
		"SELECT l.id, "+lock+" AS lock FROM ? ORDER BY l.id", clients))
	for _, r := range rows {
		made(&c.audiences)[r.ID] = true
	}
	return err
}

// requireAudienceLock panics, with WithStrictLocks, if the audiences of the users' clients
// are neither locked nor shared.
func (c *Change) requireAudienceLock(users []domain.UserKey) {
	for _, u := range users {
		if c.strict && !c.audiences[u.Client] {
			panic("users enter audiences that are not shared")
		}
	}
}

// counters are the differences that a change adds to stored counters.
type counters struct {
	days     map[dayKey]domain.PhishingCounts
	clients  map[domain.ClientID]userCounts
	partners map[domain.PartnerID]int
	// frameworks are the clients whose lists of frameworks changed.
	frameworks map[domain.ClientID]struct{}
}

// dayKey is the key of a client's counters of the mails sent on a day (UTC).
type dayKey struct {
	client domain.ClientID
	day    domain.Date
}

// userCounts counts users by status.
type userCounts struct{ active, inactive int }

// CountMails adds to the counters of the mails sent to a client's users on a day.
func (c *Change) CountMails(client domain.ClientID, day domain.Date, by domain.PhishingCounts) {
	key := dayKey{client, day}
	made(&c.counters.days)[key] = c.counters.days[key].Plus(by)
}

// countUser adds to the counter of a client's users with the user's status.
func (c *Change) countUser(u *domain.User, by int) {
	n := c.counters.clients[u.Client]
	if u.Status == domain.Active {
		n.active += by
	} else {
		n.inactive += by
	}
	made(&c.counters.clients)[u.Client] = n
}

// FrameworksChanged makes the change list and store a client's frameworks when it ends. The
// audiences of the client must be locked.
func (c *Change) FrameworksChanged(client domain.ClientID) {
	made(&c.counters.frameworks)[client] = struct{}{}
}

// CountClients adds to a partner's counter of clients.
func (c *Change) CountClients(partner domain.PartnerID, by int) {
	made(&c.counters.partners)[partner] += by
}

// flushCounters writes the counters. They come late, because all changes of a client or a
// partner wait for each other at these rows.
func (c *Change) flushCounters(ctx context.Context) error {
	if err := c.flushDays(ctx); err != nil {
		return err
	}
	if err := c.flushUserCounts(ctx); err != nil {
		return err
	}
	if err := c.flushFrameworks(ctx); err != nil {
		return err
	}
	for _, partner := range sortedIDs(c.counters.partners) { // at most one
		c.Lock(PartnerLocks)
		_, err := pg.Exec(ctx, c, "count a partner's clients", pg.SQL(
			"UPDATE partners SET client_count = client_count + ?1::integer WHERE id = ?0",
			partner, c.counters.partners[partner]))
		if err != nil {
			return err
		}
	}
	return nil
}

// lockClients locks clients in the order of their ids, if there are several. It is a separate
// statement: one that also updates the rows would follow their versions from the one in its
// snapshot, and might wait there for a transaction that waits for it.
func (c *Change) lockClients(ctx context.Context, ids []domain.ClientID) error {
	c.Lock(ClientLocks)
	if len(ids) < 2 {
		return nil
	}
	_, err := pg.Exec(ctx, c, "lock clients", pg.SQL(
		"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
	return err
}

// flushUserCounts writes the clients' counters of users.
func (c *Change) flushUserCounts(ctx context.Context) error {
	counts := c.counters.clients
	maps.DeleteFunc(counts, func(_ domain.ClientID, n userCounts) bool { return n == userCounts{} })
	ids := sortedIDs(counts)
	if len(ids) == 0 {
		return nil
	}
	active := pg.MapRows(ids, func(id *domain.ClientID) int { return counts[*id].active })
	inactive := pg.MapRows(ids, func(id *domain.ClientID) int { return counts[*id].inactive })
	if err := c.lockClients(ctx, ids); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, c, "count the users of clients", pg.SQL(`
		UPDATE clients AS c SET users_active = users_active + m.active, users_inactive = users_inactive + m.inactive,
			updated_at = greatest(updated_at, ?3)
		FROM unnest(?0::uuid[], ?1::integer[], ?2::integer[]) AS m (id, active, inactive)
		WHERE c.id = m.id`, pg.IDs(ids), active, inactive, c.At))
	return err
}

// flushFrameworks stores the assigned frameworks of clients, sorted, each once.
func (c *Change) flushFrameworks(ctx context.Context) error {
	ids := sortedIDs(c.counters.frameworks)
	if len(ids) == 0 {
		return nil
	}
	if err := c.lockClients(ctx, ids); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, c, "list the frameworks of clients", pg.SQL(`
		WITH listed AS MATERIALIZED (
			SELECT k.id, coalesce((
				SELECT array_agg(DISTINCT framework_id ORDER BY framework_id)
				FROM framework_assignments WHERE client_id = k.id), '{}') AS frameworks
			FROM unnest(?0::uuid[]) AS k (id)
		)
		UPDATE clients AS c SET framework_ids = l.frameworks, updated_at = greatest(c.updated_at, ?1)
		FROM listed AS l WHERE c.id = l.id AND c.framework_ids <> l.frameworks`, pg.IDs(ids), c.At))
	return err
}

func sortedIDs[K domain.Kind, V any](of map[domain.ID[K]]V) []domain.ID[K] {
	ids := make([]domain.ID[K], 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// dayRecord is a row of phishing_days, with the differences of a change.
type dayRecord struct {
	ClientID             string      `json:"client_id"`
	Day                  domain.Date `json:"day"`
	Sent                 int         `json:"sent"`
	Opened               int         `json:"opened"`
	Clicked              int         `json:"clicked"`
	Reported             int         `json:"reported"`
	CredentialsSubmitted int         `json:"credentials_submitted"`
	AttachmentsOpened    int         `json:"attachments_opened"`
}

// flushDays writes the counters of simulated mails.
func (c *Change) flushDays(ctx context.Context) error {
	var records []dayRecord
	for key, n := range c.counters.days {
		if n != (domain.PhishingCounts{}) {
			records = append(records, dayRecord{
				key.client.UUID(), key.day, n.Sent, n.Opened, n.Clicked, n.Reported, n.CredentialsSubmitted, n.AttachmentsOpened,
			})
		}
	}
	if records == nil {
		return nil
	}
	slices.SortFunc(records, func(a, b dayRecord) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), b.Day.DaysUntil(a.Day))
	})
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	c.Lock(DayLocks)
	_, err = pg.Exec(ctx, c, "count simulated mails", pg.SQL(`
		INSERT INTO phishing_days AS p
			(client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened)
		SELECT client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened
		FROM json_populate_recordset(NULL::phishing_days, ?::json) ORDER BY client_id, day
		ON CONFLICT (client_id, day) DO UPDATE SET sent = p.sent + excluded.sent, opened = p.opened + excluded.opened,
			clicked = p.clicked + excluded.clicked, reported = p.reported + excluded.reported,
			credentials_submitted = p.credentials_submitted + excluded.credentials_submitted,
			attachments_opened = p.attachments_opened + excluded.attachments_opened`, string(text)))
	return err
}
