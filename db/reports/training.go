package reports

import "partnerapi/domain"

// coursesOf is where the user u of the client stands with each course: its
// latest round, as in the view user_training.
const coursesOf = `(
			SELECT DISTINCT ON (a.course_id) a.course_id, a.position, a.assigned_at, a.due_on, a.completed_at
			FROM assignments AS a WHERE a.client_id = @client AND a.user_id = u.id ORDER BY a.course_id, a.round DESC
		) AS t`

// standing counts the courses of the user u of the client: those completed from
// @since until @until, and those that are open, and overdue, on the day @today.
const standing = `(
			SELECT count(*) FILTER (WHERE a.completed_at >= @since AND a.completed_at < @until) AS completed,
				count(*) FILTER (WHERE a.completed_at IS NULL) AS open,
				count(*) FILTER (WHERE a.completed_at IS NULL AND a.due_on < @today::date) AS overdue
			FROM assignments AS a WHERE a.client_id = @client AND a.user_id = u.id
		) AS n`

// CourseProgress counts the active users by their progress in each course that any of them was
// given, by its title.
var CourseProgress = Statement[domain.CourseProgress]{"count training by course", `
	WITH rounds AS (
		SELECT a.course_id, a.due_on, a.completed_at, a.completed_at >= @since AND a.completed_at < @until AS within,
			a.round = max(a.round) OVER (PARTITION BY a.user_id, a.course_id) AS latest
		FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		WHERE a.client_id = @client AND u.status = 'active'
	)
	SELECT c.title, count(*) FILTER (WHERE r.latest) AS users,
		count(r.completed_at) FILTER (WHERE r.latest) AS completed,
		count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on >= @today::date) AS open,
		count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on < @today::date) AS overdue,
		count(*) FILTER (WHERE r.within) AS completed_within
	FROM rounds AS r JOIN courses AS c ON c.id = r.course_id
	GROUP BY c.id ORDER BY c.title COLLATE "C", c.id`}

// TrainingMonths counts the courses that active users were given, and completed,
// by month. Months without any are left out.
var TrainingMonths = Statement[domain.TrainingMonth]{"count training by month", `
	SELECT date_trunc('month', e.at)::date AS month, count(*) FILTER (WHERE NOT e.done) AS assigned,
		count(*) FILTER (WHERE e.done) AS completed
	FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
	CROSS JOIN LATERAL (VALUES (a.assigned_at, false), (a.completed_at, true)) AS e (at, done)
	WHERE a.client_id = @client AND u.status = 'active' AND e.at >= @since AND e.at < @until
	GROUP BY 1 ORDER BY 1`}

// TrainedUsers counts the courses of every active user, and reads the next due one.
var TrainedUsers = Statement[domain.TrainedUser]{"read users' training", `
	SELECT ` + person + `, n.*, c.title AS next_title, u.next_due_on
	FROM ` + reportedUsers + ` LEFT JOIN courses AS c ON c.id = u.next_course_id
	CROSS JOIN LATERAL ` + standing + `
	ORDER BY u.name_key, u.email`}

// usersWithCourses selects where every active user u stands with each course c.
const usersWithCourses = `
	SELECT ` + person + `, c.title, t.assigned_at, t.due_on, t.completed_at
	FROM ` + reportedUsers + ` CROSS JOIN LATERAL ` + coursesOf + ` JOIN courses AS c ON c.id = t.course_id`

// UserCourses reads every active user's progress in each course, in the order of the user's
// list. CompletedCourses reads only completed courses, and OpenCourses only the others, in the
// order of the courses.
var (
	UserCourses = Statement[domain.UserCourse]{"read users' courses", usersWithCourses + `
		ORDER BY u.name_key, u.email, t.position, t.course_id`}
	CompletedCourses = Statement[domain.UserCourse]{"read who completed courses", usersWithCourses + `
		WHERE t.completed_at IS NOT NULL ORDER BY c.title COLLATE "C", c.id, u.name_key, u.email`}
	OpenCourses = Statement[domain.UserCourse]{"read who did not complete courses", usersWithCourses + `
		WHERE t.completed_at IS NULL ORDER BY c.title COLLATE "C", c.id, u.name_key, u.email`}
)

// TrainingByManager and TrainingByDepartment sum up the active users' courses by manager and
// by department; users without one come last.
var (
	TrainingByManager    = teams("manager_email")
	TrainingByDepartment = teams("department")
)

// teams groups the active users by a column of users. A manager's email may be a
// user's; a department never is one, as it has no @.
func teams(column string) Statement[domain.TeamTraining] {
	return Statement[domain.TeamTraining]{"count training by " + column, `
		WITH team AS (
			SELECT nullif(btrim(u.` + column + `), '') AS name, count(*) AS users,
				count(*) FILTER (WHERE n.overdue = 0) AS on_track, sum(n.completed)::bigint AS completed,
				sum(n.open)::bigint AS open, sum(n.overdue)::bigint AS overdue
			FROM users AS u CROSS JOIN LATERAL ` + standing + ` WHERE u.client_id = @client AND u.status = 'active' GROUP BY 1
		)
		SELECT team.*, concat_ws(' ', nullif(m.first_name, ''), nullif(m.last_name, '')) AS manager
		FROM team LEFT JOIN users AS m ON m.client_id = @client AND m.email = team.name
		ORDER BY team.name COLLATE "C" NULLS LAST`}
}
