package db

import (
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of users, and what follows from them.

// importingUsers is a batch of records of users being applied.
type importingUsers struct {
	*Change
	rows    map[any]*userRow
	clients map[domain.ClientID]referredClient
	groups  map[domain.GroupID]domain.ClientID
	// manual are the groups of clients for users who are kept by hand.
	manual map[domain.ClientID]domain.GroupID

	created []domain.User
	changed []userChange
}

type appliedUser = applied[domain.UserRecord, userRow]

// ImportUsers applies records of users, without the collections that they name
// (ImportMemberships). New users are enrolled as of their creation: courses that are
// past their due date by now are overdue, and no event says so. A role is an override
// where the source is not a directory.
func (d *DB) ImportUsers(ctx context.Context, batch []domain.UserRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(
		c *Change, ctx context.Context, batch []domain.UserRecord, results []domain.ImportResult,
	) error {
		return (&importingUsers{Change: c}).apply(ctx, batch, results)
	})
}

func (m *importingUsers) apply(ctx context.Context, batch []domain.UserRecord, results []domain.ImportResult) error {
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	k := kind[domain.UserRecord, userRow]{
		Change: m.Change, rows: m.rows, refuse: m.refusal, finish: m.finish, then: m.then,
		fresh: func(*domain.UserRecord) userRow {
			return userRow{
				Status: domain.Active, PreferredLanguage: domain.English, Source: domain.FromHand, Overrides: []string{},
				CreatedAt: m.At, UpdatedAt: m.At,
			}
		},
		names: &names[userRow]{
			column: "email",
			of:     func(r *userRow) (scope, key string) { return r.ClientID.UUID(), r.Email },
			query: `SELECT u.id, u.client_id::text AS scope, u.email AS key FROM users AS u
				JOIN unnest(?0::text[]::uuid[], ?1::text[]) AS k (client_id, email)
					ON u.client_id = k.client_id AND u.email = k.email`,
			taken: func(by [16]byte) domain.ImportResult { return takenBy("email", domain.UserID(by)) },
		},
	}
	if err := k.apply(ctx, batch, results); err != nil {
		return err
	}
	return m.effects(ctx)
}

// read locks the users that are there, and reads what the records refer to. The
// audiences of all clients that it concerns are shared first.
func (m *importingUsers) read(ctx context.Context, batch []domain.UserRecord) error {
	var groups []domain.GroupID
	for i := range batch {
		if r := &batch[i]; r.Group.Given {
			groups = append(groups, r.Group.Value.ID)
		}
	}
	there, err := pg.All[domain.UserKey](ctx, m, "look for users", pg.SQL(
		`SELECT client_id AS client, id AS "user" FROM users WHERE id = ANY(?::uuid[])`, idsOf(batch)))
	if err != nil {
		return err
	}
	clients := refsOf(batch, func(r *domain.UserRecord) clientRef { return r.Client })
	for _, k := range there {
		clients = append(clients, k.Client)
	}
	clients = sortedUnique(clients)
	if err := m.ShareAudiences(ctx, clients...); err != nil {
		return err
	}
	keyed, users := keyLists(there)
	rows, err := m.lockUserRows(ctx, pg.SQL(isKey, keyed, users))
	if err != nil {
		return err
	}
	m.rows = rowsByID(rows)
	if m.clients, err = m.clientsCalled(ctx, clients); err != nil {
		return err
	}
	return m.readGroups(ctx, clients, groups)
}

func (m *importingUsers) readGroups(ctx context.Context, clients []domain.ClientID, groups []domain.GroupID) error {
	rows, err := pg.All[groupRow](ctx, m, "look for groups", pg.SQL(`
		SELECT client_id, id, manual FROM groups WHERE id = ANY(?0::uuid[])
		UNION SELECT client_id, id, manual FROM groups WHERE manual AND client_id = ANY(?1::uuid[])`,
		pg.IDs(groups), pg.IDs(clients)))
	m.groups, m.manual = map[domain.GroupID]domain.ClientID{}, map[domain.ClientID]domain.GroupID{}
	for _, g := range rows {
		m.groups[g.ID] = g.ClientID
		if g.Manual {
			m.manual[g.ClientID] = g.ID
		}
	}
	return err
}

func (m *importingUsers) refusal(r *domain.UserRecord, before *userRow) domain.ImportResult {
	client := r.Client.Value.ID
	if before != nil {
		client = before.ClientID
	}
	switch {
	case !m.clients[client].There:
		return noSuch("client", "client")
	case r.Group.Given && m.groups[r.Group.Value.ID] != client:
		return noSuch("group", "group")
	}
	return domain.ImportResult{}
}

