package db

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The effects of a change on users, audiences and stored counts.

// userEffects are the users that a change updates at its end. See Rescore, NextDueChanged and TouchUsers.
type userEffects struct {
	rescored, due, touched map[domain.UserKey]struct{}
	// day is the day as of which scores are computed; if zero, the day of the change.
	day domain.Date
	// locked are users whose rows the transaction has inserted or locked. It may update them in any order.
	locked map[domain.UserKey]struct{}
}

// Rescore registers users whose risk is to be recomputed from the stored signals, at the end of the change.
func (c *Change) Rescore(users ...domain.UserKey) { addUsers(&c.users.rescored, users) }

// NextDueChanged registers users whose next due course is to be determined and stored, at the end of the change.
func (c *Change) NextDueChanged(users ...domain.UserKey) { addUsers(&c.users.due, users) }

// TouchUsers registers users with a changed visible field, whose updated_at is to be set at the end of the change.
func (c *Change) TouchUsers(users ...domain.UserKey) { addUsers(&c.users.touched, users) }

// UsersLocked registers users whose rows the transaction has locked or inserted. The change need not lock them again.
func (c *Change) UsersLocked(users ...domain.UserKey) { addUsers(&c.users.locked, users) }

// addUsers adds users to a set, which may be nil.
func addUsers(set *map[domain.UserKey]struct{}, users []domain.UserKey) {
	all := initMap(set)
	for _, u := range users {
		all[u] = struct{}{}
	}
}

// initMap returns the map at m. If it is nil, initMap sets it to an empty map first.
func initMap[K comparable, V any](m *map[K]V) map[K]V {
	if *m == nil {
		*m = map[K]V{}
	}
	return *m
}

// sortedKeys returns the users of a set in the lock order.
func sortedKeys(set map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.SortedFunc(maps.Keys(set), func(a, b domain.UserKey) int {
		return cmp.Or(slices.Compare(a.Client[:], b.Client[:]), slices.Compare(a.User[:], b.User[:]))
	})
}

// KeyArrays returns the client and user ids of keys as two parameters of type uuid[].
func KeyArrays(keys []domain.UserKey) (clients, users [][16]byte) {
	clients = pg.MapRows(keys, func(k *domain.UserKey) [16]byte { return k.Client })
	return clients, pg.MapRows(keys, func(k *domain.UserKey) [16]byte { return k.User })
}

// flushUsers stores the next due courses, times of update and risks of the users who were registered for that. It first
// locks these users in the lock order, unless the transaction has locked or inserted all of them.
func (c *Change) flushUsers(ctx context.Context) error {
	all := map[domain.UserKey]struct{}{}
	for _, set := range []map[domain.UserKey]struct{}{c.users.rescored, c.users.due, c.users.touched} {
		maps.Copy(all, set)
	}
	if len(difference(all, c.users.locked)) > 0 {
		if _, err := c.LockUserKeys(ctx, haveKeys(sortedKeys(all))); err != nil {
			return err
		}
	}

	// score also stores the next due courses of rescored users.
	if err := c.storeNextDue(ctx, difference(c.users.due, c.users.rescored)); err != nil {
		return err
	}
	if err := c.storeTouched(ctx, sortedKeys(c.users.touched)); err != nil {
		return err
	}
	return c.score(ctx, sortedKeys(c.users.rescored))
}

// difference returns the users of set that are not in other, in the lock order.
func difference(set, other map[domain.UserKey]struct{}) []domain.UserKey {
	return slices.DeleteFunc(sortedKeys(set), func(u domain.UserKey) bool {
		_, in := other[u]
		return in
	})
}

// haveKeys returns the condition that a user, alias u, has one of the keys.
func haveKeys(keys []domain.UserKey) pg.Query {
	clients, users := KeyArrays(keys)
	return pg.SQL("(u.client_id, u.id) IN (SELECT * FROM unnest(?0::uuid[], ?1::uuid[]))", clients, users)
}

// probeUser joins the user, alias u, of each key, alias w, with an index search for each. With a plain join the planner
// would read up to some 100,000 users for a batch of 1,000 keys.
const probeUser = `JOIN LATERAL (SELECT * FROM users WHERE client_id = w.client_id AND id = w.user_id LIMIT 1) AS u ON true`

