package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Enrolment of users who enter an audience, and withdrawal of a framework's courses.

// requiresCourse is the condition that the framework assignment f currently requires the framework's course r of the
// user u: training is on, the user is in the audience, and the course is for all roles or for the user's role.
const requiresCourse = `f.training AND (r.role IS NULL OR r.role = u.role) AND (f.audience_type = 'all'
	OR f.audience_type = 'group' AND f.audience_id = u.group_id
	OR f.audience_type = 'collection' AND EXISTS (SELECT 1 FROM collection_members AS m
		WHERE m.client_id = f.client_id AND m.collection_id = f.audience_id AND m.user_id = u.id))`

// standingSQL is an array of the framework assignments that are reasons for an assignment, alias last, of the user u,
// and that still require its course.
const standingSQL = `ARRAY(
	SELECT f.id FROM framework_assignments AS f
	JOIN framework_courses AS r ON r.framework_id = f.framework_id AND r.course_id = last.course_id
	WHERE f.client_id = u.client_id AND f.id = ANY (last.frameworks) AND ` + requiresCourse + `)`

// requiredCourses selects the courses that framework assignments (f) require of active users (u), for the pairs of both
// that match a condition.
func requiredCourses(condition pg.Query) pg.Query {
	return pg.SQL(`
		SELECT u.client_id, u.id AS user_id, r.course_id, f.id AS framework, r.due_after_days
		FROM users AS u JOIN framework_assignments AS f ON f.client_id = u.client_id
		JOIN framework_courses AS r ON r.framework_id = f.framework_id
		WHERE u.status = 'active' AND ? AND `+requiresCourse, condition)
}

// wantedAssignments turns required courses into one row per user and course, without an email (notify), with the
// earliest due date and all frameworks. A NULL framework means the client's program.
func (c *Change) wantedAssignments(required pg.Query) pg.Query {
	return pg.SQL(`
		SELECT client_id, user_id, course_id, bool_or(framework IS NULL) AS from_program, false AS direct,
			array_remove(array_agg(framework), NULL) AS frameworks, ?::date + min(due_after_days) AS due_on, false AS notify
		FROM (?) AS required GROUP BY client_id, user_id, course_id`, domain.DateOf(c.At), required)
}

// EnterAudiences enrolls users, without emails, in the courses of the frameworks that are assigned to their audiences.
// Call it after users become active, or change their role, group or collections. The users must be locked or new, and
// the caller must hold locks of their clients' audiences (LockAudiencesShared). It takes one statement for all users.
func (c *Change) EnterAudiences(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.requireAudienceLock(users)
	_, err := c.enroll(ctx, c.wantedAssignments(requiredCourses(haveKeys(users))))
	return err
}

// EnrolUsers enrolls new users, without emails, in the programs of their clients, and in the courses that frameworks
// require of them. The caller must hold locks of the clients' audiences (LockAudiencesShared).
func (c *Change) EnrolUsers(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.requireAudienceLock(users)
	enrolled := haveKeys(users)
	_, err := c.enroll(ctx, c.wantedAssignments(pg.SQL(`? UNION ALL
		SELECT u.client_id, u.id, p.course_id, NULL, p.due_after_days
		FROM users AS u JOIN program_courses AS p ON p.client_id = u.client_id WHERE ?`, requiredCourses(enrolled), enrolled)))
	return err
}

// RemoveFramework deletes a framework assignment and withdraws its courses. It returns NotFound if there is none.
func (t *Tenant) RemoveFramework(ctx context.Context, c *Change, id domain.FrameworkAssignmentID) error {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return err
	}
	removed, err := pg.Exec(ctx, c, "remove a framework",
		pg.SQL("DELETE FROM framework_assignments WHERE client_id = ? AND id = ?", t.ID, id))
	if err == nil && removed == 0 {
		err = domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return err
	}
	c.FrameworksChanged(t.ID)
	return c.WithdrawFrameworks(ctx, map[domain.ClientID][]domain.FrameworkAssignmentID{t.ID: {id}})
}

