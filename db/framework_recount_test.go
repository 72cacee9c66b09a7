//go:build slow

package db_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// recountSQL evaluates the framework assignments f of a client user by user. c has the courses of
// a user u of the audience: those required of all and, as special, of the role alone, those
// completed within a year, and those within 30 days of the user's creation; and the first failed
// simulation. r counts the simulated mails of the last 90 days. m is what the user adds to a
// measure's numerator and denominator, except that A2 and R1 are of the client.
const recountSQL = `
	SELECT f.id, f.framework_id, m.key, (to_jsonb(f) ->> m.module)::boolean AS asked, count(u.id) AS users,
		(CASE WHEN m.key IN ('A2', 'R1') THEN max(m.part) ELSE coalesce(sum(m.part) FILTER (WHERE m.whole > 0), 0) END)::integer AS part,
		(CASE WHEN m.key IN ('A2', 'R1') THEN max(m.whole) ELSE coalesce(sum(m.whole), 0) END)::integer AS whole
	FROM framework_assignments AS f
	LEFT JOIN users AS u ON u.client_id = f.client_id AND u.status = 'active' AND CASE f.audience_type
		WHEN 'all' THEN true WHEN 'group' THEN u.group_id = f.audience_id
		ELSE f.audience_id IN (SELECT collection_id FROM collection_members WHERE client_id = u.client_id AND user_id = u.id) END
	CROSS JOIN LATERAL (SELECT
		ARRAY(SELECT course_id FROM framework_courses WHERE framework_id = f.framework_id AND coalesce(role, u.role) = u.role) AS own,
		ARRAY(SELECT course_id FROM framework_courses WHERE framework_id = f.framework_id AND role = u.role) AS special,
		ARRAY(SELECT course_id FROM assignments WHERE client_id = u.client_id AND user_id = u.id
			AND completed_at >= ?now - interval '365 days') AS done,
		ARRAY(SELECT course_id FROM assignments WHERE client_id = u.client_id AND user_id = u.id
			AND completed_at BETWEEN u.created_at AND u.created_at + interval '30 days') AS prompt,
		(SELECT min(at) FROM (
			SELECT least(clicked_at, credentials_submitted_at, attachment_opened_at) AS at
			FROM phishing_results WHERE client_id = u.client_id AND user_id = u.id
		) AS failures WHERE at >= ?now - interval '365 days') AS failed
	) AS c
	CROSS JOIN LATERAL (
		SELECT count(*) AS sent, count(coalesce(clicked_at, credentials_submitted_at, attachment_opened_at)) AS clicked,
			count(*) FILTER (WHERE reported) AS reported
		FROM phishing_results WHERE client_id = u.client_id AND user_id = u.id AND sent_at >= ?today - 89
	) AS r
	CROSS JOIN LATERAL (VALUES
		('T1', 'training', (c.own <@ c.done)::integer, 1),
		('T2', 'training', (c.own && c.prompt)::integer,
			(u.created_at BETWEEN ?now - interval '365 days' AND ?now - interval '30 days')::integer),
		('T3', 'training', (c.special <@ c.done)::integer, (u.role <> 'standard')::integer),
		('T4', 'training', coalesce(u.next_due_on >= ?today, true)::integer, 1),
		('P1', 'phishing', EXISTS (
			SELECT FROM phishing_results
			WHERE client_id = u.client_id AND user_id = u.id AND sent_at >= ?now - interval '90 days')::integer, 1),
		('P2', 'phishing', r.clicked, r.sent),
		('P3', 'phishing', r.reported, r.sent),
		('P4', 'phishing', EXISTS (SELECT FROM assignments
			WHERE client_id = u.client_id AND user_id = u.id AND completed_at BETWEEN c.failed AND c.failed + interval '30 days')::integer,
			(c.failed <= ?now - interval '30 days')::integer),
		('A1', 'policies', (NOT EXISTS (SELECT FROM policies AS p
			WHERE p.client_id = f.client_id AND requires_acknowledgment AND archived_at IS NULL AND CASE scope_type
				WHEN 'tenant' THEN true WHEN 'user_container' THEN scope_id = u.group_id
				ELSE scope_id IN (SELECT collection_id FROM collection_members WHERE client_id = u.client_id AND user_id = u.id) END
			AND NOT EXISTS (SELECT FROM policy_signatures AS s WHERE s.client_id = u.client_id AND s.policy_id = p.id AND s.user_id = u.id
				AND s.version = p.version AND s.signed_at + p.renewal_period_days * interval '1 day' > ?now)))::integer, 1),
		('A2', 'policies', (SELECT count(*) FROM policies
			WHERE client_id = f.client_id AND archived_at IS NULL AND reviewed_at >= ?now - interval '365 days'),
			(SELECT count(*) FROM policies WHERE client_id = f.client_id AND archived_at IS NULL)),
		('R1', 'reporting', (SELECT count(*) FROM reports WHERE client_id = f.client_id
			AND type = 'compliance' AND status = 'ready' AND updated_at >= ?now - interval '90 days'), 0)
	) AS m (key, module, part, whole)
	WHERE f.client_id = ?client
	GROUP BY f.client_id, f.id, m.key, m.module
	ORDER BY f.id, position(m.key IN 'T1 T2 T3 T4 P1 P2 P3 P4 A1 A2 R1')`

