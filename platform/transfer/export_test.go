package transfer_test

import (
	"bytes"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// export is what an export of all objects writes.
func (w *world) export() []byte {
	w.t.Helper()
	var out bytes.Buffer
	if err := transfer.Export(w.t.Context(), w.DB, domain.PartnerID{}, &out, nil); err != nil {
		w.t.Fatal(err)
	}
	return out.Bytes()
}

// takeAll imports an export, of which nothing may be refused, and tells how many lines
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

// copyBreaches gives a database the breaches of another one, as the command breaches
// import would.
func (w *world) copyBreaches(from *world) {
	w.t.Helper()
	if err := w.LoadTemplates(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	rows, err := from.SQL().QueryContext(w.t.Context(), `
		SELECT name, title, severity, array_to_json(data_classes)::text, sensitive, spam_list FROM breaches`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	var list []domain.Breach
	for rows.Next() {
		var b domain.Breach
		var classes string
		if err := rows.Scan(&b.Name, &b.Title, &b.Severity, &classes, &b.Sensitive, &b.SpamList); err != nil {
			w.t.Fatal(err)
		}
		b.DataClasses = strings.Split(strings.Trim(classes, `[]"`), `","`)
		list = append(list, b)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.ImportBreaches(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
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

// TestDemoRoundTrip: the demonstration's export, imported into an empty database, is
// exported as the same bytes; imported again it changes nothing.
func TestDemoRoundTrip(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t), newWorld(t)
	if _, err := seed.Demo(t.Context(), from.DB); err != nil {
		t.Fatal(err)
	}
	to.copyBreaches(from)
	export := from.export()
	wantSameLines(t, "the second export of one database", from.export(), export)

	lines := bytes.Count(export, []byte("\n"))
	report := to.takeAll(export)
	courses := bytes.Count(export, []byte(`{"object":"course"`)) // which are there
	if report.Created != lines-courses || report.Unchanged != courses {
		t.Errorf("%d lines are %+v", lines, report)
	}
	wantSameLines(t, "the export of the copy", to.export(), export)
	for what, query := range recounts {
		if got := to.text(query); got != "(0)" {
			t.Errorf("%s: %s differ", what, got)
		}
	}

	report = to.takeAll(export)
	if report.Unchanged != lines {
		t.Errorf("%d lines are %+v the second time", lines, report)
	}
	if got := to.text("SELECT count(*) FROM events"); got != "(0)" {
		t.Errorf("%s events of what says nothing new", got)
	}
}

// TestExportOfPartner: only one partner's objects are written, and what they refer to.
func TestExportOfPartner(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t), newWorld(t)
	if _, err := seed.Demo(t.Context(), from.DB); err != nil {
		t.Fatal(err)
	}
	to.copyBreaches(from)
	all, err := from.Partners(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var other db.PartnerSummary
	for _, p := range all {
		if p.Name == seed.OtherDemoPartner {
			other = p
		}
	}
	var out bytes.Buffer
	told := map[string]int{}
	err = transfer.Export(t.Context(), from.DB, other.ID, &out, func(object string, lines int, _ bool) {
		told[object] = lines
	})
	if err != nil {
		t.Fatal(err)
	}
	to.takeAll(out.Bytes())
	to.is("(1,2)", "SELECT (SELECT count(*) FROM partners), (SELECT count(*) FROM clients)")
	if told["client"] != 2 || told["partner"] != 1 || told["user"] == 0 {
		t.Errorf("told of %v", told)
	}
	wantSameLines(t, "the copy", to.export(), out.Bytes())
}