// withdrawForCollection withdraws the courses of the framework assignments whose audience is a collection that is to be
// deleted. These remain, and their evaluations become stale. The audiences of the client must be locked.
func (t *Tenant) withdrawForCollection(ctx context.Context, c *Change, id domain.CollectionID) error {
	emptied, err := pg.All[domain.FrameworkAssignmentID](ctx, c, "empty the audiences of frameworks", pg.SQL(`
		UPDATE framework_assignments SET evaluated_at = '-infinity', changed_at = ?now
		WHERE client_id = ?client AND audience_type = 'collection' AND audience_id = ?id RETURNING id`,
		pg.Named{"client": t.ID, "id": id, "now": c.At}))
	if err != nil || len(emptied) == 0 {
		return err
	}
	return c.WithdrawFrameworks(ctx, map[domain.ClientID][]domain.FrameworkAssignmentID{t.ID: emptied})
}

// withdrawSQL deletes the assignments that match withdrawnSQL, and removes the framework assignments ?ids from the
// reasons of the others. It returns the users for whom this changes a visible value ?today: next if their next course
// was deleted, late if an overdue course was, dormant if none is left open and none was completed within ?dormancy
// days.
const withdrawSQL = `
	WITH deleted AS (
		DELETE FROM assignments AS a
		WHERE a.client_id = ?client AND ` + withdrawnSQL + `
		RETURNING a.user_id, a.course_id, a.due_on
	), kept AS (
		UPDATE assignments AS a SET frameworks = ARRAY(SELECT unnest(a.frameworks) EXCEPT SELECT unnest(?ids::uuid[]))
		WHERE a.client_id = ?client AND a.frameworks && ?ids::uuid[] AND NOT (` + withdrawnSQL + `)
	), lost AS (
		SELECT u.id, u.next_course_id = ANY (g.courses) AS next, g.late,
			u.created_at < ?today::date - ?settlingIn::integer
				AND g.n = (SELECT count(*) FROM assignments AS a
					WHERE a.client_id = ?client AND a.user_id = u.id AND a.completed_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM assignments AS a
					WHERE a.client_id = ?client AND a.user_id = u.id AND a.completed_at >= ?today::date - ?dormancy::integer) AS dormant
		FROM (
			SELECT user_id, array_agg(course_id) AS courses, bool_or(due_on < ?today::date) AS late, count(*) AS n
			FROM deleted GROUP BY user_id
		) AS g JOIN users AS u ON u.client_id = ?client AND u.id = g.user_id
	)
	SELECT id, next, late, dormant FROM lost WHERE next OR late OR dormant ORDER BY id`

// withdrawQueuedSQL removes the framework assignments ?1 of the client ?0 from the reasons of queued assignments, and
// deletes the queued assignments that have no other reason.
const withdrawQueuedSQL = `
	WITH fewer AS MATERIALIZED (
		SELECT w.user_id, w.course_id FROM waiting_assignments AS w
		WHERE w.client_id = ?0 AND w.frameworks && ?1::uuid[] ORDER BY w.user_id, w.course_id FOR UPDATE
	), dropped AS (
		DELETE FROM waiting_assignments AS w USING fewer AS f
		WHERE w.client_id = ?0 AND w.user_id = f.user_id AND w.course_id = f.course_id
		AND NOT w.direct AND w.frameworks <@ ?1::uuid[]
	)
	UPDATE waiting_assignments AS w SET frameworks = ARRAY(SELECT unnest(w.frameworks) EXCEPT SELECT unnest(?1::uuid[]))
	FROM fewer AS f
	WHERE w.client_id = ?0 AND w.user_id = f.user_id AND w.course_id = f.course_id
	AND (w.direct OR NOT w.frameworks <@ ?1::uuid[])`

// withdrawQueued deletes the queued assignments of a client whose only reasons are the framework assignments ids, and
// removes ids from the reasons of the others.
func (c *Change) withdrawQueued(ctx context.Context, client domain.ClientID, ids []domain.FrameworkAssignmentID) error {
	c.WillLock(WaitingLocks)
	return pg.Run(ctx, c, "withdraw queued assignments", pg.SQL(withdrawQueuedSQL, client, pg.IDs(ids)))
}

// withdrawnSQL is the condition that an assignment, alias a, is withdrawn with the framework assignments ?ids: they are
// its only reasons, and it was neither started nor completed.
const withdrawnSQL = `a.frameworks && ?ids::uuid[] AND a.frameworks <@ ?ids::uuid[]
	AND NOT a.from_program AND NOT a.direct AND a.completed_at IS NULL AND a.started_at IS NULL`

