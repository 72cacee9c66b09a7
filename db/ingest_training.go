package db

import (
	"context"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// completion is that a user passed a course.
type completion struct {
	user   domain.UserKey
	course domain.CourseID
	at     time.Time
}

// unaskedAt is the position in a user's list of a course that was passed
// without ever having been given: behind all that were.
const unaskedAt = 1_000_000

// completeSQL completes courses of users, who are locked: the rows of the
// arrays ?0 to ?3 of clients, users, courses and times, as of the time ?4. A
// further round is the one that is completed from the day on which the window
// of the round before it ended, or else since it was assigned; an earlier time
// speaks of a round that is over, and changes nothing. Of several completions of
// a round the latest is kept, and only the first to come is an event.
const completeSQL = `
	WITH due AS MATERIALIZED (
		SELECT DISTINCT ON (t.client_id, t.user_id, t.course_id) t.client_id, t.user_id, t.course_id, t.at, last.round,
			last.completed_at IS NULL AS first, last.completed_at = last.assigned_at AND last.round = 1 AS unasked,
			last.completed_at IS NULL AND last.due_on < ?4::date AS overdue
		FROM unnest(?0::uuid[], ?1::uuid[], ?2::uuid[], ?3::timestamptz[]) AS t (client_id, user_id, course_id, at)
		JOIN users AS u ON u.client_id = t.client_id AND u.id = t.user_id
		JOIN courses AS c ON c.id = t.course_id
		LEFT JOIN LATERAL (
			SELECT a.round, a.assigned_at, a.due_on, a.completed_at FROM assignments AS a
			WHERE a.client_id = t.client_id AND a.user_id = t.user_id AND a.course_id = t.course_id ORDER BY a.round DESC LIMIT 1
		) AS last ON true
		LEFT JOIN assignments AS before ON before.client_id = t.client_id AND before.user_id = t.user_id
			AND before.course_id = t.course_id AND before.round = last.round - 1
		WHERE (last.completed_at IS NULL OR t.at > last.completed_at) AND (coalesce(last.round, 1) = 1 OR t.at >= least(
			last.assigned_at, (before.completed_at + make_interval(months => nullif(c.renewal_months, 0)))::date))
		ORDER BY t.client_id, t.user_id, t.course_id, t.at DESC
	), completed AS (
		UPDATE assignments AS a SET completed_at = due.at,
			assigned_at = CASE WHEN due.unasked THEN due.at ELSE a.assigned_at END,
			due_on = CASE WHEN due.unasked THEN due.at::date ELSE a.due_on END
		FROM due
		WHERE a.client_id = due.client_id AND a.user_id = due.user_id AND a.course_id = due.course_id AND a.round = due.round
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on, completed_at)
		SELECT due.client_id, due.user_id, due.course_id,
			coalesce((SELECT min(position) FROM program_courses WHERE client_id = due.client_id AND course_id = due.course_id), ?5),
			due.at, due.at::date, due.at
		FROM due WHERE due.round IS NULL
	), touched AS ( -- how many are overdue is shown, whether or not anything else moves
		UPDATE users AS u SET updated_at = ?4 FROM (SELECT DISTINCT client_id, user_id FROM due WHERE overdue) AS d
		WHERE u.client_id = d.client_id AND u.id = d.user_id
	), told AS (
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT due.client_id, uuid_v7(?4), ?6, due.user_id, due.course_id, ?4 FROM due WHERE due.first
	)
	SELECT client_id AS client, user_id AS "user" FROM due`

// complete completes courses of locked users and moves what is due next. It
// returns the users for whom something changed, whose scores are to follow.
func (d *DB) complete(ctx context.Context, list []completion) ([]domain.UserKey, error) {
	if len(list) == 0 {
		return nil, nil
	}
	keys, courses, times := make([]domain.UserKey, len(list)), make([]domain.CourseID, len(list)), make([]string, len(list))
	for i, c := range list {
		keys[i], courses[i], times[i] = c.user, c.course, timeKey(c.at)
	}
	clients, users := legacyKeyLists(keys)
	var moved []domain.UserKey
	err := d.conn(ctx).NewRaw(completeSQL, uuids(clients), uuids(users), uuids(courses), pgdialect.Array(times), d.Now(),
		unaskedAt, domain.CoursePassed).Scan(ctx, &moved)
	if err != nil || len(moved) == 0 {
		return nil, d.bad("complete courses", err)
	}
	moved = distinct(moved)
	return moved, d.refreshNextDue(ctx, moved)
}

// coursesAmong returns those of the courses that are in the catalogue.
func (d *DB) coursesAmong(ctx context.Context, ids []domain.CourseID) (map[domain.CourseID]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var found []domain.CourseID
	err := d.conn(ctx).NewRaw("SELECT id FROM courses WHERE id = ANY(?::uuid[])", uuids(ids)).Scan(ctx, &found)
	there := make(map[domain.CourseID]bool, len(found))
	for _, id := range found {
		there[id] = true
	}
	return there, d.bad("look for courses", err)
}
