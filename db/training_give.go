package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file gives courses to users. Whatever asks for a course (a request, a
// framework, the program of a client) says who is wanted to have which courses:
// a query of the columns client_id, user_id, course_id, from_program, direct,
// frameworks, due_on and notify, with one row for each user and course at the
// most. The judgement of those rows is the same for all of them.

// judgedSQL says what becomes of the rows that the query ?0 wants, on the day ?1.
// Who has a course open, or has completed it within its renewal window, is not
// given it again.
const judgedSQL = `
	wanted AS MATERIALIZED (?0), judged AS MATERIALIZED (
		SELECT w.*, u.created_at, u.next_due_on, u.next_course_id, last.round, last.position,
			coalesce(last.from_program, false) AS was_program, coalesce(last.direct, false) AS was_direct,
			CASE WHEN last.completed_at IS NULL THEN '{}' ELSE ` + standingSQL + ` END AS standing,
			CASE
				WHEN u.status <> 'active' THEN 'inactive'
				WHEN last.round IS NULL THEN 'assigned'
				WHEN last.completed_at IS NULL THEN 'open'
				WHEN c.renewal_months = 0
					OR (last.completed_at + make_interval(months => c.renewal_months))::date > ?1::date
					THEN 'already_completed'
				ELSE 'assigned' END AS outcome
		FROM wanted AS w
		JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id
		JOIN courses AS c ON c.id = w.course_id
		LEFT JOIN LATERAL (
			SELECT a.* FROM assignments AS a
			WHERE a.client_id = w.client_id AND a.user_id = w.user_id AND a.course_id = w.course_id
			ORDER BY a.round DESC LIMIT 1
		) AS last ON true
	)`

// appendedFrom is the position before the first of a course that is not of the
// program: such courses go to the end of a user's list.
const appendedFrom = 1000

// giveSQL gives courses to locked users, at the time ?2. A further round has the
// reasons of the one before it that still stand, and the new ones; who is not given
// a course, having it, gets the new reasons only: a direct one only where the course
// is open. It returns how often each course was given, and with the id of a user
// who was given it the mail and whether the user may be dormant now; also the users
// who were skipped, where the reason was direct.
//
// Of the courses that are due on one day the one with the lowest position, then
// the lowest id, is next. A user who had an open course before is as dormant as
// before, and so is one who completed a course in the last ?4 days: of all others
// the score moves, and what is due next is stored with it.
const giveSQL = `
	WITH ` + judgedSQL + `, chosen AS MATERIALIZED (
		SELECT j.client_id, j.user_id, j.course_id, j.due_on, j.notify, j.next_due_on, j.next_course_id,
			j.from_program OR j.was_program AS from_program, j.direct OR j.was_direct AS direct,
			ARRAY(SELECT unnest(j.frameworks) UNION SELECT unnest(j.standing)) AS frameworks,
			coalesce(j.round, 0) + 1 AS round,
			coalesce(j.position,
				(SELECT min(p.position) FROM program_courses AS p
					WHERE p.client_id = j.client_id AND p.course_id = j.course_id),
				(SELECT greatest(max(a.position), ?3::integer) FROM assignments AS a
					WHERE a.client_id = j.client_id AND a.user_id = j.user_id)
				+ row_number() OVER (PARTITION BY j.client_id, j.user_id ORDER BY j.course_id)) AS position,
			j.next_due_on IS NULL AND j.created_at < ?1::date - ?5::integer AND NOT EXISTS (
				SELECT 1 FROM assignments AS a
				WHERE a.client_id = j.client_id AND a.user_id = j.user_id AND a.completed_at >= ?1::date - ?4::integer
			) AS dormant
		FROM judged AS j WHERE j.outcome = 'assigned'
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, round, position, from_program, direct, frameworks,
			assigned_at, given_at, due_on)
		SELECT client_id, user_id, course_id, round, position, from_program, direct, frameworks, ?2::timestamptz,
			?2::timestamptz, due_on
		FROM chosen
	), justified AS (
		UPDATE assignments AS a SET direct = a.direct OR j.direct AND j.outcome = 'open',
			frameworks = ARRAY(SELECT unnest(a.frameworks) UNION SELECT unnest(j.frameworks))
		FROM judged AS j
		WHERE a.client_id = j.client_id AND a.user_id = j.user_id AND a.course_id = j.course_id AND a.round = j.round
		AND j.outcome IN ('open', 'already_completed')
		AND (j.direct AND j.outcome = 'open' AND NOT a.direct OR NOT j.frameworks <@ a.frameworks)
	), mailed AS (
		INSERT INTO mail_requests (client_id, id, type, user_id, course_id, created_at)
		SELECT client_id, uuid_v7(?2::timestamptz), 'training-invite', user_id, course_id, ?2::timestamptz
		FROM chosen WHERE notify RETURNING client_id, id, user_id, course_id
	), first AS (
		SELECT DISTINCT ON (client_id, user_id) *,
			bool_or(due_on < ?1::date) OVER (PARTITION BY client_id, user_id) AS late
		FROM chosen WHERE NOT dormant ORDER BY client_id, user_id, due_on, position, course_id
	), moved AS MATERIALIZED (
		SELECT f.*, CASE
			WHEN f.next_due_on IS NULL OR f.due_on < f.next_due_on THEN true
			WHEN f.due_on > f.next_due_on THEN false
			ELSE (f.position, f.course_id) < (
				SELECT a.position, a.course_id FROM assignments AS a WHERE a.client_id = f.client_id AND a.user_id = f.user_id
				AND a.course_id = f.next_course_id AND a.completed_at IS NULL LIMIT 1) END AS next
		FROM first AS f
	), shown AS ( -- one more overdue course shows, though what is next may stay the same
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?2::timestamptz),
			next_due_on = CASE WHEN m.next THEN m.due_on ELSE u.next_due_on END,
			next_course_id = CASE WHEN m.next THEN m.course_id ELSE u.next_course_id END
		FROM moved AS m WHERE u.client_id = m.client_id AND u.id = m.user_id AND (m.next OR m.late)
	)
	SELECT client_id, course_id, count(*) AS given, NULL::uuid AS user_id, '' AS outcome, NULL::uuid AS mail,
		false AS dormant
	FROM chosen GROUP BY client_id, course_id
	UNION ALL
	SELECT client_id, course_id, 0, user_id, max(outcome), (array_agg(mail) FILTER (WHERE mail IS NOT NULL))[1],
		bool_or(dormant)
	FROM ( -- not joined: the sizes of these sets cannot be estimated, and loops within loops be chosen
		SELECT client_id, user_id, course_id, outcome, NULL::uuid AS mail, false AS dormant
		FROM judged WHERE direct AND outcome IN ('inactive', 'already_completed')
		UNION ALL
		SELECT client_id, user_id, course_id, 'assigned', NULL, true FROM chosen WHERE dormant
		UNION ALL
		SELECT client_id, user_id, course_id, 'assigned', id, false FROM mailed
	) AS told GROUP BY client_id, user_id, course_id
	ORDER BY user_id, course_id`

// gaveRow is one of what giveSQL returns.
type gaveRow struct {
	ClientID domain.ClientID
	CourseID domain.CourseID
	// Given counts the users who were given the course, in a row without a user.
	Given   int
	UserID  *domain.UserID
	Outcome string
	Mail    *domain.MessageID
	Dormant bool
}

// give gives users, who are locked, the courses that a query wants them to have. It
// takes the same number of statements for any number of users and courses. The
// mails that it asks for are for the caller to send.
func (c *Change) give(ctx context.Context, wanted pg.Query) ([]gaveRow, error) {
	rows, err := pg.All[gaveRow](ctx, c, "give courses", pg.SQL(giveSQL, wanted, domain.DateOf(c.At), c.At,
		appendedFrom, domain.Dormancy, domain.SettlingIn))
	for _, r := range rows {
		if r.Dormant {
			key := domain.UserKey{Client: r.ClientID, User: *r.UserID}
			c.Rescore(key)
			c.courseDueMoved(key)
		}
	}
	return rows, err
}

// mailsOf are the mails that give asked for.
func mailsOf(rows []gaveRow) (mails []domain.MessageID) {
	for _, r := range rows {
		if r.Mail != nil {
			mails = append(mails, *r.Mail)
		}
	}
	return mails
}