// updateLaterCourses updates courses of locked users before a withdrawal. It sets updated_at of each user's first
// course to be withdrawn and of the courses after it, whose places in the list change. If a round of a course is to be
// withdrawn, the round before it is not superseded any more, and so visible again.
func (c *Change) updateLaterCourses(
	ctx context.Context, client domain.ClientID, ids []domain.FrameworkAssignmentID,
) error {
	return pg.Run(ctx, c, "move courses up", pg.SQL(`
		UPDATE assignments AS shown SET updated_at = greatest(shown.updated_at, ?now),
			superseded = shown.superseded AND NOT EXISTS (SELECT 1 FROM assignments AS a
				WHERE a.client_id = shown.client_id AND a.user_id = shown.user_id AND a.course_id = shown.course_id
				AND a.round = shown.round + 1 AND `+withdrawnSQL+`)
		FROM (
			SELECT DISTINCT ON (a.user_id) a.user_id, a.position, a.course_id FROM assignments AS a
			WHERE a.client_id = ?client AND `+withdrawnSQL+` ORDER BY a.user_id, a.position, a.course_id
		) AS first
		WHERE shown.client_id = ?client AND shown.user_id = first.user_id
		AND (shown.position, shown.course_id) >= (first.position, first.course_id)`,
		pg.Named{"client": client, "ids": pg.IDs(ids), "now": c.At}))
}

// withdrawAssignments deletes a client's assignments whose only reasons are the framework assignments ids, unless they
// were started or completed, and removes ids from other reasons. It locks the users, and registers the effects on them.
func (c *Change) withdrawAssignments(
	ctx context.Context, client domain.ClientID, ids []domain.FrameworkAssignmentID,
) error {
	_, err := c.LockUserKeys(ctx, pg.SQL(`u.client_id = ? AND EXISTS (SELECT 1 FROM assignments AS a
		WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.frameworks && ?::uuid[])`, client, pg.IDs(ids)))
	if err != nil {
		return err
	}
	if err := c.updateLaterCourses(ctx, client, ids); err != nil {
		return err
	}

	type effects struct {
		ID                  domain.UserID
		Next, Late, Dormant bool // the next course was deleted; an overdue one was; the user may have become dormant
	}
	rows, err := pg.All[effects](ctx, c, "withdraw courses",
		pg.SQL(withdrawSQL, pg.Named{
			"client": client, "ids": pg.IDs(ids), "today": domain.DateOf(c.At),
			"dormancy": domain.Dormancy, "settlingIn": domain.SettlingIn,
		}))
	for _, r := range rows {
		user := domain.UserKey{Client: client, User: r.ID}
		if r.Next {
			c.NextDueChanged(user)
		}
		if r.Late {
			c.TouchUsers(user)
		}
		if r.Dormant {
			c.Rescore(user)
		}
	}
	return err
}

// enrolSinceSQL enrolls new users in the courses ?required as of a past time: the creation of the user or, for a
// framework, of the framework assignment, if that was later. Courses of the program keep their place, others are
// appended from the position ?appendedFrom. Courses that are overdue on the day ?today are marked as noted, and so
// cause no event.
const enrolSinceSQL = `
	WITH required AS MATERIALIZED (
		SELECT a.*, u.created_at FROM (?required) AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
	), wanted AS (
		SELECT a.client_id, a.user_id, a.course_id, true AS from_program, NULL::uuid AS framework, a.place,
			a.created_at AS since, a.due_after_days
		FROM required AS a WHERE a.framework IS NULL
		UNION ALL
		SELECT a.client_id, a.user_id, a.course_id, false, a.framework, NULL,
			greatest(a.created_at, f.created_at), a.due_after_days
		FROM required AS a JOIN framework_assignments AS f ON f.client_id = a.client_id AND f.id = a.framework
	)
	INSERT INTO assignments (client_id, user_id, course_id, position, from_program, frameworks, assigned_at, due_on,
		overdue_noted, given_at)
	SELECT client_id, user_id, course_id,
		coalesce(min(place), ?appendedFrom::integer + row_number() OVER (PARTITION BY client_id, user_id ORDER BY course_id)),
		bool_or(from_program), array_remove(array_agg(DISTINCT framework), NULL), min(since),
		min(since::date + due_after_days), min(since::date + due_after_days) < ?today::date, ?now::timestamptz
	FROM wanted GROUP BY client_id, user_id, course_id`

