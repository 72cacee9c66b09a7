package db

import (
	"context"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The assignment of courses: immediate, or queued for a large audience.

// LockAudience locks the client's users who are in an audience, and returns their ids, sorted.
func (t *Tenant) LockAudience(ctx context.Context, c *Change, a domain.Audience) ([]domain.UserID, error) {
	return t.lockUsers(ctx, c, t.inAudience(a))
}

// inAudience returns the condition that a user of the client, alias u, is in an audience.
func (t *Tenant) inAudience(a domain.Audience) pg.Query {
	switch a.Type {
	case domain.NamedUsers:
		return pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(a.Users))
	case domain.OfCollection:
		return pg.SQL("u.id IN (SELECT user_id FROM collection_members WHERE client_id = ? AND collection_id = ?)",
			t.ID, a.Collection)
	}
	return pg.SQL("true") // all users
}

// directAssignments selects the assignments of a course, with enroll's columns, to the client's users, alias u, that
// match a condition. They are direct: a caller requested them.
func (t *Tenant) directAssignments(n domain.CourseFor, condition pg.Query) pg.Query {
	return pg.SQL(`
		SELECT u.client_id, u.id AS user_id, ?course::uuid AS course_id, false AS from_program, true AS direct,
			'{}'::uuid[] AS frameworks, ?dueOn::date AS due_on, ?notify::boolean AS notify
		FROM users AS u WHERE u.client_id = ?client AND ?condition`, pg.Named{
		"client": t.ID, "course": n.Course.ID, "dueOn": n.DueOn, "notify": n.Notify, "condition": condition,
	})
}

// Assign assigns a course to users that LockAudience has locked. A user whose completion has expired gets a new round.
// A user who has the course open keeps the round, with an additional reason. Assign takes the same number of statements
// for any number of users.
func (t *Tenant) Assign(ctx context.Context, c *Change, n domain.CourseFor) (domain.Assigned, error) {
	rows, err := c.enroll(ctx, t.directAssignments(n, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(n.Users))))
	return toAssigned(rows), err
}

// toAssigned sums up enroll's rows of one course: some have counts (Given, Open), the others the outcome for a user.
func toAssigned(rows []enrolledRow) domain.Assigned {
	out := domain.Assigned{Skipped: []domain.Skipped{}}
	for _, r := range rows {
		out.Count, out.Open = out.Count+r.Given, out.Open+r.Open
		if r.Outcome == "inactive" || r.Outcome == "already_completed" {
			out.Skipped = append(out.Skipped, domain.Skipped{User: *r.UserID, Reason: domain.SkipReason(r.Outcome)})
		}
	}
	return out
}

// enroll creates all assignments, whatever their reason: a request, a framework or the program of a client. Each
// reason has a query of the wanted assignments, with the columns client_id, user_id, course_id, from_program, direct,
// frameworks, due_on and notify, and at most one row for each user and course.

