package ingest

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Signals of courses started and completed, and of policies signed and published.

// courseEvent is the start or the completion of a course by a user.
type courseEvent struct {
	user   domain.UserKey
	course domain.CourseID
	at     time.Time
}

// unassignedPosition is the position, in a user's list, of a course that was completed without having been assigned. It
// is after all assigned courses.
const unassignedPosition = 1_000_000

// completeSQL completes courses of locked users. The completions are the rows of the arrays ?clients, ?users, ?courses
// and ?times. A course that was not assigned is assigned and completed at once.
//
// A completion after which the renewal time has already passed does not complete an open round (decisions 7.1). A round
// after the first accepts completions from its assignment on or, if that is earlier, from the day on which the renewal
// time of the previous round ended. Earlier completions belong to a finished round, and have no effect. Of several
// completions of a round the latest is kept. It returns the completions that had an effect.
const completeSQL = `
	WITH due AS MATERIALIZED (
		SELECT DISTINCT ON (t.client_id, t.user_id, t.course_id) t.client_id, t.user_id, t.course_id, t.at, last.round,
			last.completed_at IS NULL AS first, last.completed_at = last.assigned_at AND last.round = 1 AS unassigned,
			last.completed_at IS NULL AND coalesce(last.due_on < ?today::date, false) AS overdue
		FROM unnest(?clients::uuid[], ?users::uuid[], ?courses::uuid[], ?times::timestamptz[]) AS t (client_id, user_id, course_id, at)
		JOIN users AS u ON u.client_id = t.client_id AND u.id = t.user_id
		JOIN courses AS c ON c.id = t.course_id
		LEFT JOIN LATERAL (
			SELECT a.round, a.assigned_at, a.due_on, a.completed_at FROM assignments AS a
			WHERE a.client_id = t.client_id AND a.user_id = t.user_id AND a.course_id = t.course_id
			ORDER BY a.round DESC LIMIT 1
		) AS last ON true
		LEFT JOIN assignments AS before ON before.client_id = t.client_id AND before.user_id = t.user_id
			AND before.course_id = t.course_id AND before.round = last.round - 1
		WHERE (last.completed_at IS NULL OR t.at > last.completed_at)
			AND (coalesce(last.round, 1) = 1 OR t.at >= least(last.assigned_at,
				(before.completed_at + make_interval(months => nullif(c.renewal_months, 0)))::date))
			AND NOT (last.round IS NOT NULL AND last.completed_at IS NULL AND c.renewal_months > 0
				AND (t.at + make_interval(months => c.renewal_months))::date <= ?today::date)
		ORDER BY t.client_id, t.user_id, t.course_id, t.at DESC
	), completed AS (
		UPDATE assignments AS a SET completed_at = due.at, updated_at = ?now::timestamptz,
			assigned_at = CASE WHEN due.unassigned THEN due.at ELSE a.assigned_at END,
			due_on = CASE WHEN due.unassigned THEN due.at::date ELSE a.due_on END
		FROM due
		WHERE a.client_id = due.client_id AND a.user_id = due.user_id AND a.course_id = due.course_id AND a.round = due.round
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, direct, position, assigned_at, due_on, completed_at, given_at)
		SELECT due.client_id, due.user_id, due.course_id, true,
			coalesce((SELECT min(position) FROM program_courses
				WHERE client_id = due.client_id AND course_id = due.course_id), ?unassignedPosition::integer),
			due.at, due.at::date, due.at, ?now::timestamptz
		FROM due WHERE due.round IS NULL
		RETURNING client_id, user_id, course_id, position
	), behind AS ( -- the courses after a new one, whose places change
		UPDATE assignments AS a SET updated_at = greatest(a.updated_at, ?now::timestamptz)
		FROM (
			SELECT DISTINCT ON (client_id, user_id) client_id, user_id, position, course_id FROM given
			ORDER BY client_id, user_id, position, course_id
		) AS f
		WHERE a.client_id = f.client_id AND a.user_id = f.user_id AND (a.position, a.course_id) > (f.position, f.course_id)
		AND NOT EXISTS (SELECT 1 FROM due
			WHERE due.client_id = a.client_id AND due.user_id = a.user_id AND due.course_id = a.course_id)
	)
	SELECT client_id AS client, user_id AS "user", course_id, coalesce(round, 1) AS round, at, first, overdue FROM due`

type completedRow struct {
	domain.UserKey
	CourseID domain.CourseID
	Round    int
	At       time.Time
	// First is false for a later completion of the same round.
	First bool
	// Overdue is true if the course was overdue, so that the user's visible count of overdue courses changes.
	Overdue bool
}

