package reports

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// coursesOf is an SQL FROM item, alias t: the latest round of each course of the user u, as in the view user_training.
const coursesOf = `(
			SELECT DISTINCT ON (a.course_id) a.course_id, a.position, a.assigned_at, a.due_on, a.completed_at
			FROM assignments AS a WHERE a.client_id = ?client AND a.user_id = u.id ORDER BY a.course_id, a.round DESC
		) AS t`

// standing is an SQL FROM item, alias n, that counts the courses of the user u: those completed from ?since until
// ?until, those open, and those overdue on the day ?today.
const standing = `(
			SELECT count(*) FILTER (WHERE a.completed_at >= ?since AND a.completed_at < ?until) AS completed,
				count(*) FILTER (WHERE a.completed_at IS NULL) AS open,
				count(*) FILTER (WHERE a.completed_at IS NULL AND a.due_on < ?today::date) AS overdue
			FROM assignments AS a WHERE a.client_id = ?client AND a.user_id = u.id
		) AS n`

// CourseProgress counts, for each course assigned to an active user, the active users by progress, ordered by title.
var CourseProgress = Statement[domain.CourseProgress]{"count training by course", `
	WITH rounds AS (
		SELECT a.course_id, a.due_on, a.completed_at, a.completed_at >= ?since AND a.completed_at < ?until AS within,
			a.round = max(a.round) OVER (PARTITION BY a.user_id, a.course_id) AS latest
		FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		WHERE a.client_id = ?client AND u.status = 'active'
	)
	SELECT c.title, count(*) FILTER (WHERE r.latest) AS users,
		count(r.completed_at) FILTER (WHERE r.latest) AS completed,
		count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on >= ?today::date) AS open,
		count(*) FILTER (WHERE r.latest AND r.completed_at IS NULL AND r.due_on < ?today::date) AS overdue,
		count(*) FILTER (WHERE r.within) AS completed_within
	FROM rounds AS r JOIN courses AS c ON c.id = r.course_id
	GROUP BY c.id ORDER BY c.title COLLATE "C", c.id`}

// TrainingMonths counts the courses that were assigned to active users, and those that they completed, by month. Months
// without either are omitted.
var TrainingMonths = Statement[domain.TrainingMonth]{"count training by month", `
	SELECT date_trunc('month', e.at)::date AS month, count(*) FILTER (WHERE NOT e.done) AS assigned,
		count(*) FILTER (WHERE e.done) AS completed
	FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
	CROSS JOIN LATERAL (VALUES (a.assigned_at, false), (a.completed_at, true)) AS e (at, done)
	WHERE a.client_id = ?client AND u.status = 'active' AND e.at >= ?since AND e.at < ?until
	GROUP BY 1 ORDER BY 1`}

// TrainedUsers counts the courses of every active user, and reads the next due course.
var TrainedUsers = Statement[domain.TrainedUser]{"read users' training", `
	SELECT ` + person + `, n.*, c.title AS next_title, u.next_due_on
	FROM ` + reportedUsers + ` LEFT JOIN courses AS c ON c.id = u.next_course_id
	CROSS JOIN LATERAL ` + standing + `
	ORDER BY u.name_key, u.email_key`}

// usersWithCourses selects the active users u with the latest round t of each of their courses c.
var usersWithCourses = `
	SELECT ` + person + `, c.title, t.assigned_at, t.due_on, t.completed_at
	FROM ` + reportedUsers + ` CROSS JOIN LATERAL ` + coursesOf + ` JOIN courses AS c ON c.id = t.course_id`

// UserCourses reads every active user's progress in each course, ordered by user and by the position in the user's
// list. CompletedCourses reads only completed courses, and OpenCourses only the others; both are ordered by course,
// then by user.
var (
	UserCourses = Statement[domain.UserCourse]{"read users' courses", usersWithCourses + `
		ORDER BY u.name_key, u.email_key, t.position, t.course_id`}
	CompletedCourses = Statement[domain.UserCourse]{"read who completed courses", usersWithCourses + `
		WHERE t.completed_at IS NOT NULL ORDER BY c.title COLLATE "C", c.id, u.name_key, u.email_key`}
	OpenCourses = Statement[domain.UserCourse]{"read who did not complete courses", usersWithCourses + `
		WHERE t.completed_at IS NULL ORDER BY c.title COLLATE "C", c.id, u.name_key, u.email_key`}
)