// outcomesSQL determines the outcome of the wanted assignments, ?wanted, as of ?today. A user who is inactive, has the
// course open, or has completed it within its renewal time does not get it.
const outcomesSQL = `
	wanted AS MATERIALIZED (?wanted), outcomes AS MATERIALIZED (
		SELECT w.*, u.created_at, u.next_due_on, u.next_course_id, last.round, last.position,
			coalesce(last.from_program, false) AS was_program, coalesce(last.direct, false) AS was_direct,
			CASE WHEN last.completed_at IS NULL THEN '{}' ELSE ` + standingSQL + ` END AS standing,
			CASE
				WHEN u.status <> 'active' THEN 'inactive'
				WHEN last.round IS NULL THEN 'assigned'
				WHEN last.completed_at IS NULL THEN 'open'
				WHEN c.renewal_months = 0
					OR (last.completed_at + make_interval(months => c.renewal_months))::date > ?today::date
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

// AppendedFrom is the highest position of courses of the program. Other courses get higher positions, at the end of a
// user's list.
const AppendedFrom = 1000

// enrolSQL enrolls locked users in courses. A further round has the new reasons, and the reasons of the previous round
// that still hold. If a user already has the course, its assignment only gets the new reasons; the direct reason only
// if the course is open. It returns two kinds of rows: for each course, the numbers of users who were enrolled and who
// had the course open; and for each user and course, whether the user gets an email, may have become dormant, or was
// skipped although the assignment is direct.
//
// Of the courses due on the same day, the one with the lowest position, then the lowest id, is next. A user may become
// dormant only if no course was open, and none was completed within ?dormancy days. enroll recomputes the scores of
// these users, which also stores their next course; stored does so for all others.
const enrolSQL = `
	WITH ` + outcomesSQL + `, chosen AS MATERIALIZED (
		SELECT j.client_id, j.user_id, j.course_id, j.due_on, j.notify, j.next_due_on, j.next_course_id,
			j.from_program OR j.was_program AS from_program, j.direct OR j.was_direct AS direct,
			ARRAY(SELECT unnest(j.frameworks) UNION SELECT unnest(j.standing)) AS frameworks,
			coalesce(j.round, 0) + 1 AS round,
			coalesce(j.position,
				(SELECT min(p.position) FROM program_courses AS p
					WHERE p.client_id = j.client_id AND p.course_id = j.course_id),
				(SELECT greatest(max(a.position), ?appendedFrom::integer) FROM assignments AS a
					WHERE a.client_id = j.client_id AND a.user_id = j.user_id)
				+ row_number() OVER (PARTITION BY j.client_id, j.user_id ORDER BY j.course_id)) AS position,
			j.next_due_on IS NULL AND j.created_at < ?today::date - ?settlingIn::integer AND NOT EXISTS (
				SELECT 1 FROM assignments AS a
				WHERE a.client_id = j.client_id AND a.user_id = j.user_id AND a.completed_at >= ?today::date - ?dormancy::integer
			) AS dormant
		FROM outcomes AS j WHERE j.outcome = 'assigned'
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, round, position, from_program, direct, frameworks,
			assigned_at, given_at, due_on)
		SELECT client_id, user_id, course_id, round, position, from_program, direct, frameworks, ?now::timestamptz,
			?now::timestamptz, due_on
		FROM chosen
	), superseded AS (
		UPDATE assignments AS a SET superseded = true FROM chosen AS c
		WHERE c.round > 1 AND a.client_id = c.client_id AND a.user_id = c.user_id AND a.course_id = c.course_id
		AND a.round = c.round - 1
	), foremost AS MATERIALIZED ( -- each user's first new course that is inserted before others
		SELECT DISTINCT ON (client_id, user_id) client_id, user_id, position, course_id FROM chosen
		WHERE round = 1 AND position < ?appendedFrom::integer ORDER BY client_id, user_id, position, course_id
	), behind AS ( -- the courses after it, whose places change; justified updates those that are wanted too
		UPDATE assignments AS a SET updated_at = greatest(a.updated_at, ?now::timestamptz) FROM foremost AS f
		WHERE a.client_id = f.client_id AND a.user_id = f.user_id AND (a.position, a.course_id) > (f.position, f.course_id)
		AND NOT EXISTS (SELECT 1 FROM outcomes AS j
			WHERE j.client_id = a.client_id AND j.user_id = a.user_id AND j.course_id = a.course_id)
	), justified AS (
		UPDATE assignments AS a SET direct = a.direct OR j.direct AND j.outcome = 'open',
			frameworks = ARRAY(SELECT unnest(a.frameworks) UNION SELECT unnest(j.frameworks)),
			updated_at = CASE WHEN (a.position, a.course_id) > (f.position, f.course_id)
				THEN greatest(a.updated_at, ?now::timestamptz) ELSE a.updated_at END
		FROM outcomes AS j LEFT JOIN foremost AS f USING (client_id, user_id)
		WHERE a.client_id = j.client_id AND a.user_id = j.user_id AND a.course_id = j.course_id AND a.round = j.round
		AND j.outcome IN ('open', 'already_completed')
		AND (j.direct AND j.outcome = 'open' AND NOT a.direct OR NOT j.frameworks <@ a.frameworks
			OR (a.position, a.course_id) > (f.position, f.course_id))
	), mailed AS (
		INSERT INTO mail_requests (client_id, id, type, user_id, course_id, created_at)
		SELECT client_id, uuid_v7(?now::timestamptz), ?kind::text, user_id, course_id, ?now::timestamptz
		FROM chosen WHERE notify RETURNING client_id, id, user_id, course_id
	), first AS (
		SELECT DISTINCT ON (client_id, user_id) *,
			bool_or(due_on < ?today::date) OVER (PARTITION BY client_id, user_id) AS late
		FROM chosen WHERE NOT dormant ORDER BY client_id, user_id, due_on, position, course_id
	), moved AS MATERIALIZED (
		SELECT f.*, CASE
			WHEN f.next_due_on IS NULL OR f.due_on < f.next_due_on THEN true
			WHEN f.due_on > f.next_due_on THEN false
			ELSE (f.position, f.course_id) < (
				SELECT a.position, a.course_id FROM assignments AS a WHERE a.client_id = f.client_id AND a.user_id = f.user_id
				AND a.course_id = f.next_course_id AND a.completed_at IS NULL LIMIT 1) END AS next
		FROM first AS f
	), stored AS ( -- a late course changes the visible count of overdue courses
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?now::timestamptz),
			next_due_on = CASE WHEN m.next THEN m.due_on ELSE u.next_due_on END,
			next_course_id = CASE WHEN m.next THEN m.course_id ELSE u.next_course_id END
		FROM moved AS m WHERE u.client_id = m.client_id AND u.id = m.user_id AND (m.next OR m.late)
	)
	SELECT client_id, course_id, count(*) FILTER (WHERE outcome = 'assigned') AS given,
		count(*) FILTER (WHERE outcome = 'open') AS open, NULL::uuid AS user_id, '' AS outcome, NULL::uuid AS mail,
		false AS dormant
	FROM outcomes GROUP BY client_id, course_id
	UNION ALL
	SELECT client_id, course_id, 0, 0, user_id, max(outcome), (array_agg(mail) FILTER (WHERE mail IS NOT NULL))[1],
		bool_or(dormant)
	FROM ( -- not joined: PostgreSQL cannot estimate the sizes of these sets, and might choose nested loops
		SELECT client_id, user_id, course_id, outcome, NULL::uuid AS mail, false AS dormant
		FROM outcomes WHERE direct AND outcome IN ('inactive', 'already_completed')
		UNION ALL
		SELECT client_id, user_id, course_id, 'assigned', NULL, true FROM chosen WHERE dormant
		UNION ALL
		SELECT client_id, user_id, course_id, 'assigned', id, false FROM mailed
	) AS by_user GROUP BY client_id, user_id, course_id
	ORDER BY user_id, course_id`

// enrolledRow is a row of enrolSQL or enrolLaterSQL.
type enrolledRow struct {
	ClientID domain.ClientID
	CourseID domain.CourseID
	// Given is the number of users who were enrolled, and Open of those who had the course open. Both are 0 in rows
	// with a UserID. The other fields are set in these rows only.
	Given, Open int
	UserID      *domain.UserID
	Outcome     string
	Mail        *domain.MessageID
	Dormant     bool
}

// enroll makes, in one statement, the assignments of locked users that the query wanted selects. It stores the next due
// courses, except of users who may have become dormant (rows with Dormant): theirs, and their scores, are
// computed at the end of the change. For notify it emails the users.
func (c *Change) enroll(ctx context.Context, wanted pg.Query) ([]enrolledRow, error) {
	rows, err := pg.All[enrolledRow](ctx, c, "enroll users", pg.SQL(enrolSQL, pg.Named{
		"wanted": wanted, "today": domain.DateOf(c.At), "now": c.At,
		"appendedFrom": AppendedFrom, "dormancy": domain.Dormancy, "settlingIn": domain.SettlingIn,
		"kind": domain.TrainingInvite,
	}))
	for _, r := range rows {
		if r.Dormant {
			key := domain.UserKey{Client: r.ClientID, User: *r.UserID}
			c.Rescore(key)
			c.NextDueChanged(key)
		}
		if r.Mail != nil {
			c.SendMails(r.ClientID, *r.Mail)
		}
	}
	return rows, err
}

// enrolLaterSQL queues the wanted assignments (outcomesSQL), and the reasons to add to assignments. A course that is
// already queued for a user counts as open. It returns the rows of enrolSQL, without emails and dormancy.
const enrolLaterSQL = `
	WITH ` + outcomesSQL + `, counted AS MATERIALIZED (
		SELECT j.*, j.outcome = 'assigned' AND w.user_id IS NULL AS given
		FROM outcomes AS j LEFT JOIN waiting_assignments AS w USING (client_id, user_id, course_id)
	), queued AS (
		INSERT INTO waiting_assignments AS w (client_id, user_id, course_id, due_on, notify, direct, frameworks, asked_at)
		SELECT client_id, user_id, course_id, due_on, notify, direct, frameworks, ?now::timestamptz FROM counted
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

// enrolLater queues the assignments that the query wanted selects, for AssignWaiting. It returns enroll's rows without
// Mail and Dormant. The client's audiences must be locked (LockAudiences): else two calls could both count an
// assignment.
func (c *Change) enrolLater(ctx context.Context, wanted pg.Query) ([]enrolledRow, error) {
	c.WillLock(WaitingLocks)
	return pg.All[enrolledRow](ctx, c, "queue assignments",
		pg.SQL(enrolLaterSQL, pg.Named{"wanted": wanted, "today": domain.DateOf(c.At), "now": c.At}))
}

// AssignLater queues the assignment of a course to the users of a large audience, for AssignWaiting. It returns how
// many of them will get the course, how many have it open, and who is skipped.
func (t *Tenant) AssignLater(
	ctx context.Context, c *Change, n domain.CourseFor, a domain.Audience,
) (domain.Assigned, error) {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return domain.Assigned{}, err
	}
	rows, err := c.enrolLater(ctx, t.directAssignments(n, t.inAudience(a)))
	return toAssigned(rows), err
}

