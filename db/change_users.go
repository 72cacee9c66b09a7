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

// What a change does at its end to users, to audiences and to stored counts.

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

// probeUser joins the user, alias u, of a key, alias w, by a probe of an index for each
// key: by a join the planner would read all users for a batch of a thousand, where there
// are up to some 100,000.
const probeUser = `JOIN LATERAL (SELECT * FROM users WHERE client_id = w.client_id AND id = w.user_id LIMIT 1) AS u ON true`

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

// lockUserRows locks the users, alias u, of a condition, as lockUsers does, and reads
// them.
func (c *Change) lockUserRows(ctx context.Context, which pg.Query) ([]userRow, error) {
	keys, err := c.lockUsers(ctx, which)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	clients, users := keyLists(keys)
	return pg.All[userRow](ctx, c, "read users", pg.Rows[userRow]().Where(isKey, clients, users))
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

// A framework that is assigned gives its courses to those who are in its audience
// then, and whoever enters an audience later gets the courses of the frameworks that
// are assigned then. So that neither of two transactions misses the other, each
// client has an advisory lock: who enters shares it, and who changes the framework
// assignments has it alone.

// ShareAudiences keeps the framework assignments of clients as they are until the
// transaction ends. Whoever may bring users into an audience (a new user, one who
// becomes active or has another role, group or collection) calls it before anything
// is locked, and enrol or enterAudiences afterwards.
func (c *Change) ShareAudiences(ctx context.Context, clients ...domain.ClientID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock_shared", pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(clients)))
}

// ShareAudiencesOf is ShareAudiences for the client of a user, who need not exist.
func (c *Change) ShareAudiencesOf(ctx context.Context, user domain.UserID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock_shared",
		pg.SQL("(SELECT client_id AS id FROM users WHERE id = ?) AS l", user))
}

// LockAudiences keeps others from changing the framework assignments of a client,
// and users from entering its audiences, until the transaction ends.
func (c *Change) LockAudiences(ctx context.Context, client domain.ClientID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock", pg.SQL("(SELECT ?::uuid AS id) AS l", client))
}

func (c *Change) lockAudiences(ctx context.Context, function string, clients pg.Query) error {
	type lockedRow struct {
		ID   domain.ClientID
		Lock string // empty
	}
	c.Lock(AudienceLocks)
	lock := function + "(hashtextextended('audiences/' || l.id, 0))::text"
	if trying(ctx) { // for any number of clients in one transaction, which leaves nothing
		lock = "''"
	}
	rows, err := pg.All[lockedRow](ctx, c, "lock the audiences of clients", pg.SQL(
		"SELECT l.id, "+lock+" AS lock FROM ? ORDER BY l.id", clients))
	if c.audiences == nil {
		c.audiences = map[domain.ClientID]bool{}
	}
	for _, r := range rows {
		c.audiences[r.ID] = true
	}
	return err
}

// wantAudiences holds that the audiences of the users' clients are locked or
// shared. Without it is a programming error, which panics where the database was
// opened for tests.
func (c *Change) wantAudiences(users []domain.UserKey) {
	for _, u := range users {
		if c.strict && !c.audiences[u.Client] {
			panic("users enter audiences that are not shared")
		}
	}
}

// counters are what a change adds to stored counters; zero values add nothing.
type counters struct {
	days     map[dayKey]domain.PhishingCounts
	users    []placed
	partners map[domain.PartnerID]int
	// frameworks are the clients whose lists of frameworks are to be made again.
	frameworks map[domain.ClientID]struct{}
}

// dayKey names a client's counters of the mails sent on a day (UTC).
type dayKey struct {
	client domain.ClientID
	day    domain.Date
}

// userCounts counts users by state.
type userCounts struct{ active, inactive int }

// CountMails moves the counters of the mails that a client's users were sent on a
// day.
func (c *Change) CountMails(client domain.ClientID, day domain.Date, by domain.PhishingCounts) {
	if c.counters.days == nil {
		c.counters.days = map[dayKey]domain.PhishingCounts{}
	}
	key := dayKey{client, day}
	c.counters.days[key] = c.counters.days[key].Plus(by)
}

// countUser moves the counters of users of a client and of a block, by one in the user's
// state and place.
func (c *Change) countUser(u *domain.User, by int) {
	one := userCounts{active: by}
	if u.Status != domain.Active {
		one = userCounts{inactive: by}
	}
	c.counters.users = append(c.counters.users, placed{u.Key(), u.CreatedAt, one})
}

// frameworksMoved has a client's list of frameworks made again. The audiences of
// the client are locked.
func (c *Change) frameworksMoved(client domain.ClientID) {
	if c.counters.frameworks == nil {
		c.counters.frameworks = map[domain.ClientID]struct{}{}
	}
	c.counters.frameworks[client] = struct{}{}
}

// countClients moves a partner's counter of clients.
func (c *Change) countClients(partner domain.PartnerID, by int) {
	if c.counters.partners == nil {
		c.counters.partners = map[domain.PartnerID]int{}
	}
	c.counters.partners[partner] += by
}

// flushCounters moves the counters. They come last: what happens to a client or a
// partner at one time meets in these rows, and waits only for the commit of
// others.
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
	for _, partner := range sortedIDs(c.counters.partners) { // of whom a change has one at the most
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

// flushUserCounts moves the clients' counters of users, and those of blocks. Several
// clients are locked in their order by a statement of its own: one that locks a row and
// then updates it follows its versions from the one that the statement began with, and
// may wait there for those who wait for it.
func (c *Change) flushUserCounts(ctx context.Context) error {
	counts := map[domain.ClientID]userCounts{}
	for _, u := range c.counters.users {
		n := counts[u.user.Client]
		counts[u.user.Client] = userCounts{n.active + u.count.active, n.inactive + u.count.inactive}
	}
	ids := sortedIDs(counts)
	if len(ids) == 0 {
		return nil
	}
	active, inactive := make([]int, len(ids)), make([]int, len(ids))
	for i, id := range ids {
		active[i], inactive[i] = counts[id].active, counts[id].inactive
	}
	c.Lock(ClientLocks)
	if len(ids) > 1 {
		_, err := pg.Exec(ctx, c, "lock clients", pg.SQL(
			"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
		if err != nil {
			return err
		}
	}
	sizes, err := pg.All[int](ctx, c, "count the users of clients", pg.SQL(`
		UPDATE clients AS c SET users_active = users_active + m.active, users_inactive = users_inactive + m.inactive,
			updated_at = CASE WHEN m.active = 0 AND m.inactive = 0 THEN updated_at ELSE greatest(updated_at, ?3) END
		FROM unnest(?0::uuid[], ?1::integer[], ?2::integer[]) AS m (id, active, inactive)
		WHERE c.id = m.id RETURNING users_active + users_inactive`, pg.IDs(ids), active, inactive, c.At))
	if err != nil || len(sizes) == 0 || slices.Max(sizes) < largeClient {
		return err
	}
	return c.flushBlocks(ctx)
}

// flushFrameworks stores which frameworks are assigned to clients: each once,
// sorted. Several clients are locked as in flushUserCounts.
func (c *Change) flushFrameworks(ctx context.Context) error {
	ids := sortedIDs(c.counters.frameworks)
	if len(ids) == 0 {
		return nil
	}
	c.Lock(ClientLocks)
	if len(ids) > 1 {
		_, err := pg.Exec(ctx, c, "lock clients", pg.SQL(
			"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
		if err != nil {
			return err
		}
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

// dayRecord is what is added to a row of phishing_days, by its columns.
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

// flushDays moves the counters of simulated mails.
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
