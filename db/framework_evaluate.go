package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// evaluateSQL evaluates, as of the time ?2 and the day ?3, the framework
// assignments, alias f, that the condition ?0 selects and that were evaluated
// before ?1. ?4 are the measures of all frameworks, ?5 all roles.
//
// Assignments are locked in the order of their keys, and nothing else is: two
// evaluators wait for each other and cannot deadlock. The second one finds the
// evaluation fresh and leaves it alone.
//
// Whether a target is met is judged on the exact value, not on the rounded one.
const evaluateSQL = `
	WITH stale AS MATERIALIZED (
		SELECT f.client_id, f.id, f.framework_id, f.audience_type, coalesce(f.audience_id, f.client_id) AS audience,
			f.training, f.phishing, f.policies, f.reporting
		FROM framework_assignments AS f WHERE (?0) AND f.evaluated_at < ?1
		ORDER BY f.client_id, f.id FOR NO KEY UPDATE OF f
	), asked AS MATERIALIZED (
		SELECT s.client_id, s.id, m.place, m.key, m.target, m.at_most, m.idle
		FROM stale AS s JOIN ?4 ON m.framework_id = s.framework_id
		WHERE CASE m.module WHEN 'training' THEN s.training WHEN 'phishing' THEN s.phishing
			WHEN 'policies' THEN s.policies WHEN 'reporting' THEN s.reporting END
	), needs AS MATERIALIZED (
		SELECT s.client_id,
			coalesce(bool_or(a.key IN ('T1', 'T2', 'T3')), false) AS courses,
			coalesce(bool_or(a.key IN ('P1', 'P2', 'P3')), false) AS mails,
			coalesce(bool_or(a.key = 'P4'), false) AS failures, coalesce(bool_or(a.key = 'A1'), false) AS signatures,
			coalesce(bool_or(a.key = 'A2'), false) AS reviews, coalesce(bool_or(a.key = 'R1'), false) AS reports
		FROM stale AS s LEFT JOIN asked AS a ON a.client_id = s.client_id AND a.id = s.id
		GROUP BY s.client_id
	), ` + factsSQL + `, ` + cohortsSQL + `, ` + measuresSQL + `, judged AS (
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
		FROM judged GROUP BY client_id, id
	)
	UPDATE framework_assignments AS f SET requirements = coalesce(e.requirements, '[]'),
		met = coalesce(e.met, 0), total = coalesce(e.total, 0), evaluated_at = ?2,
		changed_at = CASE WHEN f.requirements IS DISTINCT FROM coalesce(e.requirements, '[]') THEN ?2::timestamptz
			ELSE coalesce(f.changed_at, f.created_at) END
	FROM stale AS s LEFT JOIN evaluated AS e ON e.client_id = s.client_id AND e.id = s.id
	WHERE f.client_id = s.client_id AND f.id = s.id`

// evaluate evaluates the framework assignments, alias f, that a condition selects
// and that were evaluated before a time: in one statement, however many they are.
func (d *DB) evaluate(ctx context.Context, of pg.Query, before time.Time) error {
	now, m := d.Now(), measureCatalogue()
	measures := pg.SQL(`unnest(?::text[], ?::text[], ?::text[], ?::float8[], ?::boolean[], ?::float8[]) WITH ORDINALITY
		AS m (framework_id, key, module, target, at_most, idle, place)`,
		m.frameworks, m.keys, m.modules, m.targets, m.atMost, m.idle)

	_, err := pg.Exec(ctx, d, "evaluate frameworks", pg.SQL(evaluateSQL,
		of, before, now, domain.DateOf(now), measures, domain.Role("").Values()))
	return err
}

// EvaluateStale evaluates those of the client's framework assignments whose
// evaluation is older than domain.SummaryAge: all in one statement, and none in
// another, cheap one.
func (t *Tenant) EvaluateStale(ctx context.Context) error {
	of, before := pg.SQL("f.client_id = ?", t.ID), t.db.Now().Add(-domain.SummaryAge)
	stale, err := pg.One[bool](ctx, t.db, "look for stale evaluations", pg.Prepared(pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM framework_assignments AS f WHERE ? AND f.evaluated_at < ?)", of, before)))
	if err != nil || !stale {
		return err
	}
	return t.db.evaluate(ctx, of, before)
}

// Evaluate evaluates one of the client's framework assignments, which the change
// inserted or locked, however fresh its evaluation is. It sees what is written
// already: what the change noted to follow is written before Finally.
func (c *Change) Evaluate(ctx context.Context, t *Tenant, id domain.FrameworkAssignmentID) error {
	anyAge := c.Now().AddDate(1000, 0, 0) // a clock that was put back left evaluations of the future
	return c.evaluate(ctx, pg.SQL("f.client_id = ? AND f.id = ?", t.ID, id), anyAge)
}

// evaluationRow are the columns of framework_assignments that hold an evaluation,
// for the rows that embed it.
type evaluationRow struct {
	Requirements []byte
	Met          int
	Total        int
	EvaluatedAt  time.Time
}

// requirement is one of a stored evaluation. Part and Whole are the numerator and
// the denominator, nil as in detail.
type requirement struct {
	Key   domain.Measure `json:"key"`
	Met   bool           `json:"met"`
	Value *float64       `json:"value"`
	Part  *int           `json:"part"`
	Whole *int           `json:"whole"`
}

// evaluationOf is the evaluation of a row.
func evaluationOf(r evaluationRow) (domain.Evaluation, error) {
	var stored []requirement
	if err := json.Unmarshal(r.Requirements, &stored); err != nil {
		return domain.Evaluation{}, fmt.Errorf("read an evaluation: %w", err)
	}

	e := domain.Evaluation{
		Requirements: make([]domain.Requirement, len(stored)), Met: r.Met, Total: r.Total, At: r.EvaluatedAt,
	}
	for i, s := range stored {
		e.Requirements[i] = domain.Requirement{Key: s.Key, Met: s.Met, Value: s.Value, Detail: detail(s.Key, s.Part, s.Whole)}
	}
	return e, nil
}