// completeCourses completes courses of locked users. The first completion of a round causes an event and a certificate.
func completeCourses(ctx context.Context, c *db.Change, list []courseEvent) error {
	if len(list) == 0 {
		return nil
	}
	values := courseArrays(list)
	values["today"], values["unassignedPosition"], values["now"] = domain.DateOf(c.At), unassignedPosition, c.At
	rows, err := pg.All[completedRow](ctx, c, "complete courses", pg.SQL(completeSQL, values))
	for _, row := range rows {
		c.NextDueChanged(row.UserKey)
		c.Rescore(row.UserKey)
		if row.First {
			c.ObjectEvent(domain.CoursePassed, row.UserKey, row.CourseID.UUID())
			c.RequestMail(row.UserKey, row.At,
				db.MailRequest{Type: domain.CertificateMail, CourseID: row.CourseID.UUID(), Round: row.Round})
		}
		if row.Overdue { // the user's visible count of overdue courses changes
			c.TouchUsers(row.UserKey)
		}
	}
	return err
}

// courseArrays returns events as the parameters ?clients, ?users, ?courses and ?times.
func courseArrays(list []courseEvent) pg.Named {
	clients, users := db.KeyArrays(pg.MapRows(list, func(l *courseEvent) domain.UserKey { return l.user }))
	return pg.Named{
		"clients": clients, "users": users, "courses": pg.MapRows(list, func(l *courseEvent) [16]byte { return l.course }),
		"times": pg.MapRows(list, func(l *courseEvent) time.Time { return l.at }),
	}
}

// startCourses records the times at which locked users started their open courses. The earliest time of a round is
// kept. A start before a later round was assigned, or due for renewal, belongs to a finished round and has no effect.
func startCourses(ctx context.Context, c *db.Change, list []courseEvent) error {
	if len(list) == 0 {
		return nil
	}
	return pg.Run(ctx, c, "start courses", pg.SQL(`
		WITH begun AS (
			SELECT a.client_id, a.user_id, a.course_id, a.round, min(t.at) AS at
			FROM unnest(?clients::uuid[], ?users::uuid[], ?courses::uuid[], ?times::timestamptz[]) AS t (client_id, user_id, course_id, at)
			JOIN assignments AS a USING (client_id, user_id, course_id)
			JOIN courses AS c ON c.id = a.course_id
			LEFT JOIN assignments AS before ON before.client_id = a.client_id AND before.user_id = a.user_id
				AND before.course_id = a.course_id AND before.round = a.round - 1
			WHERE a.completed_at IS NULL AND (a.round = 1 OR t.at >= least(a.assigned_at,
				(before.completed_at + make_interval(months => nullif(c.renewal_months, 0)))::date))
			GROUP BY a.client_id, a.user_id, a.course_id, a.round
		)
		UPDATE assignments AS a SET started_at = least(a.started_at, b.at) FROM begun AS b
		WHERE a.client_id = b.client_id AND a.user_id = b.user_id AND a.course_id = b.course_id AND a.round = b.round
		AND (a.started_at IS NULL OR b.at < a.started_at)`, courseArrays(list)))
}

// signature is the signature of a version of a policy by a user of the same client.
type signature struct {
	user    domain.UserKey
	policy  domain.PolicyID
	version int
	at      time.Time
}

// publication is the publication of a new version of a policy.
type publication struct {
	client domain.ClientID
	policy domain.PolicyID
	at     time.Time
}

// lockPolicies locks policies and returns the client of each. It skips archived ones and those of archived clients.
func lockPolicies(
	ctx context.Context, c *db.Change, ids []domain.PolicyID,
) (map[domain.PolicyID]domain.ClientID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	c.WillLock(db.PolicyLocks)
	rows, err := pg.All[lockedPolicy](ctx, c, "lock policies", pg.SQL(`
		SELECT p.id, p.client_id FROM policies AS p JOIN clients AS c ON c.id = p.client_id AND c.archived_at IS NULL
		WHERE p.id = ANY(?::uuid[]) AND p.archived_at IS NULL
		ORDER BY p.client_id, p.id FOR NO KEY UPDATE OF p`, pg.IDs(ids)))
	return pg.Index(rows, func(r *lockedPolicy) (domain.PolicyID, domain.ClientID) { return r.ID, r.ClientID }), err
}

type lockedPolicy struct {
	ID       domain.PolicyID
	ClientID domain.ClientID
}

