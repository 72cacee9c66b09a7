package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The evaluation of frameworks, and its measures.

// evaluateSQL evaluates the framework assignments, alias f, that match the condition ?of and were evaluated before
// ?before. ?measures are the measures of all frameworks. A target is compared with the exact value, not with the
// rounded one.
//
// It locks only framework assignments, in the order of their keys, so that two evaluations cannot deadlock. The second
// one waits, then skips the assignments that are fresh.
const evaluateSQL = `
	WITH stale AS MATERIALIZED (
		SELECT f.client_id, f.id, f.framework_id, f.audience_type, coalesce(f.audience_id, f.client_id) AS audience,
			f.training, f.phishing, f.policies, f.reporting
		FROM framework_assignments AS f WHERE (?of) AND (f.evaluated_at < ?before OR f.evaluated_at > ?ahead)
		ORDER BY f.client_id, f.id FOR NO KEY UPDATE OF f
	), required_measures AS MATERIALIZED (
		SELECT s.client_id, s.id, m.place, m.key, m.target, m.at_most, m.idle
		FROM stale AS s JOIN ?measures ON m.framework_id = s.framework_id
		WHERE CASE m.module WHEN 'training' THEN s.training WHEN 'phishing' THEN s.phishing
			WHEN 'policies' THEN s.policies WHEN 'reporting' THEN s.reporting END
	), needs AS MATERIALIZED (
		SELECT s.client_id,
			coalesce(bool_or(a.key IN ('T1', 'T2', 'T3')), false) AS courses,
			coalesce(bool_or(a.key IN ('P1', 'P2', 'P3')), false) AS mails,
			coalesce(bool_or(a.key = 'P4'), false) AS failures, coalesce(bool_or(a.key = 'A1'), false) AS signatures,
			coalesce(bool_or(a.key = 'A2'), false) AS reviews, coalesce(bool_or(a.key = 'R1'), false) AS reports
		FROM stale AS s LEFT JOIN required_measures AS a ON a.client_id = s.client_id AND a.id = s.id
		GROUP BY s.client_id
	), ` + factsSQL + `, ` + cohortsSQL + `, ` + measuresSQL + `, compared AS (
		SELECT v.*, coalesce(CASE WHEN at_most THEN exact <= target ELSE exact >= target END, false) AS met
		FROM (
			SELECT m.*, CASE WHEN whole IS NULL THEN part WHEN whole = 0 THEN idle::numeric
				ELSE 100.0 * part / whole END AS exact
			FROM measured AS m
		) AS v
	), evaluated AS MATERIALIZED (
		SELECT client_id, id, count(*) AS total, count(*) FILTER (WHERE met) AS met,
			jsonb_agg(jsonb_build_object('key', key, 'met', met, 'value', round(exact, 1), 'part', part, 'whole', whole)
				ORDER BY place) AS requirements
		FROM compared GROUP BY client_id, id
	)
	UPDATE framework_assignments AS f SET requirements = coalesce(e.requirements, '[]'),
		met = coalesce(e.met, 0), total = coalesce(e.total, 0), evaluated_at = ?now,
		changed_at = CASE WHEN f.requirements IS DISTINCT FROM coalesce(e.requirements, '[]') THEN ?stamp::timestamptz
			ELSE coalesce(f.changed_at, f.created_at) END
	FROM stale AS s LEFT JOIN evaluated AS e ON e.client_id = s.client_id AND e.id = s.id
	WHERE f.client_id = s.client_id AND f.id = s.id`

// evaluate evaluates the framework assignments, alias f, that match a condition and were evaluated before a time, in
// one statement.
func (d *DB) evaluate(ctx context.Context, condition pg.Query, before time.Time) error {
	return d.Stamped(ctx, func(ctx context.Context, stamp time.Time) error {
		now := d.Now() // which follows a step of the clock back, as the age of an evaluation does
		return pg.Run(ctx, d, "evaluate frameworks", pg.SQL(evaluateSQL, pg.Named{
			"of": condition, "before": before, "ahead": domain.Ahead(now), "now": now, "stamp": stamp, "today": domain.DateOf(now),
			"measures": measuresOfFrameworks(), "roles": domain.Role("").Values(),
		}))
	})
}

