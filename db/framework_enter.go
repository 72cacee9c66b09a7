package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// What users are given who enter an audience, and what is withdrawn with a framework.

// frameworkAsks is the condition that the framework assignment f, of which r is a
// course, asks the user u for that course as things are now: training is on, and
// the user is in the audience, and of the role where the course has one.
const frameworkAsks = `f.training AND (r.role IS NULL OR r.role = u.role) AND (f.audience_type = 'all'
	OR f.audience_type = 'group' AND f.audience_id = u.group_id
	OR f.audience_type = 'collection' AND EXISTS (SELECT 1 FROM collection_members AS m
		WHERE m.client_id = f.client_id AND m.collection_id = f.audience_id AND m.user_id = u.id))`

// standingSQL are those of the framework assignments for which the user u has the
// round last of a course that still ask for it.
const standingSQL = `ARRAY(
	SELECT f.id FROM framework_assignments AS f
	JOIN framework_courses AS r ON r.framework_id = f.framework_id AND r.course_id = last.course_id
	WHERE f.client_id = u.client_id AND f.id = ANY (last.frameworks) AND ` + frameworkAsks + `)`

// asked are the courses that framework assignments, alias f, ask active users,
// alias u, for, where a condition holds.
func asked(condition pg.Query) pg.Query {
	return pg.SQL(`
		SELECT u.client_id, u.id AS user_id, r.course_id, f.id AS framework, r.due_after_days
		FROM users AS u JOIN framework_assignments AS f ON f.client_id = u.client_id
		JOIN framework_courses AS r ON r.framework_id = f.framework_id
		WHERE u.status = 'active' AND ? AND `+frameworkAsks, condition)
}

// wantedBy wants users to have what is asked of them, as asked says it: a row
// without a framework is of the program. Of several due dates the first counts.
func (c *Change) wantedBy(asked pg.Query) pg.Query {
	return pg.SQL(`
		SELECT client_id, user_id, course_id, bool_or(framework IS NULL) AS from_program, false AS direct,
			array_remove(array_agg(framework), NULL) AS frameworks, ?::date + min(due_after_days) AS due_on, false AS notify
		FROM (?) AS asked GROUP BY client_id, user_id, course_id`, domain.DateOf(c.At), asked)
}

// enterAudiences gives users the courses of the frameworks that are assigned to
// their audiences, whichever way they came to be in them: it is called after users
// were created, became active, or changed their role, group or collections. The
// users are locked or new, and the audiences of their clients are shared
// (ShareAudiences). It takes one statement for any number of users of any clients.
func (c *Change) enterAudiences(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.wantAudiences(users)
	clients, ids := keyLists(users)
	_, err := c.give(ctx, c.wantedBy(asked(pg.SQL(isKey, clients, ids))))
	return err
}

// enrol gives new users their clients' programs, and what enterAudiences gives, on
// the same terms.
func (c *Change) enrol(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.wantAudiences(users)
	clients, ids := keyLists(users)
	are := pg.SQL(isKey, clients, ids)
	_, err := c.give(ctx, c.wantedBy(pg.SQL(`? UNION ALL
		SELECT u.client_id, u.id, p.course_id, NULL, p.due_after_days
		FROM users AS u JOIN program_courses AS p ON p.client_id = u.client_id WHERE ?`, asked(are), are)))
	return err
}

// RemoveFramework removes a framework assignment and withdraws what it asked for.
// NotFound where the client has no such assignment.
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
	c.frameworksMoved(t.ID)
	return t.withdraw(ctx, c, []domain.FrameworkAssignmentID{id})
}

// emptyFrameworks withdraws what the framework assignments of a collection asked
// for: there is nobody in their audience any more. They stay, and are to be
// evaluated anew. The audiences of the client are locked.
func (t *Tenant) emptyFrameworks(ctx context.Context, c *Change, id domain.CollectionID) error {
	emptied, err := pg.All[domain.FrameworkAssignmentID](ctx, c, "empty the audiences of frameworks", pg.SQL(`
		UPDATE framework_assignments SET evaluated_at = '-infinity', changed_at = ?2
		WHERE client_id = ?0 AND audience_type = 'collection' AND audience_id = ?1 RETURNING id`, t.ID, id, c.At))
	if err != nil || len(emptied) == 0 {
		return err
	}
	return t.withdraw(ctx, c, emptied)
}

