package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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

// appendedFrom is the position before the first of a course that neither the
// program nor a framework placed: such courses go to the end of a user's list.
const appendedFrom = 1000

// outcomeSQL is what becomes of a user, alias u, who is to be given a course, which
// is renewed after ?6 months, on the day ?5; last is the user's last round of it.
const outcomeSQL = `CASE
			WHEN u.status <> 'active' THEN 'inactive'
			WHEN last.round IS NULL THEN 'assigned'
			WHEN last.completed_at IS NULL THEN 'open'
			WHEN ?6 = 0 OR (last.completed_at + make_interval(months => ?6::integer))::date > ?5::date
				THEN 'already_completed'
			ELSE 'assigned' END`

// assignSQL gives the course ?1 to the users ?2 of the client ?0, who are
// locked, due on ?3, at the time ?4 of the day ?5. The course is renewed after
// ?6 months; ?7 asks for mails. It returns those to whom it was given, with the
// mail and whether they may be dormant now, and those who were skipped.
//
// Of two courses that are due on one day the one with the lower position, then
// the lower id, is next. A user who had an open course before is as dormant as
// before, and so is one who completed a course in the last ?9 days: of all others
// the score moves, and what is due next is stored with it.
const assignSQL = `
	WITH judged AS MATERIALIZED (
		SELECT u.id, u.next_due_on, u.next_course_id, u.created_at, last.round, last.position, ` + outcomeSQL + ` AS outcome
		FROM unnest(?2::uuid[]) AS w (id) JOIN users AS u ON u.client_id = ?0 AND u.id = w.id
		LEFT JOIN LATERAL (
			SELECT a.round, a.position, a.completed_at FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.course_id = ?1 ORDER BY a.round DESC LIMIT 1
		) AS last ON true
	), chosen AS MATERIALIZED (
		SELECT j.id, j.next_due_on, j.next_course_id, coalesce(j.round, 0) + 1 AS round, coalesce(j.position,
			(SELECT min(position) FROM program_courses WHERE client_id = ?0 AND course_id = ?1),
			(SELECT greatest(max(a.position), ?8::integer) + 1
				FROM assignments AS a WHERE a.client_id = ?0 AND a.user_id = j.id)
		) AS position,
		j.next_due_on IS NULL AND j.created_at < ?5::date - ?10::integer AND NOT EXISTS (
			SELECT 1 FROM assignments AS a
			WHERE a.client_id = ?0 AND a.user_id = j.id AND a.completed_at >= ?5::date - ?9::integer) AS dormant
		FROM judged AS j WHERE j.outcome = 'assigned'
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, round, position, assigned_at, due_on)
		SELECT ?0::uuid, id, ?1::uuid, round, position, ?4::timestamptz, ?3::date FROM chosen
	), mailed AS (
		INSERT INTO mail_requests (client_id, id, type, user_id, course_id, created_at)
		SELECT ?0::uuid, uuid_v7(?4::timestamptz), 'training-invite', id, ?1::uuid, ?4::timestamptz
		FROM chosen WHERE ?7::boolean RETURNING id, user_id
	), moved AS MATERIALIZED (
		SELECT n.id, CASE
			WHEN n.next_due_on IS NULL OR ?3::date < n.next_due_on THEN true
			WHEN ?3::date > n.next_due_on THEN false
			ELSE (n.position, ?1::uuid) < (
				SELECT a.position, a.course_id FROM assignments AS a WHERE a.client_id = ?0 AND a.user_id = n.id
				AND a.course_id = n.next_course_id AND a.completed_at IS NULL LIMIT 1) END AS next
		FROM chosen AS n WHERE NOT n.dormant
	), shown AS ( -- one more overdue course shows, though what is next may stay the same
		UPDATE users AS u SET updated_at = greatest(u.updated_at, ?4::timestamptz),
			next_due_on = CASE WHEN m.next THEN ?3::date ELSE u.next_due_on END,
			next_course_id = CASE WHEN m.next THEN ?1::uuid ELSE u.next_course_id END
		FROM moved AS m WHERE u.client_id = ?0 AND u.id = m.id AND (m.next OR ?3::date < ?5::date)
	)
	SELECT j.id, j.outcome, m.id AS mail, coalesce(n.dormant, false) AS dormant
	FROM judged AS j LEFT JOIN chosen AS n ON n.id = j.id LEFT JOIN mailed AS m ON m.user_id = j.id
	WHERE j.outcome <> 'open' ORDER BY j.id`

// Assign gives a course to users that LockAudience locked: a further round to
// those whose completion has lapsed. The mails that it asks for are for the
// caller to enqueue. It takes the same number of statements for any number of
// users.
func (t *Tenant) Assign(ctx context.Context, c *Change, n domain.CourseFor) (domain.Assigned, error) {
	type judged struct {
		ID      domain.UserID
		Outcome string
		Mail    *domain.MessageID
		Dormant bool
	}
	rows, err := pg.All[judged](ctx, c, "assign a course", pg.SQL(assignSQL, t.ID, n.Course.ID, pg.IDs(n.Users),
		n.DueOn, c.At, domain.DateOf(c.At), n.Course.RenewalMonths, n.Notify,
		appendedFrom, domain.Dormancy, domain.SettlingIn))
	if err != nil {
		return domain.Assigned{}, err
	}

	out := domain.Assigned{Skipped: []domain.Skipped{}}
	for _, r := range rows {
		if r.Outcome != "assigned" {
			out.Skipped = append(out.Skipped, domain.Skipped{User: r.ID, Reason: domain.SkipReason(r.Outcome)})
			continue
		}
		out.Count++
		if r.Mail != nil {
			out.Mails = append(out.Mails, *r.Mail)
		}
		if r.Dormant {
			key := domain.UserKey{Client: t.ID, User: r.ID}
			c.Rescore(key)
			c.courseDueMoved(key)
		}
	}
	return out, nil
}
