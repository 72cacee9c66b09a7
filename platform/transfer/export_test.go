package transfer_test

import (
	"bytes"
	"strings"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// export is what an export of all objects writes.
func (w *world) export() []byte {
	w.t.Helper()
	objects, _ := w.exportBoth()
	return objects
}

// exportBoth is an export with its signals.
func (w *world) exportBoth() (objects, signals []byte) {
	w.t.Helper()
	var out, did bytes.Buffer
	to := transfer.Output{Objects: &out, Signals: &did}
	if err := transfer.Export(w.t.Context(), w.DB, domain.PartnerID{}, to, nil); err != nil {
		w.t.Fatal(err)
	}
	return out.Bytes(), did.Bytes()
}

// takeAll imports an export, of which nothing may be refused, and returns how many lines
// it has.
func (w *world) takeAll(export []byte) transfer.Report {
	w.t.Helper()
	report, err := transfer.Import(w.t.Context(), w.DB, bytes.NewReader(export), transfer.Watcher{
		Refused: func(line int, reason string) {
			w.t.Errorf("line %d: %s\n%.300s", line, reason, bytes.Split(export, []byte("\n"))[line-1])
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// wantSameLines compares two exports, and names the first lines that differ.
func wantSameLines(t interface {
	Helper()
	Errorf(string, ...any)
}, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d of %d and %d is\n%s\nnot\n%s", what, i+1, len(a), len(b), a[i], b[i])
			return
		}
	}
	t.Errorf("%s: %d lines, not %d", what, len(a), len(b))
}

// recounts count where a stored value differs from what it sums up.
var recounts = map[string]string{
	"phishing_days": `SELECT count(*) FROM (
			SELECT client_id, sent_at::date AS day, count(*) AS sent, count(*) FILTER (WHERE status <> 'sent') AS opened
			FROM phishing_results WHERE sent_at IS NOT NULL GROUP BY 1, 2) AS r
		FULL JOIN phishing_days AS d USING (client_id, day) WHERE (r.sent, r.opened) IS DISTINCT FROM (d.sent, d.opened)`,
	"users": `SELECT count(*) FROM clients AS c WHERE (users_active, users_inactive) <> (SELECT
		count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active') FROM users WHERE client_id = c.id)`,
	"scores": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
		WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
	"frameworks": `SELECT count(*) FROM clients AS c WHERE framework_ids <> (
		SELECT coalesce(array_agg(DISTINCT framework_id ORDER BY framework_id), '{}') FROM framework_assignments WHERE client_id = c.id)`,
	"what is told": `SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM mail_requests)
		+ (SELECT count(*) FROM assignments WHERE completed_at IS NULL AND due_on < '2026-06-15' AND NOT overdue_noted)`,
	"asked courses": `SELECT count(*) FROM framework_assignments AS f JOIN framework_courses AS r USING (framework_id)
		JOIN users AS u ON u.client_id = f.client_id AND u.status = 'active' AND (r.role IS NULL OR r.role = u.role)
		AND (f.audience_type = 'all' OR u.group_id = f.audience_id OR EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = f.client_id AND m.collection_id = f.audience_id AND m.user_id = u.id))
		WHERE NOT EXISTS (SELECT 1 FROM assignments AS a WHERE a.client_id = u.client_id AND a.user_id = u.id
			AND a.course_id = r.course_id AND f.id = ANY (a.frameworks) AND a.due_on = (
				SELECT min(greatest(u.created_at, s.created_at)::date + 30) FROM framework_assignments AS s WHERE s.id = ANY (a.frameworks)
			) OR a.from_program)`,
}