// EnrolSince enrolls imported users, as of their creation, in the programs of their clients and, if they are active, in
// the courses of frameworks. Inactive users are in the program because they were active at first. The caller must hold
// locks of their clients' audiences (LockAudiencesShared).
func (c *Change) EnrolSince(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.requireAudienceLock(users)
	enrolled := haveKeys(users)
	required := pg.SQL(`SELECT client_id, user_id, course_id, framework, due_after_days, NULL::integer AS place FROM (?) AS f
		UNION ALL
		SELECT u.client_id, u.id, p.course_id, NULL, p.due_after_days, p.position
		FROM users AS u JOIN program_courses AS p ON p.client_id = u.client_id WHERE ?`, requiredCourses(enrolled), enrolled)
	return pg.Run(ctx, c, "enroll imported users", pg.SQL(enrolSinceSQL, pg.Named{
		"today": domain.DateOf(c.At), "appendedFrom": AppendedFrom, "required": required, "now": c.At,
	}))
}

// AssignFrameworksSince enrolls the audiences of imported framework assignments in the courses of the frameworks, as of
// the creation of the user or of the framework assignment, whichever is later.
func (c *Change) AssignFrameworksSince(ctx context.Context, ids []domain.FrameworkAssignmentID) error {
	if len(ids) == 0 {
		return nil
	}
	users, err := c.LockUserKeys(ctx, pg.SQL(`u.status = 'active' AND EXISTS (
		SELECT 1 FROM framework_assignments AS f JOIN framework_courses AS r ON r.framework_id = f.framework_id
		WHERE f.client_id = u.client_id AND f.id = ANY(?::uuid[]) AND `+requiresCourse+`)`, pg.IDs(ids)))
	if err != nil || len(users) == 0 {
		return err
	}
	_, err = c.enroll(ctx, pg.SQL(`
		SELECT client_id, user_id, course_id, false AS from_program, false AS direct,
			array_agg(framework) AS frameworks, min(since + due_after_days) AS due_on, false AS notify
		FROM (?) AS r JOIN LATERAL (
			SELECT greatest(u.created_at, f.created_at)::date AS since
			FROM users AS u, framework_assignments AS f
			WHERE u.client_id = r.client_id AND u.id = r.user_id AND f.client_id = r.client_id AND f.id = r.framework
		) AS later ON true
		GROUP BY client_id, user_id, course_id`, requiredCourses(pg.SQL("f.id = ANY(?::uuid[])", pg.IDs(ids)))))
	if err != nil {
		return err
	}
	// The new assignments get the date of their earliest reason. Overdue ones are marked as noted: they cause no event
	// (decisions 8.1).
	clientIDs, userIDs := KeyArrays(users)
	return pg.Run(ctx, c, "backdate assignments", pg.SQL(`
		UPDATE assignments AS a SET overdue_noted = a.due_on < ?today::date, assigned_at = (
			SELECT min(greatest(u.created_at, f.created_at)) FROM framework_assignments AS f
			JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
			WHERE f.client_id = a.client_id AND f.id = ANY (a.frameworks))
		FROM unnest(?clients::uuid[], ?users::uuid[]) AS k (client_id, user_id)
		WHERE a.client_id = k.client_id AND a.user_id = k.user_id AND a.assigned_at = ?now AND a.completed_at IS NULL
			AND a.frameworks && ?ids::uuid[]`, pg.Named{
		"clients": clientIDs, "users": userIDs, "now": c.At, "today": domain.DateOf(c.At), "ids": pg.IDs(ids),
	}))
}

// WithdrawFrameworks withdraws the courses of framework assignments of clients: first the queued assignments of all
// clients, which come first in the lock order. It takes the same number of statements for any number of users.
func (c *Change) WithdrawFrameworks(
	ctx context.Context, assignments map[domain.ClientID][]domain.FrameworkAssignmentID,
) error {
	clients := sortedIDs(assignments)
	for _, client := range clients {
		if err := c.withdrawQueued(ctx, client, assignments[client]); err != nil {
			return err
		}
	}
	for _, client := range clients {
		if err := c.withdrawAssignments(ctx, client, assignments[client]); err != nil {
			return err
		}
	}
	return nil
}