// LockUserKeys locks the users, alias u, that match a condition, in the order of their keys, and returns their keys.
// Read their rows in other tables with a later statement: the snapshot of this statement is older than the locks.
func (c *Change) LockUserKeys(ctx context.Context, condition pg.Query) ([]domain.UserKey, error) {
	c.WillLock(UserLocks)
	keys, err := pg.All[domain.UserKey](ctx, c, "lock users", pg.SQL(`
		SELECT u.client_id AS client, u.id AS "user" FROM users AS u
		WHERE ? ORDER BY u.client_id, u.id FOR NO KEY UPDATE`, condition))
	c.UsersLocked(keys...)
	return keys, err
}

// LockRescored locks the users passed to Rescore at once, not at the end of the change. It is for a change that next
// locks rows that come after users in the lock order.
func (c *Change) LockRescored(ctx context.Context) error {
	if len(c.users.rescored) == 0 {
		return nil
	}
	_, err := c.LockUserKeys(ctx, haveKeys(sortedKeys(c.users.rescored)))
	return err
}

// LockUserRows locks the users, alias u, that match a condition, in the order of their keys. It returns their rows, in
// any order.
func (c *Change) LockUserRows(ctx context.Context, condition pg.Query) ([]UserRow, error) {
	keys, err := c.LockUserKeys(ctx, condition)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return pg.All[UserRow](ctx, c, "read users", pg.Rows[UserRow]().Where("?", haveKeys(keys)))
}

// nextDueSQL selects, of the incomplete courses of the user n, the one with the earliest due date.
const nextDueSQL = `
	SELECT a.due_on, a.course_id FROM assignments AS a
	WHERE a.client_id = n.client_id AND a.user_id = n.id AND a.completed_at IS NULL
	ORDER BY a.due_on, a.position, a.course_id LIMIT 1`

// storeNextDue stores the next due course of locked users. If it changed, it also sets updated_at: it is visible.
func (c *Change) storeNextDue(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := KeyArrays(keys)
	return pg.Run(ctx, c, "store what is due next", pg.SQL(`
		UPDATE users AS u SET next_due_on = due.due_on, next_course_id = due.course_id,
			updated_at = greatest(u.updated_at, ?now)
		FROM unnest(?clients::uuid[], ?users::uuid[]) AS n (client_id, id) LEFT JOIN LATERAL (`+nextDueSQL+`) AS due ON true
		WHERE u.client_id = n.client_id AND u.id = n.id
		AND (u.next_due_on, u.next_course_id) IS DISTINCT FROM (due.due_on, due.course_id)`,
		pg.Named{"clients": clients, "users": users, "now": c.At}))
}

// storeTouched sets updated_at of locked users.
func (c *Change) storeTouched(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := KeyArrays(keys)
	return pg.Run(ctx, c, "touch users", pg.SQL(`
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?now)
		FROM unnest(?clients::uuid[], ?users::uuid[]) AS w (client_id, user_id)
		WHERE u.client_id = w.client_id AND u.id = w.user_id`,
		pg.Named{"clients": clients, "users": users, "now": c.At}))
}

// An assignment of a framework enrolls the users of its audience. A user who enters an audience is enrolled by the
// assignments of that audience. Two concurrent transactions of these kinds must see each other. So there is an advisory
// lock for each client: changes of users hold it shared, changes of framework assignments hold it exclusively.

// LockAudiencesShared locks the framework assignments of clients against changes. A change that may add users to an
// audience (a new user, or one who becomes active or changes role, group or collections) calls it before any other
// lock, and later calls EnrolUsers or EnterAudiences.
func (c *Change) LockAudiencesShared(ctx context.Context, clients ...domain.ClientID) error {
	return c.LockAudiencesWhere(ctx, SharedAudiences, pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(clients)))
}

// LockAudiencesSharedOf locks the framework assignments of a user's client against changes, as a change that may move
// the user into an audience requires (LockAudiencesShared). If the user does not exist, it locks nothing.
func (c *Change) LockAudiencesSharedOf(ctx context.Context, user domain.UserID) error {
	return c.LockAudiencesWhere(ctx, SharedAudiences,
		pg.SQL("(SELECT client_id AS id FROM users WHERE id = ?) AS l", user))
}

// LockAudiences locks both the framework assignments and the audiences of a client against changes.
func (c *Change) LockAudiences(ctx context.Context, client domain.ClientID) error {
	return c.LockAudiencesWhere(ctx, ExclusiveAudiences, pg.SQL("(SELECT ?::uuid AS id) AS l", client))
}