// TrainingByManager and TrainingByDepartment sum up the active users' courses by manager and by department, which are
// compared and ordered by their keys (decisions 2.8). Users without a manager or department come last, as one row.
var (
	TrainingByManager    = teams("manager_email", domain.EmailKey)
	TrainingByDepartment = teams("department", domain.SortKey)
)

// teamStatement is a Statement with a row for each spelling of a team's name, as it is stored. keyOf returns the key of
// a name.
type teamStatement struct {
	Statement[domain.TeamTraining]
	keyOf func(string) string
}

// All returns a row for each team, with the spelling of the name that most of its users have, without white space
// around it; if several have as many, the first in byte order. Users with a blank name are in no team.
func (s teamStatement) All(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.TeamTraining, error) {
	stored, err := s.Statement.All(ctx, t, p)
	if err != nil {
		return nil, err
	}
	spellings := teamRows{}
	for _, r := range stored {
		name := domain.CleanName(domain.OrZero(r.Name))
		r.Name = domain.OrNil(name)
		spellings.add(name, r)
	}
	unnamed := spellings[""]
	delete(spellings, "")
	names := slices.SortedFunc(maps.Keys(spellings), func(a, b string) int {
		return cmp.Or(cmp.Compare(spellings[b].Users, spellings[a].Users), cmp.Compare(a, b))
	})
	teams := teamRows{}
	for _, name := range names {
		teams.add(s.keyOf(name), *spellings[name])
	}
	if err := nameManagers(ctx, t, teams); err != nil {
		return nil, err
	}
	rows := make([]domain.TeamTraining, 0, len(teams)+1)
	for _, key := range slices.Sorted(maps.Keys(teams)) {
		rows = append(rows, *teams[key])
	}
	if unnamed != nil {
		rows = append(rows, *unnamed)
	}
	return rows, nil
}

// teamRows are rows of teams by a key of their names.
type teamRows map[string]*domain.TeamTraining

// add adds the users and courses of a row to those of the row with the key. If there is none, it becomes that row.
func (rows teamRows) add(key string, r domain.TeamTraining) {
	if row := rows[key]; row != nil {
		row.Add(r)
		return
	}
	rows[key] = &r
}

// nameManagers sets the managers of the teams, by the keys of their addresses, whose own address is spelled otherwise.
func nameManagers(ctx context.Context, t *db.Tenant, teams teamRows) error {
	var keys []string
	for key, team := range teams {
		if team.Manager == "" && strings.Contains(key, "@") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	managers, err := pg.All[struct{ Key, Name string }](ctx, t.DB(), "name managers", pg.SQL(`
		SELECT `+db.EmailKeyOf("m")+` AS key, concat_ws(' ', nullif(m.first_name, ''), nullif(m.last_name, '')) AS name
		FROM users AS m WHERE m.client_id = ? AND `+db.EmailKeyOf("m")+` = ANY(?::text[]) ORDER BY m.created_at DESC, m.id DESC`,
		t.ID, keys))
	for _, m := range managers { // of several, the oldest user is the last
		teams[m.Key].Manager = m.Name
	}
	return err
}

// teams sums up the active users' courses by the stored spellings of a column of users, the name of a team. If the name
// is the email of a user, the row has the user's name as manager. A department is no email, because it has no @.
func teams(column string, keyOf func(string) string) teamStatement {
	return teamStatement{Statement[domain.TeamTraining]{"count training by " + column, `
		WITH team AS (
			SELECT u.` + column + ` AS name, count(*) AS users,
				count(*) FILTER (WHERE n.overdue = 0) AS on_track, sum(n.completed)::bigint AS completed,
				sum(n.open)::bigint AS open, sum(n.overdue)::bigint AS overdue
			FROM users AS u CROSS JOIN LATERAL ` + standing + ` WHERE u.client_id = ?client AND u.status = 'active' GROUP BY 1
		)
		SELECT team.*, concat_ws(' ', nullif(m.first_name, ''), nullif(m.last_name, '')) AS manager
		FROM team LEFT JOIN users AS m ON m.client_id = ?client AND m.email = team.name
		ORDER BY team.name COLLATE "C" NULLS LAST`}, keyOf}
}