// EvaluateStale evaluates the client's framework assignments whose evaluation is older than domain.SummaryAge, or lies
// ahead of the clock, in one statement. A cheap statement first checks whether there are any.
func (t *Tenant) EvaluateStale(ctx context.Context) error {
	now := t.db.Now()
	ofClient, before := pg.SQL("f.client_id = ?", t.ID), now.Add(-domain.SummaryAge)
	stale, err := pg.One[bool](ctx, t.db, "look for stale evaluations", pg.Prepared(pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM framework_assignments AS f WHERE ?ofClient AND (f.evaluated_at < ?before OR f.evaluated_at > ?ahead))",
		pg.Named{"ofClient": ofClient, "before": before, "ahead": domain.Ahead(now)})))
	if err != nil || !stale {
		return err
	}
	return t.db.evaluate(ctx, ofClient, before)
}

// Evaluate evaluates one of the client's framework assignments, which the change has inserted or locked, even if it is
// fresh. To see the effects of the change, call it after Flush.
func (c *Change) Evaluate(ctx context.Context, t *Tenant, id domain.FrameworkAssignmentID) error {
	// Later than any evaluated_at.
	farFuture := c.Now().AddDate(1000, 0, 0)
	return c.evaluate(ctx, pg.SQL("f.client_id = ? AND f.id = ?", t.ID, id), farFuture)
}

// evaluationRow holds the columns of framework_assignments with its evaluation.
type evaluationRow struct {
	Requirements []requirement
	Met          int
	Total        int
	EvaluatedAt  time.Time
}

// requirement is a requirement of a stored evaluation. Part and Whole are the numerator and denominator of measuresSQL,
// nil for NULL.
type requirement struct {
	Key   domain.Measure `json:"key"`
	Met   bool           `json:"met"`
	Value *float64       `json:"value"`
	Part  *int           `json:"part"`
	Whole *int           `json:"whole"`
}

// evaluationOf converts the evaluation of a row.
func evaluationOf(r evaluationRow) domain.Evaluation {
	return domain.Evaluation{
		Requirements: pg.MapRows(r.Requirements, func(s *requirement) domain.Requirement {
			return domain.Requirement{Key: s.Key, Met: s.Met, Value: s.Value, Detail: detail(s.Key, s.Part, s.Whole)}
		}), Met: r.Met, Total: r.Total, At: r.EvaluatedAt,
	}
}

