package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// waitSQL judges the users, alias u, of the audience ?2 of the client ?0 as
// assignSQL does, and notes those who are to be given the course ?1. Who waits for
// the course already is as if it were open. It returns those who were skipped, and
// without an id how many wait now.
const waitSQL = `
	WITH judged AS MATERIALIZED (
		SELECT u.id, CASE WHEN w.user_id IS NOT NULL THEN 'open' ELSE ` + outcomeSQL + ` END AS outcome
		FROM users AS u
		LEFT JOIN waiting_assignments AS w ON w.client_id = u.client_id AND w.user_id = u.id AND w.course_id = ?1
		LEFT JOIN LATERAL (
			SELECT a.round, a.completed_at FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.course_id = ?1 ORDER BY a.round DESC LIMIT 1
		) AS last ON true
		WHERE u.client_id = ?0 AND (?2)
	), waiting AS (
		INSERT INTO waiting_assignments (client_id, user_id, course_id, due_on, notify, asked_at)
		SELECT ?0::uuid, id, ?1::uuid, ?3::date, ?7::boolean, ?4::timestamptz FROM judged WHERE outcome = 'assigned'
		ON CONFLICT DO NOTHING RETURNING user_id
	)
	SELECT id, outcome, 0 AS waiting FROM judged WHERE outcome IN ('inactive', 'already_completed')
	UNION ALL SELECT NULL, 'assigned', count(*) FROM waiting ORDER BY id`

// AssignLater notes that the users of a large audience are to be given a course,
// which AssignWaiting then does. The answer is that of Assign, but for the mails.
func (t *Tenant) AssignLater(
	ctx context.Context, c *Change, n domain.CourseFor, a domain.Audience,
) (domain.Assigned, error) {
	type judged struct {
		ID      *domain.UserID
		Outcome string
		Waiting int
	}
	rows, err := pg.All[judged](ctx, c, "note who is to be given a course", pg.SQL(waitSQL, t.ID, n.Course.ID,
		t.audience(a), n.DueOn, c.At, domain.DateOf(c.At), n.Course.RenewalMonths, n.Notify))
	if err != nil {
		return domain.Assigned{}, err
	}

	out := domain.Assigned{Skipped: []domain.Skipped{}}
	for _, r := range rows {
		if r.ID == nil {
			out.Count = r.Waiting
			continue
		}
		out.Skipped = append(out.Skipped, domain.Skipped{User: *r.ID, Reason: domain.SkipReason(r.Outcome)})
	}
	return out, nil
}

// waitingBatch is how many users are given a course in one transaction.
const waitingBatch = 1000

// waitingRow is one of a batch: users of one client who wait for one course on the
// same terms.
type waitingRow struct {
	ClientID domain.ClientID
	UserID   domain.UserID
	CourseID domain.CourseID
	DueOn    domain.Date
	Notify   bool
}

// claimWaiting takes a batch of a client that waits, chosen at random so that one
// with many waiting delays no other. Its rows are deleted in the transaction that
// gives the course: what a crash cuts short is claimed again.
const claimWaiting = `
	WITH RECURSIVE clients (client_id) AS (
		(SELECT client_id FROM waiting_assignments ORDER BY client_id LIMIT 1)
		UNION ALL
		SELECT (SELECT w.client_id FROM waiting_assignments AS w WHERE w.client_id > c.client_id ORDER BY w.client_id LIMIT 1)
		FROM clients AS c WHERE c.client_id IS NOT NULL
	), terms AS MATERIALIZED (
		SELECT w.client_id, w.course_id, w.due_on, w.notify
		FROM (SELECT client_id FROM clients WHERE client_id IS NOT NULL ORDER BY random() LIMIT 1) AS c
		JOIN LATERAL (
			SELECT * FROM waiting_assignments AS w WHERE w.client_id = c.client_id ORDER BY w.course_id LIMIT 1
		) AS w ON true
	), batch AS MATERIALIZED (
		SELECT w.client_id, w.user_id, w.course_id
		FROM waiting_assignments AS w JOIN terms AS t USING (client_id, course_id, due_on, notify)
		ORDER BY w.user_id LIMIT ? FOR UPDATE OF w SKIP LOCKED
	)
	DELETE FROM waiting_assignments AS w USING batch AS b
	WHERE w.client_id = b.client_id AND w.user_id = b.user_id AND w.course_id = b.course_id
	RETURNING w.client_id, w.user_id, w.course_id, w.due_on, w.notify`

// AssignWaiting gives a course to a batch of those who wait for one, for no caller,
// and returns how many it was: 0 where nobody waits. Each is judged again: who was
// given the course meanwhile, or was deactivated, is passed over. Any number of
// processes may call it at once.
func (d *DB) AssignWaiting(ctx context.Context) (n int, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.lock(waitingLocks)
		rows, err := pg.All[waitingRow](ctx, c, "claim who waits for a course", pg.SQL(claimWaiting, waitingBatch))
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)

		first := rows[0]
		archived, err := pg.One[bool](ctx, c, "look whether a client is archived",
			pg.SQL("SELECT archived_at IS NOT NULL FROM clients WHERE id = ?", first.ClientID))
		if err != nil || archived {
			return err
		}
		course, err := d.Course(ctx, first.CourseID)
		if err != nil {
			return err
		}
		return c.assignBatch(ctx, domain.CourseFor{Course: course, DueOn: first.DueOn, Notify: first.Notify}, rows)
	})
	return n, err
}

func (c *Change) assignBatch(ctx context.Context, n domain.CourseFor, rows []waitingRow) error {
	t := &Tenant{Client: domain.Client{ID: rows[0].ClientID}, db: c.DB}
	ids := make([]domain.UserID, len(rows))
	for i, r := range rows {
		ids[i] = r.UserID
	}
	var err error
	if n.Users, err = t.LockUsers(ctx, c, ids); err != nil {
		return err
	}
	assigned, err := t.Assign(ctx, c, n)
	if err != nil {
		return err
	}
	c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, t.ID, assigned.Mails...) })
	return nil
}