// AudienceLock is the mode of a lock of audiences.
type AudienceLock string

// The modes are names of PostgreSQL's functions. A shared lock prevents changes of the framework assignments. An
// exclusive lock also prevents users from entering audiences.
const (
	SharedAudiences    AudienceLock = "pg_advisory_xact_lock_shared"
	ExclusiveAudiences AudienceLock = "pg_advisory_xact_lock"
)

// LockAudiencesWhere locks the audiences of the clients that an SQL FROM item with the alias l (id) selects. Within
// TryAll it only registers them as locked.
func (c *Change) LockAudiencesWhere(ctx context.Context, mode AudienceLock, clients pg.Query) error {
	type lockedRow struct {
		ID   domain.ClientID
		Lock string // always empty: the function that locks returns void
	}
	c.WillLock(AudienceLocks)
	lock := string(mode) + "(hashtextextended('audiences/' || l.id, 0))::text"
	if ctx.Value(tryAllKey{}) != nil { // TryAll rolls back, and would hold too many locks
		lock = "''"
	}
	rows, err := pg.All[lockedRow](ctx, c, "lock the audiences of clients", pg.SQL(
		"SELECT l.id, "+lock+" AS lock FROM ? ORDER BY l.id", clients))
	for _, r := range rows {
		initMap(&c.audiences)[r.ID] = true
	}
	return err
}

// requireAudienceLock panics, with WithStrictLocks, if the change holds no lock, shared or exclusive, of the audiences
// of a user's client.
func (c *Change) requireAudienceLock(users []domain.UserKey) {
	for _, u := range users {
		if c.strict && !c.audiences[u.Client] {
			panic("users enter audiences that are not locked")
		}
	}
}

// counters are the differences that a change adds to stored counters at its end.
type counters struct {
	days     map[dayKey]domain.PhishingCounts
	clients  map[domain.ClientID]userCounts
	partners map[domain.PartnerID]int
	// frameworks are the clients whose lists of frameworks changed.
	frameworks map[domain.ClientID]struct{}
}

// dayKey is the key of a client's counters of the emails sent on a day (UTC): of all, or of those with a label's key.
type dayKey struct {
	client domain.ClientID
	label  string // empty for all
	day    domain.Date
}

// userCounts counts users by status.
type userCounts struct{ active, inactive int }

// CountMails adds by to the counters of the emails sent to a client's users on a day: to those of all emails and, if the
// key of a label is not empty, to those of the label.
func (c *Change) CountMails(client domain.ClientID, label string, day domain.Date, by domain.PhishingCounts) {
	days := initMap(&c.counters.days)
	all := dayKey{client, "", day}
	days[all] = days[all].Plus(by)
	if label != "" {
		ofLabel := dayKey{client, label, day}
		days[ofLabel] = days[ofLabel].Plus(by)
	}
}

// countUser adds by to the counter of the client's active or inactive users, according to the user's status.
func (c *Change) countUser(u *domain.User, by int) {
	n := c.counters.clients[u.Client]
	if u.Status == domain.Active {
		n.active += by
	} else {
		n.inactive += by
	}
	initMap(&c.counters.clients)[u.Client] = n
}

// FrameworksChanged registers that a client's list of assigned frameworks is to be determined and stored at the end of
// the change. The audiences of the client must be locked.
func (c *Change) FrameworksChanged(client domain.ClientID) {
	initMap(&c.counters.frameworks)[client] = struct{}{}
}

// CountClients adds by to a partner's counter of clients.
func (c *Change) CountClients(partner domain.PartnerID, by int) {
	initMap(&c.counters.partners)[partner] += by
}