// withdrawSQL takes the framework assignments ?1 of the client ?0 out of the reasons
// of assignments, and takes assignments back that are there for no other reason, were
// not started and are not completed. It returns, of the users who lost some, those
// for whom that shows as of the day ?2: whether what is next moves, whether there is
// less that is overdue, and whether the user may have been dormant (assignSQL).
const withdrawSQL = `
	WITH gone AS (
		DELETE FROM assignments AS a
		WHERE a.client_id = ?0 AND ` + withdrawnSQL + `
		RETURNING a.user_id, a.course_id, a.due_on
	), kept AS (
		UPDATE assignments AS a SET frameworks = ARRAY(SELECT unnest(a.frameworks) EXCEPT SELECT unnest(?1::uuid[]))
		WHERE a.client_id = ?0 AND a.frameworks && ?1::uuid[] AND NOT (` + withdrawnSQL + `)
	), lost AS (
		SELECT u.id, u.next_course_id = ANY (g.courses) AS next, g.late,
			u.created_at < ?2::date - ?4::integer
				AND g.n = (SELECT count(*) FROM assignments AS a
					WHERE a.client_id = ?0 AND a.user_id = u.id AND a.completed_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM assignments AS a
					WHERE a.client_id = ?0 AND a.user_id = u.id AND a.completed_at >= ?2::date - ?3::integer) AS dormant
		FROM (
			SELECT user_id, array_agg(course_id) AS courses, bool_or(due_on < ?2::date) AS late, count(*) AS n
			FROM gone GROUP BY user_id
		) AS g JOIN users AS u ON u.client_id = ?0 AND u.id = g.user_id
	)
	SELECT id, next, late, dormant FROM lost WHERE next OR late OR dormant ORDER BY id`

// waitingLess takes the framework assignments ?1 of the client ?0 out of what waits,
// and what waits for no other reason with them.
const waitingLess = `
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

// withdraw withdraws what framework assignments of the client asked for, with the
// same number of statements for any number of users.
func (t *Tenant) withdraw(ctx context.Context, c *Change, ids []domain.FrameworkAssignmentID) error {
	if err := t.withdrawWaiting(ctx, c, ids); err != nil {
		return err
	}
	return t.withdrawGiven(ctx, c, ids)
}

func (t *Tenant) withdrawWaiting(ctx context.Context, c *Change, ids []domain.FrameworkAssignmentID) error {
	c.Lock(WaitingLocks)
	_, err := pg.Exec(ctx, c, "withdraw what waits", pg.SQL(waitingLess, t.ID, pg.IDs(ids)))
	return err
}

// withdrawnSQL is the condition that an assignment, alias a, is withdrawn with the
// framework assignments ?1: it is there for no other reason, and not begun.
const withdrawnSQL = `a.frameworks && ?1::uuid[] AND a.frameworks <@ ?1::uuid[]
	AND NOT a.from_program AND NOT a.direct AND a.completed_at IS NULL AND a.started_at IS NULL`

// moveTraining notes that the lists of locked users change from what is withdrawn on:
// courses behind it move up, and an earlier round shows again.
func (t *Tenant) moveTraining(ctx context.Context, c *Change, ids []domain.FrameworkAssignmentID) error {
	_, err := pg.Exec(ctx, c, "move courses up", pg.SQL(`
		UPDATE assignments AS a SET updated_at = greatest(a.updated_at, ?2) FROM (
			SELECT DISTINCT ON (a.user_id) a.user_id, a.position, a.course_id FROM assignments AS a
			WHERE a.client_id = ?0 AND `+withdrawnSQL+` ORDER BY a.user_id, a.position, a.course_id
		) AS first
		WHERE a.client_id = ?0 AND a.user_id = first.user_id AND (a.position, a.course_id) >= (first.position, first.course_id)`,
		t.ID, pg.IDs(ids), c.At))
	return err
}

func (t *Tenant) withdrawGiven(ctx context.Context, c *Change, ids []domain.FrameworkAssignmentID) error {
	_, err := t.lockUsers(ctx, c, pg.SQL(`EXISTS (SELECT 1 FROM assignments AS a
		WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.frameworks && ?::uuid[])`, pg.IDs(ids)))
	if err != nil {
		return err
	}

	if err := t.moveTraining(ctx, c, ids); err != nil {
		return err
	}

	type lost struct {
		ID                  domain.UserID
		Next, Late, Dormant bool
	}
	rows, err := pg.All[lost](ctx, c, "withdraw courses",
		pg.SQL(withdrawSQL, t.ID, pg.IDs(ids), domain.DateOf(c.At), domain.Dormancy, domain.SettlingIn))
	for _, r := range rows {
		user := domain.UserKey{Client: t.ID, User: r.ID}
		if r.Next {
			c.courseDueMoved(user)
		}
		if r.Late {
			c.touch(user)
		}
		if r.Dormant {
			c.Rescore(user)
		}
	}
	return err
}
