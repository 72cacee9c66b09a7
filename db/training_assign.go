package db

import (
	"context"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// How courses are assigned: to an audience, to users, and to those who wait for it.

// LockAudience locks the users of an audience and returns them, in the order of
// their ids. Named users that are not the client's are left out.
func (t *Tenant) LockAudience(ctx context.Context, c *Change, a domain.Audience) ([]domain.UserID, error) {
	if a.Type == domain.NamedUsers {
		return t.LockUsers(ctx, c, a.Users)
	}
	return t.lockUsers(ctx, c, t.audience(a))
}

// audience is the condition that a user of the client, alias u, is of an audience.
func (t *Tenant) audience(a domain.Audience) pg.Query {
	switch a.Type {
	case domain.NamedUsers:
		return pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(a.Users))
	case domain.OfCollection:
		return pg.SQL("u.id IN (SELECT user_id FROM collection_members WHERE client_id = ? AND collection_id = ?)",
			t.ID, a.Collection)
	}
	return pg.SQL("true")
}

// directly wants the users, alias u, of a condition to have a course, each of them
// for the reason that somebody asked for it.
func (t *Tenant) directly(n domain.CourseFor, of pg.Query) pg.Query {
	return pg.SQL(`
		SELECT u.client_id, u.id AS user_id, ?1::uuid AS course_id, false AS from_program, true AS direct,
			'{}'::uuid[] AS frameworks, ?2::date AS due_on, ?3::boolean AS notify
		FROM users AS u WHERE u.client_id = ?0 AND ?4`, t.ID, n.Course.ID, n.DueOn, n.Notify, of)
}

// Assign gives a course to users that LockAudience locked: a further round to
// those whose completion has lapsed. Who has it open keeps it, now also for this
// reason. The mails that it asks for are for the caller to enqueue. It takes the
// same number of statements for any number of users.
func (t *Tenant) Assign(ctx context.Context, c *Change, n domain.CourseFor) (domain.Assigned, error) {
	rows, err := c.give(ctx, t.directly(n, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(n.Users))))
	return assigned(rows), err
}

// assigned is what became of a course that was asked for directly.
func assigned(rows []gaveRow) domain.Assigned {
	out := domain.Assigned{Skipped: []domain.Skipped{}, Mails: mailsOf(rows)}
	for _, r := range rows {
		out.Count, out.Open = out.Count+r.Given, out.Open+r.Open
		if r.Outcome == "inactive" || r.Outcome == "already_completed" {
			out.Skipped = append(out.Skipped, domain.Skipped{User: *r.UserID, Reason: domain.SkipReason(r.Outcome)})
		}
	}
	return out
}

// What follows gives courses to users. Whatever asks for a course (a request, a
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
// who was given it the mail and whether the user may be dormant now; also how many
// had the course open, and the users who were skipped, where the reason was direct.
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
	SELECT client_id, course_id, count(*) FILTER (WHERE outcome = 'assigned') AS given,
		count(*) FILTER (WHERE outcome = 'open') AS open, NULL::uuid AS user_id, '' AS outcome, NULL::uuid AS mail,
		false AS dormant
	FROM judged GROUP BY client_id, course_id
	UNION ALL
	SELECT client_id, course_id, 0, 0, user_id, max(outcome), (array_agg(mail) FILTER (WHERE mail IS NOT NULL))[1],
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
	// Given counts the users who were given the course, and Open those who had it
	// open, in a row without a user.
	Given, Open int
	UserID      *domain.UserID
	Outcome     string
	Mail        *domain.MessageID
	Dormant     bool
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

// waitSQL notes, at the time ?2, who is to be given courses (judgedSQL), and who is
// to have them for one more reason. Who waits for a course already is as if it were
// open. It returns those who were skipped, where the reason was direct, and without
// a user how many are to be given each course, and how many have it open.
const waitSQL = `
	WITH ` + judgedSQL + `, counted AS MATERIALIZED (
		SELECT j.*, j.outcome = 'assigned' AND w.user_id IS NULL AS given
		FROM judged AS j LEFT JOIN waiting_assignments AS w USING (client_id, user_id, course_id)
	), noted AS (
		INSERT INTO waiting_assignments AS w (client_id, user_id, course_id, due_on, notify, direct, frameworks, asked_at)
		SELECT client_id, user_id, course_id, due_on, notify, direct, frameworks, ?2::timestamptz FROM counted
		WHERE outcome IN ('assigned', 'open') OR outcome = 'already_completed' AND frameworks <> '{}'
		ORDER BY client_id, user_id, course_id
		ON CONFLICT (client_id, user_id, course_id) DO UPDATE SET direct = w.direct OR excluded.direct,
			frameworks = ARRAY(SELECT unnest(w.frameworks) UNION SELECT unnest(excluded.frameworks))
	)
	SELECT client_id, course_id, count(*) FILTER (WHERE given) AS given,
		count(*) FILTER (WHERE NOT given AND outcome IN ('assigned', 'open')) AS open, NULL::uuid AS user_id,
		'' AS outcome, NULL::uuid AS mail, false AS dormant
	FROM counted GROUP BY client_id, course_id
	UNION ALL
	SELECT client_id, course_id, 0, 0, user_id, outcome, NULL, false FROM counted
	WHERE direct AND outcome IN ('inactive', 'already_completed')
	ORDER BY user_id, course_id`

