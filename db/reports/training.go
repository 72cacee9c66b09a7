package reports

import (
	"context"
	"iter"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// coursesOf is where the user u of the client ?0 stands with each course: its
// latest round, as in the view user_training.
const coursesOf = `(
			SELECT DISTINCT ON (a.course_id) a.course_id, a.position, a.assigned_at, a.due_on, a.completed_at
			FROM assignments AS a WHERE a.client_id = ?0 AND a.user_id = u.id ORDER BY a.course_id, a.round DESC
		) AS t`

// standing counts the courses of the user u of the client ?0: those completed from
// ?1 until ?2, and those that are open, and overdue, on the day ?3.
const standing = `(
			SELECT count(*) FILTER (WHERE a.completed_at >= ?1 AND a.completed_at < ?2) AS completed,
				count(*) FILTER (WHERE a.completed_at IS NULL) AS open,
				count(*) FILTER (WHERE a.completed_at IS NULL AND a.due_on < ?3::date) AS overdue
			FROM assignments AS a WHERE a.client_id = ?0 AND a.user_id = u.id
		) AS n`

// CourseProgress is where the active users stand with each course that any of them
// was given, by its title.
func CourseProgress(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.CourseProgress, error) {
	since, until := p.Within()
	return pg.All[domain.CourseProgress](ctx, t.DB(), "count training by course", pg.SQL(`
		WITH rounds AS (
			SELECT a.course_id, a.due_on, a.completed_at, a.completed_at >= ?1 AND a.completed_at < ?2 AS within,
				a.round = max(a.round) OVER (PARTITION BY a.user_id, a.course_id) AS latest
			FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
			WHERE a.client_id = ?0 AND u.status = 'active'
		)
		SELECT c.title, count(*) FILTER (WHERE r.latest) AS users,
			count(r.completed_at) FILTER (WHERE r.latest) AS completed,
			count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on >= ?3::date) AS open,
			count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on < ?3::date) AS overdue,
			count(*) FILTER (WHERE r.within) AS completed_within
		FROM rounds AS r JOIN courses AS c ON c.id = r.course_id
		GROUP BY c.id ORDER BY c.title COLLATE "C", c.id`, t.ID, since, until, today(t)))
}

// today is the day (UTC) by the tenant's clock.
func today(t *db.Tenant) domain.Date { return domain.DateOf(t.DB().Now()) }

// TrainingMonths counts the courses that active users were given, and completed,
// by month. Months without any are left out.
func TrainingMonths(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.TrainingMonth, error) {
	since, until := p.Within()
	return pg.All[domain.TrainingMonth](ctx, t.DB(), "count training by month", pg.SQL(`
		SELECT date_trunc('month', e.at)::date AS month, count(*) FILTER (WHERE NOT e.done) AS assigned,
			count(*) FILTER (WHERE e.done) AS completed
		FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		CROSS JOIN LATERAL (VALUES (a.assigned_at, false), (a.completed_at, true)) AS e (at, done)
		WHERE a.client_id = ? AND u.status = 'active' AND e.at >= ? AND e.at < ?
		GROUP BY 1 ORDER BY 1`, t.ID, since, until))
}

// TrainedUsers is where every active user stands.
func TrainedUsers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[domain.TrainedUser, error] {
	since, until := p.Within()
	return pg.Each[domain.TrainedUser](ctx, t.DB(), "read users' training", pg.SQL(`
		SELECT `+person+`, n.*, c.title AS next_title, u.next_due_on
		FROM `+reportedUsers+` LEFT JOIN courses AS c ON c.id = u.next_course_id
		CROSS JOIN LATERAL `+standing+`
		ORDER BY u.name_key, u.email`, t.ID, since, until, today(t)))
}

// UserCourses is where every active user stands with each course, in the order of
// the user's list.
func UserCourses(ctx context.Context, t *db.Tenant) iter.Seq2[domain.UserCourse, error] {
	return pg.Each[domain.UserCourse](ctx, t.DB(), "read users' courses", pg.SQL(`
		SELECT `+person+`, c.title, t.assigned_at, t.due_on, t.completed_at
		FROM `+reportedUsers+` CROSS JOIN LATERAL `+coursesOf+` JOIN courses AS c ON c.id = t.course_id
		ORDER BY u.name_key, u.email, t.position, t.course_id`, t.ID))
}

// CourseUsers are the active users who were given each course: those who completed
// it, or those who did not. They are ordered by the course.
func CourseUsers(ctx context.Context, t *db.Tenant, completed bool) iter.Seq2[domain.UserCourse, error] {
	return pg.Each[domain.UserCourse](ctx, t.DB(), "read courses' users", pg.SQL(`
		SELECT `+person+`, c.title, t.assigned_at, t.due_on, t.completed_at
		FROM `+reportedUsers+` CROSS JOIN LATERAL `+coursesOf+` JOIN courses AS c ON c.id = t.course_id
		WHERE (t.completed_at IS NOT NULL) = ?1::boolean
		ORDER BY c.title COLLATE "C", c.id, u.name_key, u.email`, t.ID, completed))
}

// TrainingByManager and TrainingByDepartment are where the active users stand, by
// what they have in common; those who have none of it come last.
func TrainingByManager(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.TeamTraining, error) {
	return teams(ctx, t, "manager_email", p)
}

// TrainingByDepartment is TrainingByManager by department.
func TrainingByDepartment(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.TeamTraining, error) {
	return teams(ctx, t, "department", p)
}

// teams groups the active users by a column of users. A manager may be a user, and
// no department is one: it has no @.
func teams(ctx context.Context, t *db.Tenant, column string, p domain.ReportPeriod) ([]domain.TeamTraining, error) {
	since, until := p.Within()
	return pg.All[domain.TeamTraining](ctx, t.DB(), "count training by "+column, pg.SQL(`
		WITH team AS (
			SELECT nullif(btrim(u.`+column+`), '') AS name, count(*) AS users,
				count(*) FILTER (WHERE n.overdue = 0) AS on_track, sum(n.completed)::bigint AS completed,
				sum(n.open)::bigint AS open, sum(n.overdue)::bigint AS overdue
			FROM users AS u CROSS JOIN LATERAL `+standing+` WHERE u.client_id = ?0 AND u.status = 'active' GROUP BY 1
		)
		SELECT team.*, concat_ws(' ', nullif(m.first_name, ''), nullif(m.last_name, '')) AS manager
		FROM team LEFT JOIN users AS m ON m.client_id = ?0 AND m.email = team.name
		ORDER BY team.name COLLATE "C" NULLS LAST`, t.ID, since, until, today(t)))
}