// waitingBatch bounds the assignments that AssignWaiting makes in one transaction.
const waitingBatch = 1000

// waitingRow is a row of waiting_assignments. Whole is the whole row as JSON.
type waitingRow struct {
	ClientID domain.ClientID
	UserID   domain.UserID
	Whole    string
}

// claimWaiting deletes a batch of queued assignments of one client and returns them. The client is chosen at random, so
// that a client with a long queue does not delay others. It skips rows that are locked, or whose user is.
const claimWaiting = `
	WITH RECURSIVE clients (client_id) AS (
		(SELECT client_id FROM waiting_assignments ORDER BY client_id LIMIT 1)
		UNION ALL
		SELECT (SELECT w.client_id FROM waiting_assignments AS w WHERE w.client_id > c.client_id ORDER BY w.client_id LIMIT 1)
		FROM clients AS c WHERE c.client_id IS NOT NULL
	), chosen AS MATERIALIZED (
		SELECT free.client_id
		FROM (SELECT client_id FROM clients WHERE client_id IS NOT NULL ORDER BY random()) AS candidate CROSS JOIN LATERAL (
			SELECT w.client_id
			FROM waiting_assignments AS w JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id
			WHERE w.client_id = candidate.client_id
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

// AssignWaiting makes a batch of queued assignments of one client, as background work, and returns the size of the
// batch: 0 if the queue is empty, or if other transactions have locked all of it. It determines the outcomes again: a
// user who got the course or was deactivated meanwhile is skipped. The assignments of an archived client are deleted.
// Any number of processes may call it concurrently.
func (d *DB) AssignWaiting(ctx context.Context) (n int, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.WillLock(WaitingLocks)
		c.WillLock(UserLocks) // the claim locks the users of its rows
		rows, err := pg.All[waitingRow](ctx, c, "claim queued assignments", pg.SQL(claimWaiting, waitingBatch))
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)

		client := rows[0].ClientID
		archived, err := pg.One[bool](ctx, c, "look whether a client is archived",
			pg.SQL("SELECT archived_at IS NOT NULL FROM clients WHERE id = ?", client))
		if err != nil || archived { // the claim has deleted the rows
			return err
		}
		return c.assignBatch(ctx, client, rows)
	})
	return n, err
}

// assignBatch makes queued assignments of a client.
func (c *Change) assignBatch(ctx context.Context, client domain.ClientID, rows []waitingRow) error {
	t := &Tenant{Client: domain.Client{ID: client}, db: c.DB}
	ids := pg.MapRows(rows, func(r *waitingRow) domain.UserID { return r.UserID })
	if _, err := t.LockUsers(ctx, c, ids); err != nil {
		return err
	}

	jsonRows := pg.MapRows(rows, func(r *waitingRow) string { return r.Whole })
	_, err := c.enroll(ctx, pg.SQL(`
		SELECT client_id, user_id, course_id, false AS from_program, direct, frameworks, due_on, notify
		FROM json_populate_recordset(NULL::waiting_assignments, ?::json)`, "["+strings.Join(jsonRows, ",")+"]"))
	return err
}