// factsSQL has one row for each active user of the clients in needs (alias n), to be used for all framework assignments
// of the client. role is the role's index in ?roles. A fact that no framework assignment of the client needs is not
// read, and is 0.
//
// Sets of courses are bit sets, with the bits of the courses in bits. done has the framework courses completed within
// 365 days, and prompt the number of these completed within 30 days of the user's creation. simulated is 1 if an email
// was sent to the user within 90 days. sent, clicked and reported count emails of the last 90 days (UTC), like a
// client's summary, without actions of mail scanners. failed is 1 if the user's first failed simulation within 365 days
// is at least 30 days old, and followed is 1 if a course was completed within 30 days of it. unsigned is 1 if the user
// has not signed the current version of a required policy.
//
// One aggregation merges all facts of a user, because PostgreSQL cannot estimate the sizes of joins between them.
const factsSQL = `
	bits AS MATERIALIZED (
		SELECT course_id, 1::bigint << (row_number() OVER (ORDER BY course_id) - 1)::integer AS bit
		FROM framework_courses WHERE framework_id IN (SELECT framework_id FROM stale) GROUP BY course_id
	), completions AS (
		SELECT u.client_id, u.id AS user_id, bit_or(b.bit) AS done, coalesce(bit_or(b.bit) FILTER (
			WHERE a.completed_at BETWEEN u.created_at AND u.created_at + interval '30 days'), 0) AS prompt
		FROM needs AS n JOIN users AS u ON u.client_id = n.client_id AND u.status = 'active'
		JOIN assignments AS a ON a.client_id = u.client_id AND a.user_id = u.id
		JOIN bits AS b ON b.course_id = a.course_id
		WHERE n.courses AND a.completed_at >= ?now::timestamptz - interval '365 days'
		GROUP BY u.client_id, u.id
	), mails AS (
		SELECT r.client_id, r.user_id, (r.sent_at >= (?today::date - 89)::timestamptz)::integer AS sent,
			(r.status IN ('attachment_opened', 'clicked', 'credentials_submitted'))::integer AS clicked,
			r.reported::integer AS reported
		FROM needs AS n JOIN phishing_results AS r ON r.client_id = n.client_id
		WHERE n.mails AND r.sent_at >= ?now::timestamptz - interval '90 days'
	), failures AS (
		SELECT r.client_id, r.user_id,
			min(least(r.clicked_at, r.credentials_submitted_at, r.attachment_opened_at)) AS at
		FROM needs AS n JOIN phishing_results AS r ON r.client_id = n.client_id
		WHERE n.failures
			AND ` + FellFor + `
			AND least(r.clicked_at, r.credentials_submitted_at, r.attachment_opened_at) >= ?now::timestamptz - interval '365 days'
		GROUP BY r.client_id, r.user_id
	), unsigned AS (
		SELECT asks.client_id, asks.user_id FROM (
			SELECT p.*, u.id AS user_id
			FROM needs AS n JOIN policies AS p ON p.client_id = n.client_id AND p.scope_type = 'tenant'
			JOIN users AS u ON u.client_id = p.client_id AND u.status = 'active'
			WHERE n.signatures
			UNION ALL
			SELECT p.*, u.id
			FROM needs AS n JOIN policies AS p ON p.client_id = n.client_id AND p.scope_type = 'user_container'
			JOIN users AS u ON u.client_id = p.client_id AND u.status = 'active' AND u.group_id = p.scope_id
			WHERE n.signatures
			UNION ALL
			SELECT p.*, m.user_id
			FROM needs AS n JOIN policies AS p ON p.client_id = n.client_id AND p.scope_type = 'collection'
			JOIN collection_members AS m ON m.client_id = p.client_id AND m.collection_id = p.scope_id
			WHERE n.signatures
		) AS asks
		WHERE asks.requires_acknowledgment AND asks.archived_at IS NULL AND NOT EXISTS (
			SELECT 1 FROM policy_signatures AS s
			WHERE s.client_id = asks.client_id AND s.policy_id = asks.id AND s.version = asks.version
				AND s.user_id = asks.user_id
				AND s.signed_at > ?now::timestamptz - make_interval(days => asks.renewal_period_days))
	), facts AS MATERIALIZED (
		SELECT client_id, user_id, max(role) AS role, max(new) AS new, max(overdue) AS overdue,
			max(done) AS done, max(prompt) AS prompt, max(simulated) AS simulated,
			sum(sent) AS sent, sum(clicked) AS clicked, sum(reported) AS reported,
			max(failed) AS failed, max(followed) AS followed, max(unsigned) AS unsigned
		FROM (
			SELECT u.client_id, u.id AS user_id, array_position(?roles::text[], u.role) AS role,
				(u.created_at BETWEEN ?now::timestamptz - interval '365 days'
					AND ?now::timestamptz - interval '30 days')::integer AS new,
				coalesce(u.next_due_on < ?today::date, false)::integer AS overdue,
				0::bigint AS done, 0::bigint AS prompt, 0 AS simulated, 0 AS sent, 0 AS clicked, 0 AS reported,
				0 AS failed, 0 AS followed, 0 AS unsigned
			FROM needs AS n JOIN users AS u ON u.client_id = n.client_id AND u.status = 'active'
			UNION ALL
			SELECT client_id, user_id, 0, 0, 0, done, prompt, 0, 0, 0, 0, 0, 0, 0 FROM completions
			UNION ALL
			SELECT client_id, user_id, 0, 0, 0, 0, 0, 1, sent, sent * clicked, sent * reported, 0, 0, 0 FROM mails
			UNION ALL
			SELECT client_id, user_id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, EXISTS (
				SELECT 1 FROM assignments AS a WHERE a.client_id = f.client_id AND a.user_id = f.user_id
				AND a.completed_at BETWEEN f.at AND f.at + interval '30 days')::integer, 0
			FROM failures AS f WHERE f.at <= ?now::timestamptz - interval '30 days'
			UNION ALL
			SELECT client_id, user_id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 FROM unsigned
		) AS f
		GROUP BY client_id, user_id HAVING max(role) > 0 -- active users only
	)`