// recounted is a measure of a framework assignment; asked says that its module is on.
type recounted struct {
	ID                 domain.FrameworkAssignmentID
	FrameworkID        string
	Key                domain.Measure
	Asked              bool
	Users, Part, Whole int
}

// recount evaluates a client's framework assignments.
func (w *world) recount(client domain.ClientID) map[domain.FrameworkAssignmentID]domain.Evaluation {
	w.T.Helper()
	rows, err := pg.All[recounted](w.T.Context(), w.DB, "recount measures", pg.SQL(recountSQL, pg.Named{
		"client": client, "now": pg.SQL("?::timestamptz", noon), "today": pg.SQL("?::date", today),
	}))
	w.Must(err)
	all := map[domain.FrameworkAssignmentID]domain.Evaluation{}
	for _, r := range rows {
		e, known := all[r.ID]
		if !known {
			e = domain.Evaluation{Requirements: []domain.Requirement{}, At: noon}
		}
		framework, _ := domain.FrameworkByID(r.FrameworkID)
		if r.Asked && slices.Contains(framework.Measures, r.Key) {
			q := r.requirement()
			if e.Total++; q.Met {
				e.Met++
			}
			e.Requirements = append(e.Requirements, q)
		}
		all[r.ID] = e
	}
	return all
}

// requirement compares a measure with its target.
func (r recounted) requirement() domain.Requirement {
	m := r.Key.Spec()
	q := domain.Requirement{Key: r.Key, Detail: db.Detail(r.Key, &r.Part, &r.Whole)}
	switch {
	case r.Users == 0:
		q.Detail = db.Detail(r.Key, nil, nil)
	case r.Key == domain.ComplianceReports:
		q.Detail, q.Value, q.Met = db.Detail(r.Key, &r.Part, nil), new(float64(r.Part)), r.Part >= 1
	case r.Whole > 0:
		q.Value = new(math.Floor(float64(1000*r.Part)/float64(r.Whole)+0.5) / 10)
		q.Met = 100*r.Part >= int(m.Target)*r.Whole
		if m.AtMost {
			q.Met = 100*r.Part <= int(m.Target)*r.Whole
		}
	case slices.Contains([]domain.Measure{"T2", "T3", "P4"}, r.Key):
		q.Value, q.Met = new(100.0), true
	case r.Key == "P2":
		q.Value, q.Met = new(0.0), true
	}
	return q
}

// TestEvaluationsEqualARecount: whatever a client's rows are, each evaluation is
// what counting them user by user gives.
func TestEvaluationsEqualARecount(t *testing.T) {
	w := newWorld(t)
	courses, err := pg.All[domain.CourseID](t.Context(), w.DB, "list required courses", pg.SQL(
		"SELECT course_id FROM framework_courses GROUP BY 1 ORDER BY 1"))
	w.Must(err)
	if len(courses) > 63 {
		t.Errorf("an evaluation has 63 bits for the courses of all frameworks together, not %d", len(courses))
	}
	tried := map[domain.Measure]map[bool]bool{}
	for _, m := range domain.Measures {
		tried[m.Key] = map[bool]bool{}
	}
	rapid.Check(t, func(r *rapid.T) {
		client := w.AddClient()
		w.store(drawClient(r, client, courses))
		w.Must(db.EvaluateAll(t.Context(), w.DB))

		got, err := db.Evaluations(t.Context(), w.DB, client)
		w.Must(err)
		for id, want := range w.recount(client) {
			if !reflect.DeepEqual(got[id], want) {
				is, _ := json.Marshal(got[id])
				wants, _ := json.Marshal(want)
				r.Fatalf("%s\nwant %s", is, wants)
			}
			for _, q := range want.Requirements {
				tried[q.Key][q.Met] = true
			}
		}
		w.Exec("DELETE FROM framework_assignments")
	})
	for measure, met := range tried {
		if len(met) != 2 {
			t.Errorf("%s: only %v was tried", measure, met)
		}
	}
}
