package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