// cohortsSQL groups the users of each audience by role, new, done and prompt, and sums the other facts. An audience
// with several frameworks is counted once. A deleted collection has no members.
const cohortsSQL = `
	audiences AS MATERIALIZED (
		SELECT DISTINCT client_id, audience_type, audience FROM stale
	), cohorts AS MATERIALIZED (
		SELECT client_id, audience, role, new, done, prompt, count(*) AS users, sum(overdue) AS overdue,
			sum(simulated) AS simulated, sum(sent) AS sent, sum(clicked) AS clicked, sum(reported) AS reported,
			sum(failed) AS failed, sum(followed) AS followed, sum(unsigned) AS unsigned
		FROM (
			SELECT a.audience, f.* FROM audiences AS a JOIN facts AS f ON f.client_id = a.client_id
			WHERE a.audience_type = 'all'
			UNION ALL
			SELECT a.audience, f.*
			FROM audiences AS a JOIN users AS u ON u.client_id = a.client_id AND u.group_id = a.audience AND u.status = 'active'
			JOIN facts AS f ON f.client_id = u.client_id AND f.user_id = u.id
			WHERE a.audience_type = 'group'
			UNION ALL
			SELECT a.audience, f.*
			FROM audiences AS a JOIN collection_members AS m ON m.client_id = a.client_id AND m.collection_id = a.audience
			JOIN facts AS f ON f.client_id = m.client_id AND f.user_id = m.user_id
			WHERE a.audience_type = 'collection'
		) AS members
		GROUP BY client_id, audience, role, new, done, prompt
	)`

// measuresSQL computes the numerator (part) and denominator (whole) of each of the required_measures. Both are NULL for
// an empty audience. The whole is NULL for a measure that is a number, not a ratio.
const measuresSQL = `
	required AS MATERIALIZED ( -- by role: own are the courses for all roles and for the role, special those for the role
		SELECT s.client_id, s.id, s.audience, r.role, r.name <> 'standard' AS named, coalesce(bit_or(b.bit), 0) AS own,
			coalesce(bit_or(b.bit) FILTER (WHERE c.role IS NOT NULL), 0) AS special
		FROM stale AS s CROSS JOIN unnest(?roles::text[]) WITH ORDINALITY AS r (name, role)
		LEFT JOIN framework_courses AS c ON c.framework_id = s.framework_id AND coalesce(c.role, r.name) = r.name
		LEFT JOIN bits AS b ON b.course_id = c.course_id
		GROUP BY s.client_id, s.id, s.audience, r.role, r.name
	), counted AS MATERIALIZED (
		SELECT r.client_id, r.id, sum(c.users) AS users,
			sum(c.users) FILTER (WHERE c.done & r.own = r.own) AS trained,
			sum(c.users) FILTER (WHERE c.new = 1) AS new,
			sum(c.users) FILTER (WHERE c.new = 1 AND c.prompt & r.own <> 0) AS new_trained,
			sum(c.users) FILTER (WHERE r.named) AS special,
			sum(c.users) FILTER (WHERE r.named AND c.done & r.special = r.special) AS special_trained,
			sum(c.overdue) AS overdue, sum(c.simulated) AS simulated, sum(c.sent) AS sent, sum(c.clicked) AS clicked,
			sum(c.reported) AS reported, sum(c.failed) AS failed, sum(c.followed) AS followed, sum(c.unsigned) AS unsigned
		FROM required AS r
		JOIN cohorts AS c ON c.client_id = r.client_id AND c.audience = r.audience AND c.role = r.role
		GROUP BY r.client_id, r.id
	), of_client AS MATERIALIZED (
		SELECT n.client_id, p.policies, p.reviewed, r.reports FROM needs AS n
		CROSS JOIN LATERAL (
			SELECT count(*) AS policies,
				count(*) FILTER (WHERE p.reviewed_at >= ?now::timestamptz - interval '365 days') AS reviewed
			FROM policies AS p WHERE n.reviews AND p.client_id = n.client_id AND p.archived_at IS NULL
		) AS p
		CROSS JOIN LATERAL (
			SELECT count(*) AS reports FROM reports AS r
			WHERE n.reports AND r.client_id = n.client_id AND r.type = 'compliance' AND r.status = 'ready'
				AND r.updated_at >= ?now::timestamptz - interval '90 days'
		) AS r
	), measured AS (
		SELECT a.*,
			CASE WHEN c.users > 0 THEN coalesce(CASE a.key
				WHEN 'T1' THEN c.trained WHEN 'T2' THEN c.new_trained WHEN 'T3' THEN c.special_trained
				WHEN 'T4' THEN c.users - c.overdue
				WHEN 'P1' THEN c.simulated WHEN 'P2' THEN c.clicked WHEN 'P3' THEN c.reported WHEN 'P4' THEN c.followed
				WHEN 'A1' THEN c.users - c.unsigned WHEN 'A2' THEN o.reviewed WHEN 'R1' THEN o.reports END, 0) END AS part,
			CASE WHEN c.users > 0 AND a.key <> 'R1' THEN coalesce(CASE a.key
				WHEN 'T2' THEN c.new WHEN 'T3' THEN c.special
				WHEN 'P2' THEN c.sent WHEN 'P3' THEN c.sent WHEN 'P4' THEN c.failed
				WHEN 'A2' THEN o.policies ELSE c.users END, 0) END AS whole
		FROM required_measures AS a JOIN of_client AS o ON o.client_id = a.client_id
		LEFT JOIN counted AS c ON c.client_id = a.client_id AND c.id = a.id
	)`