// giveLater notes that users are to be given the courses that a query wants them to
// have, which AssignWaiting then does. The answer is that of give, but for the
// mails. The audiences of the client are locked (LockAudiences): what waits is
// counted once.
func (c *Change) giveLater(ctx context.Context, wanted pg.Query) ([]gaveRow, error) {
	c.Lock(WaitingLocks)
	return pg.All[gaveRow](ctx, c, "note who is to be given courses",
		pg.SQL(waitSQL, wanted, domain.DateOf(c.At), c.At))
}

// AssignLater notes that the users of a large audience are to be given a course,
// which AssignWaiting then does. The answer is that of Assign, but for the mails.
func (t *Tenant) AssignLater(
	ctx context.Context, c *Change, n domain.CourseFor, a domain.Audience,
) (domain.Assigned, error) {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return domain.Assigned{}, err
	}
	rows, err := c.giveLater(ctx, t.directly(n, t.audience(a)))
	return assigned(rows), err
}

// waitingBatch is how many users are given a course in one transaction.
const waitingBatch = 1000

// waitingRow is one of a batch, with its whole row as JSON.
type waitingRow struct {
	ClientID domain.ClientID
	UserID   domain.UserID
	Whole    string
}

// claimWaiting takes a batch of a client that waits, drawn at random so that one
// with many waiting delays no other. What another transaction holds, a row or its
// user, is passed over, and so is a client of which all is held. Its rows are deleted
// in the transaction that gives the courses: what a crash cuts short is claimed again.
const claimWaiting = `
	WITH RECURSIVE clients (client_id) AS (
		(SELECT client_id FROM waiting_assignments ORDER BY client_id LIMIT 1)
		UNION ALL
		SELECT (SELECT w.client_id FROM waiting_assignments AS w WHERE w.client_id > c.client_id ORDER BY w.client_id LIMIT 1)
		FROM clients AS c WHERE c.client_id IS NOT NULL
	), chosen AS MATERIALIZED (
		SELECT free.client_id
		FROM (SELECT client_id FROM clients WHERE client_id IS NOT NULL ORDER BY random()) AS drawn CROSS JOIN LATERAL (
			SELECT w.client_id
			FROM waiting_assignments AS w JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id
			WHERE w.client_id = drawn.client_id
			LIMIT 1 FOR UPDATE OF w SKIP LOCKED FOR NO KEY UPDATE OF u SKIP LOCKED
		) AS free LIMIT 1
	), batch AS MATERIALIZED (
		SELECT w.client_id, w.user_id, w.course_id
		FROM waiting_assignments AS w JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id
		WHERE w.client_id = (SELECT client_id FROM chosen)
		ORDER BY w.user_id, w.course_id LIMIT ? FOR UPDATE OF w SKIP LOCKED FOR NO KEY UPDATE OF u SKIP LOCKED
	)
	DELETE FROM waiting_assignments AS w USING batch AS b
	WHERE w.client_id = b.client_id AND w.user_id = b.user_id AND w.course_id = b.course_id
	RETURNING w.client_id, w.user_id, to_json(w)::text AS whole`

// AssignWaiting gives courses to a batch of those who wait for them, for no caller,
// and returns how many it was: 0 where no user waits. Each is judged again: who was
// given the course meanwhile, or was deactivated, is passed over. Any number of
// processes may call it at once; it waits for no lock of another transaction on who
// waits, and may return 0 where all of them are held.
func (d *DB) AssignWaiting(ctx context.Context) (n int, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.Lock(WaitingLocks)
		c.Lock(UserLocks)
		rows, err := pg.All[waitingRow](ctx, c, "claim who waits for a course", pg.SQL(claimWaiting, waitingBatch))
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)

		client := rows[0].ClientID
		archived, err := pg.One[bool](ctx, c, "look whether a client is archived",
			pg.SQL("SELECT archived_at IS NOT NULL FROM clients WHERE id = ?", client))
		if err != nil || archived {
			return err
		}
		return c.assignBatch(ctx, client, rows)
	})
	return n, err
}

func (c *Change) assignBatch(ctx context.Context, client domain.ClientID, rows []waitingRow) error {
	t := &Tenant{Client: domain.Client{ID: client}, db: c.DB}
	ids, wanted := make([]domain.UserID, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		ids[i], wanted[i] = r.UserID, r.Whole
	}
	if _, err := t.LockUsers(ctx, c, ids); err != nil {
		return err
	}

	given, err := c.give(ctx, pg.SQL(`
		SELECT client_id, user_id, course_id, false AS from_program, direct, frameworks, due_on, notify
		FROM json_populate_recordset(NULL::waiting_assignments, ?::json)`, "["+strings.Join(wanted, ",")+"]"))
	c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, client, mailsOf(given)...) })
	return err
}
