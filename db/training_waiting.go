package db

import (
	"context"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// waitSQL notes, at the time ?2, who is to be given courses (judgedSQL), and who is
// to have them for one more reason. Who waits for a course already is as if it were
// open. It returns those who were skipped, where the reason was direct, and without
// a user how many are to be given each course.
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
	SELECT client_id, course_id, count(*) FILTER (WHERE given) AS given, NULL::uuid AS user_id, '' AS outcome,
		NULL::uuid AS mail, false AS dormant
	FROM counted GROUP BY client_id, course_id
	UNION ALL
	SELECT client_id, course_id, 0, user_id, outcome, NULL, false FROM counted
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
// and returns how many it was: 0 where nobody waits. Each is judged again: who was
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