// showsSQL is the condition that a signature, alias s, is visible: it is of the current version of a policy, alias p,
// that requires signatures, and has not expired ?now.
const showsSQL = `p.client_id = s.client_id AND p.id = s.policy_id AND p.version = s.version
	AND p.requires_acknowledgment AND p.archived_at IS NULL
	AND s.signed_at > ?now::timestamptz - make_interval(days => p.renewal_period_days)`

// signSQL stores the signatures in the arrays ?clients, ?users, ?policies, ?versions and ?times, and returns the new
// ones that are visible (showsSQL). The counts of their policies become stale.
const signSQL = `
	WITH signed AS (
		INSERT INTO policy_signatures AS s (client_id, policy_id, version, user_id, signed_at, recorded_at)
		SELECT client_id, policy_id, version, user_id, max(at), ?now::timestamptz
		FROM unnest(?clients::uuid[], ?users::uuid[], ?policies::uuid[], ?versions::integer[], ?times::timestamptz[])
			AS t (client_id, user_id, policy_id, version, at)
		GROUP BY client_id, policy_id, version, user_id
		ON CONFLICT (client_id, policy_id, version, user_id)
			DO UPDATE SET signed_at = excluded.signed_at, recorded_at = excluded.recorded_at
			WHERE s.signed_at < excluded.signed_at
		RETURNING client_id, policy_id, version, user_id, signed_at
	), shown AS (
		SELECT s.* FROM signed AS s JOIN policies AS p ON ` + showsSQL + `
	), changed AS (
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?now::timestamptz), counted_until = '-infinity'
		FROM (SELECT DISTINCT client_id, policy_id FROM shown) AS s
		WHERE p.client_id = s.client_id AND p.id = s.policy_id
	)
	SELECT client_id AS client, user_id AS "user", policy_id FROM shown`

// signPolicies stores signatures; the latest of each user and version is kept. A visible signature causes an event. A
// signature of an earlier version is never visible. A signature of a later version becomes visible when publishPolicies
// publishes that version. The users and policies must be locked.
func signPolicies(ctx context.Context, c *db.Change, list []signature) error {
	if len(list) == 0 {
		return nil
	}
	clients, users := db.KeyArrays(pg.MapRows(list, func(s *signature) domain.UserKey { return s.user }))
	shown, err := pg.All[shownSignature](ctx, c, "sign policies", pg.SQL(signSQL, pg.Named{
		"now": c.At, "clients": clients, "users": users,
		"policies": pg.MapRows(list, func(s *signature) [16]byte { return s.policy }),
		"versions": pg.MapRows(list, func(s *signature) int { return s.version }),
		"times":    pg.MapRows(list, func(s *signature) time.Time { return s.at }),
	}))
	signatureEvents(c, shown)
	return err
}

type shownSignature struct {
	domain.UserKey
	PolicyID domain.PolicyID
}

// signatureEvents records the events of visible signatures.
func signatureEvents(c *db.Change, shown []shownSignature) {
	for _, s := range shown {
		c.ObjectEvent(domain.PolicyAgreed, s.UserKey, s.PolicyID.UUID())
	}
}

// publishPolicies adds one to the version of a locked policy for each of its publications, and makes its counts stale
// (counted_until). Its sign-off then consists of the signatures that the new version already has, which cause events.
func publishPolicies(ctx context.Context, c *db.Change, list []publication) error {
	if len(list) == 0 {
		return nil
	}
	shown, err := pg.All[shownSignature](ctx, c, "publish policies", pg.SQL(`
		WITH published AS (
			UPDATE policies AS p SET version = p.version + t.versions, reviewed_at = greatest(p.reviewed_at, t.at),
				published_at = greatest(p.updated_at, ?now::timestamptz), updated_at = greatest(p.updated_at, ?now::timestamptz),
				counted_until = '-infinity'
			FROM (
				SELECT client_id, id, count(*) AS versions, max(at) AS at
				FROM unnest(?clients::uuid[], ?policies::uuid[], ?times::timestamptz[]) AS t (client_id, id, at) GROUP BY client_id, id
			) AS t WHERE p.client_id = t.client_id AND p.id = t.id RETURNING p.*
		)
		SELECT s.client_id AS client, s.user_id AS "user", s.policy_id
		FROM published AS p JOIN policy_signatures AS s ON `+showsSQL,
		pg.Named{
			"now":      c.At,
			"clients":  pg.MapRows(list, func(p *publication) [16]byte { return p.client }),
			"policies": pg.MapRows(list, func(p *publication) [16]byte { return p.policy }),
			"times":    pg.MapRows(list, func(p *publication) time.Time { return p.at }),
		}))
	signatureEvents(c, shown)
	return err
}
