package db

import (
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of users, and what follows from them.

const (
	sharedLock = "pg_advisory_xact_lock_shared"
	soleLock   = "pg_advisory_xact_lock"
)

// UserRecords are users, without the collections that they name (MembershipRecords). New
// ones are enrolled as of their creation: courses that are past their due date by now are
// overdue, and no event says so. A role is an override where the source is not a
// directory; an export's overrides say whether it was set by hand.
var UserRecords Records = &kind[domain.UserRecord, userRow]{
	object: "user", partner: ofPartner("u"), order: "u.client_id, u.created_at, u.id", audiences: sharedLock,
	exported: func(r *userRow, out *domain.UserRecord) error {
		out.Overrides = domain.Give(texts[domain.Override](r.Overrides))
		return nil
	},
	begin: func(ctx context.Context, b *importingUsers) error {
		rows, err := b.lockUserRows(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.ids()))
		b.keep(rows)
		return err
	},
	fresh: func(r *userRow) {
		r.Status, r.PreferredLanguage, r.Source, r.Overrides = domain.Active, domain.English, domain.FromHand, []string{}
	},
	finish: finishUser,
	names: &names[userRow]{
		field: "email", column: "email", held: "t.client_id = k.scope::uuid AND t.email = k.key",
		of: func(r *userRow) name { return name{r.ClientID.UUID(), r.Email} },
	},
	shown: func(before, after *userRow) bool {
		old, now := before.user(), after.user()
		return !sameRecord(&old, &now) || !before.CreatedAt.Equal(after.CreatedAt)
	},
	follow: followUsers,
}

type (
	importingUsers = importing[domain.UserRecord, userRow]
	appliedUser    = applied[domain.UserRecord, userRow]
)

// finishUser sets what a record says beside columns: the overrides, and what follows from
// the user's name, title, department and email.
func finishUser(b *importingUsers, a *appliedUser) error {
	r, u, old := a.record, a.after, pg.Or(a.before, userRow{})
	switch {
	case r.Group.Given && !b.found.find(r.Group.Value).isOf(u.ClientID):
		return noSuch("group", r.Group.Value)
	case a.before == nil && u.GroupID == nil:
		u.GroupID = b.found.find(r.Client.Value).ManualGroup
	}
	if u.FirstName != old.FirstName || u.LastName != old.LastName {
		u.NameKey = domain.SortKey(domain.FullName(u.FirstName, u.LastName))
	}

	if overrides := texts[string](r.Overrides.Value); r.Overrides.Given && !slices.Equal(overrides, u.Overrides) {
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
	return nil
}

// texts are texts as ones of another type.
func texts[To, From ~string](list []From) []To {
	out := make([]To, len(list))
	for i, text := range list {
		out[i] = To(text)
	}
	return out
}

// sameRecord reports whether two states of a user's record are those of one.
func sameRecord(a, b *domain.User) bool {
	return a.SameShown(b) && a.Email == b.Email && a.Source == b.Source && sameGroup(a.Group, b.Group)
}

// followUsers notes what follows from users who are new or changed. New ones, and those of
// archived clients, write no events.
func followUsers(ctx context.Context, b *importingUsers) error {
	created := make([]domain.UserKey, len(b.made))
	for i, a := range b.made {
		u := a.after.user()
		created[i] = u.Key()
		b.UserChanged(nil, &u)
	}
	b.hold(created...)

	clients := make([]domain.ClientID, len(b.changed))
	for i, a := range b.changed {
		clients[i] = a.after.ClientID
	}
	archived, err := b.archivedClients(ctx, clients)
	if err != nil {
		return err
	}
	for _, a := range b.changed {
		before, after := a.before.user(), a.after.user()
		b.UserChanged(&before, &after)
		if !sameRecord(&before, &after) && !archived[after.Client] {
			b.UserEvent(userEvent(&before, &after), after.Key())
		}
	}
	return b.enrolSince(ctx, created)
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