// finish sets what a record says beside columns: the overrides, and what follows from
// the user's name, title, department and email.
func (m *importingUsers) finish(a *appliedUser) (beside bool, err error) {
	r, u, old := a.record, a.after, pg.Or(a.before, userRow{})
	if a.before == nil {
		if id, there := m.manual[u.ClientID]; there && u.GroupID == nil {
			u.GroupID = &id
		}
	}
	if u.FirstName != old.FirstName || u.LastName != old.LastName {
		u.NameKey = domain.SortKey(domain.FullName(u.FirstName, u.LastName))
	}

	if overrides := textsOf(r.Overrides.Value); r.Overrides.Given && !slices.Equal(overrides, u.Overrides) {
		u.Overrides = overrides
	}
	byHand := !r.Overrides.Given && (u.Source == domain.FromHand || u.Source == domain.FromAPI)
	overridden := slices.Contains(u.Overrides, "role")
	switch {
	case r.Role.Given && byHand && !overridden:
		u.Overrides = append(slices.Clone(u.Overrides), "role")
	case u.Role == "", !r.Role.Given && !overridden && (old.Email != u.Email ||
		pg.Or(old.JobTitle, "") != pg.Or(u.JobTitle, "") || pg.Or(old.Department, "") != pg.Or(u.Department, "")):
		u.Role = domain.ClassifyRole(pg.Or(u.JobTitle, ""), pg.Or(u.Department, ""), u.Email)
	}
	if a.before == nil {
		u.Score = u.Role.Baseline()
	}
	return false, nil
}

func textsOf(fields []domain.Override) []string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = string(f)
	}
	return texts
}

// then notes users who are new, and those who changed.
func (m *importingUsers) then(a *appliedUser) {
	if a.before == nil {
		m.created = append(m.created, a.after.user())
		return
	}
	before, after := a.before.user(), a.after.user()
	if !sameRecord(&before, &after) || !before.CreatedAt.Equal(after.CreatedAt) {
		a.after.UpdatedAt = latest(a.after.UpdatedAt, m.At)
	}
	m.changed = append(m.changed, userChange{before, after})
}

// sameRecord reports whether two states of a user's record are those of one.
func sameRecord(a, b *domain.User) bool {
	return a.SameShown(b) && a.Email == b.Email && a.Source == b.Source && sameGroup(a.Group, b.Group)
}

// effects notes what follows from the batch. New users write no events.
func (m *importingUsers) effects(ctx context.Context) error {
	created := make([]domain.UserKey, len(m.created))
	for i := range m.created {
		u := &m.created[i]
		created[i] = u.Key()
		m.UserChanged(nil, u)
	}
	m.hold(created...)
	for i := range m.changed {
		u := &m.changed[i]
		m.UserChanged(&u.before, &u.after)
		if !sameRecord(&u.before, &u.after) && !m.clients[u.after.Client].Archived {
			m.UserEvent(userEvent(&u.before, &u.after), u.after.Key())
		}
	}
	return m.enrolSince(ctx, created)
}

// enrolSinceSQL gives new users the courses that ?2 asks them for, as of when they
// would have been given them: those of the program when they were created, those of a
// framework when that was assigned, where that was later. What is past its due date on
// the day ?0 is as told of.
const enrolSinceSQL = `
	WITH asked AS MATERIALIZED (
		SELECT a.*, u.created_at FROM (?2) AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
	), wanted AS (
		SELECT a.client_id, a.user_id, a.course_id, true AS from_program, NULL::uuid AS framework, a.place,
			a.created_at AS since, a.due_after_days
		FROM asked AS a WHERE a.framework IS NULL
		UNION ALL
		SELECT a.client_id, a.user_id, a.course_id, false, a.framework, NULL,
			greatest(a.created_at, f.created_at), a.due_after_days
		FROM asked AS a JOIN framework_assignments AS f ON f.client_id = a.client_id AND f.id = a.framework
	)
	INSERT INTO assignments (client_id, user_id, course_id, position, from_program, frameworks, assigned_at, due_on,
		overdue_noted, given_at)
	SELECT client_id, user_id, course_id,
		coalesce(min(place), ?1::integer + row_number() OVER (PARTITION BY client_id, user_id ORDER BY course_id)),
		bool_or(from_program), array_remove(array_agg(DISTINCT framework), NULL), min(since),
		min(since::date + due_after_days), min(since::date + due_after_days) < ?0::date, ?3::timestamptz
	FROM wanted GROUP BY client_id, user_id, course_id`

// enrolSince enrols new users as of their creation: inactive ones too, who were active
// then. Frameworks ask active users only. The audiences of their clients are
// shared.
func (c *Change) enrolSince(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.wantAudiences(users)
	clients, ids := keyLists(users)
	are := pg.SQL(isKey, clients, ids)
	wanted := pg.SQL(`SELECT client_id, user_id, course_id, framework, due_after_days, NULL::integer AS place FROM (?) AS f
		UNION ALL
		SELECT u.client_id, u.id, p.course_id, NULL, p.due_after_days, p.position
		FROM users AS u JOIN program_courses AS p ON p.client_id = u.client_id WHERE ?`, asked(are), are)
	_, err := pg.Exec(ctx, c, "enrol imported users", pg.SQL(enrolSinceSQL, domain.DateOf(c.At), appendedFrom, wanted, c.At))
	return err
}