// flushCounters writes the counters of simulated emails, of users and of clients, and the lists of assigned frameworks.
// It comes late in a change, because all changes of a client or a partner wait for each other's locks on these rows.
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
	for _, partner := range sortedIDs(c.counters.partners) { // a change has at most one partner
		c.WillLock(PartnerLocks)
		archived, err := pg.All[bool](ctx, c, "count a partner's clients", pg.SQL(
			"UPDATE partners SET client_count = client_count + ?1::integer WHERE id = ?0 RETURNING ?1 > 0 AND archived_at IS NOT NULL",
			partner, c.counters.partners[partner]))
		if err == nil && slices.Contains(archived, true) { // archived since the caller's key was checked
			err = domain.ErrConflict("partner", "the partner is archived")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockClients locks clients in the order of their ids, if there are several. This needs its own statement: if an
// UPDATE locked the rows in a subquery, it would then wait again, for later versions of rows, and could deadlock.
func (c *Change) lockClients(ctx context.Context, ids []domain.ClientID) error {
	c.WillLock(ClientLocks)
	if len(ids) < 2 {
		return nil
	}
	return pg.Run(ctx, c, "lock clients", pg.SQL(
		"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
}

// flushUserCounts writes the clients' counters of users, and updated_at of clients whose counters change.
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
	return pg.Run(ctx, c, "count the users of clients", pg.SQL(`
		UPDATE clients AS c SET users_active = users_active + m.active, users_inactive = users_inactive + m.inactive,
			updated_at = greatest(updated_at, ?now)
		FROM unnest(?ids::uuid[], ?active::integer[], ?inactive::integer[]) AS m (id, active, inactive)
		WHERE c.id = m.id`, pg.Named{"ids": pg.IDs(ids), "active": active, "inactive": inactive, "now": c.At}))
}

// flushFrameworks stores the lists of assigned frameworks of clients, sorted and without duplicates.
func (c *Change) flushFrameworks(ctx context.Context) error {
	ids := sortedIDs(c.counters.frameworks)
	if len(ids) == 0 {
		return nil
	}
	if err := c.lockClients(ctx, ids); err != nil {
		return err
	}
	return pg.Run(ctx, c, "list the frameworks of clients", pg.SQL(`
		WITH listed AS MATERIALIZED (
			SELECT k.id, coalesce((
				SELECT array_agg(DISTINCT framework_id ORDER BY framework_id)
				FROM framework_assignments WHERE client_id = k.id), '{}') AS frameworks
			FROM unnest(?0::uuid[]) AS k (id)
		)
		UPDATE clients AS c SET framework_ids = l.frameworks, updated_at = greatest(c.updated_at, ?1)
		FROM listed AS l WHERE c.id = l.id AND c.framework_ids <> l.frameworks`, pg.IDs(ids), c.At))
}

// sortedIDs returns the keys of m in the lock order.
func sortedIDs[K domain.Kind, V any](m map[domain.ID[K]]V) []domain.ID[K] {
	ids := make([]domain.ID[K], 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// dayRow is a row of phishing_days or phishing_label_days whose counters are the differences of a change.
type dayRow struct {
	ClientID domain.ClientID
	LabelKey string
	Day      domain.Date
	domain.PhishingCounts
}

// flushDays adds the counters of simulated emails to phishing_days, and then to phishing_label_days.
func (c *Change) flushDays(ctx context.Context) error {
	var all, ofLabels []dayRow
	for key, n := range c.counters.days {
		switch row := (dayRow{key.client, key.label, key.day, n}); {
		case n == domain.PhishingCounts{}:
		case key.label == "":
			all = append(all, row)
		default:
			ofLabels = append(ofLabels, row)
		}
	}
	if err := c.addDays(ctx, "phishing_days", "client_id, day", all); err != nil {
		return err
	}
	return c.addDays(ctx, "phishing_label_days", "client_id, label_key, day", ofLabels)
}

// addDays adds counters to a table with a primary key, in the order of its keys.
func (c *Change) addDays(ctx context.Context, table, key string, rows []dayRow) error {
	if len(rows) == 0 {
		return nil
	}
	const counters = "sent, opened, clicked, reported, credentials_submitted, attachments_opened"
	c.WillLock(DayLocks)
	return pg.Run(ctx, c, "count simulated emails", pg.SQL(`
		INSERT INTO `+table+` AS p (`+key+`, `+counters+`)
		SELECT `+key+`, `+counters+` FROM json_populate_recordset(NULL::`+table+`, ?::json) ORDER BY `+key+`
		ON CONFLICT (`+key+`) DO UPDATE SET sent = p.sent + excluded.sent, opened = p.opened + excluded.opened,
			clicked = p.clicked + excluded.clicked, reported = p.reported + excluded.reported,
			credentials_submitted = p.credentials_submitted + excluded.credentials_submitted,
			attachments_opened = p.attachments_opened + excluded.attachments_opened`, pg.Objects(rows)))
}