// measuresOfFrameworks returns the measures of all frameworks as an SQL FROM item, alias m, in the order in which an
// evaluation shows them.
var measuresOfFrameworks = sync.OnceValue(func() pg.Query {
	var frameworks, keys, modules []string
	var targets []float64
	var atMost []bool
	var idle []*float64
	for _, framework := range domain.Frameworks {
		for _, m := range domain.Measures {
			if slices.Contains(framework.Measures, m.Key) {
				frameworks, keys, modules = append(frameworks, framework.ID), append(keys, string(m.Key)), append(modules, string(m.Module))
				targets, atMost, idle = append(targets, m.Target), append(atMost, m.AtMost), append(idle, idleValue(m.Key))
			}
		}
	}
	return pg.SQL(`
		unnest(?frameworks::text[], ?keys::text[], ?modules::text[], ?targets::float8[], ?atMost::boolean[], ?idle::float8[])
		WITH ORDINALITY AS m (framework_id, key, module, target, at_most, idle, place)`, pg.Named{
		"frameworks": frameworks, "keys": keys, "modules": modules, "targets": targets, "atMost": atMost, "idle": idle,
	})
})

// idleValue returns the value of a measure whose denominator is 0 (decisions 7.7). Nil means that the measure is not
// met: there were no emails to report, or no policies to review. The denominators of other measures are never 0.
func idleValue(m domain.Measure) *float64 {
	switch m {
	case domain.NewUserTraining, domain.RoleTraining, domain.FailureFollowUp:
		return new(100.0)
	case domain.ClickRate:
		return new(0.0)
	}
	return nil
}

// measureWords are the formats of the texts of measures. Their arguments are the numerator and the denominator.
var measureWords = map[domain.Measure]string{
	domain.RequiredTraining: "%d of %d users completed all required courses within a year",
	domain.NewUserTraining:  "%d of %d new users completed a required course within 30 days",
	domain.RoleTraining:     "%d of %d users in non-standard roles completed the course of their role within a year",
	domain.NothingOverdue:   "%d of %d users had nothing overdue",
	domain.SimulationReach:  "%d of %d users received a simulation within 90 days",
	domain.ClickRate:        "%d of %d simulated emails of the last 90 days led to a click",
	domain.ReportRate:       "%d of %d simulated emails of the last 90 days led to a report",
	domain.FailureFollowUp:  "%d of %d users who failed a simulation completed a course within 30 days",
	domain.PoliciesSigned:   "%d of %d users signed the current version of every policy that they must sign",
	domain.PoliciesReviewed: "%d of %d policies had a review within a year",
}

// singular changes the text of a measure to the singular.
var singular = strings.NewReplacer(" users", " user", " emails", " email", " policies", " policy")

// detail returns a measure's text. part and whole are its numerator and denominator: both are nil for an empty
// audience, and whole for compliance reports.
func detail(m domain.Measure, part, whole *int) string {
	switch {
	case part == nil:
		return "0 users in the audience"
	case m == domain.ComplianceReports && *part == 1:
		return "1 compliance report generated within 90 days"
	case whole == nil:
		return fmt.Sprintf("%d compliance reports generated within 90 days", *part)
	}
	words, ok := measureWords[m]
	if !ok { // a later release evaluated the measure
		words = "%d of %d"
	}
	text := fmt.Sprintf(words, *part, *whole)
	if *whole == 1 {
		text = singular.Replace(text)
	}
	return text
}
