//go:build slow

package transfer_test

import (
	"bytes"
	"testing"

	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/platform/transfer"
)

// TestDemoRoundTrip: the demonstration's export, imported into an empty database, is
// exported as the same bytes; imported again it changes nothing.
func TestDemoRoundTrip(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t), newWorld(t)
	if _, err := seed.Demo(t.Context(), from.DB); err != nil {
		t.Fatal(err)
	}
	to.copyBreaches(from)
	export, signals := from.exportBoth()
	wantSameLines(t, "the second export of one database", from.export(), export)

	lines := bytes.Count(export, []byte("\n"))
	report := to.takeAll(export)
	courses := bytes.Count(export, []byte(`{"object":"course"`))               // which are there
	training := bytes.Count(export, []byte(`{"object":"training_assignment"`)) // of which users bring some along
	changed := report.Updated + report.Unchanged - courses
	if report.Refused != 0 || report.Created != lines-courses-changed || changed < 0 || changed > training {
		t.Errorf("%d lines, %d of training, are %+v", lines, training, report)
	}
	wantSameLines(t, "the export of the copy", to.export(), export)
	to.recount()

	report = to.takeAll(export)
	if report.Unchanged != lines {
		t.Errorf("%d lines are %+v the second time", lines, report)
	}
	if got := to.text("SELECT count(*) FROM events"); got != "(0)" {
		t.Errorf("%s events of what says nothing new", got)
	}

	to.ingest(signals)
	for what, query := range shown {
		if got, want := to.text(query), from.text(query); got != want {
			t.Errorf("%s:\n%s", what, differing(got, want))
		}
	}
}

// ingest takes signals, of which none may be refused.
func (w *world) ingest(signals []byte) {
	w.t.Helper()
	_, err := transfer.Ingest(w.t.Context(), w.DB, bytes.NewReader(signals), transfer.Watcher{
		Refused: func(line int, reason string) {
			w.t.Errorf("signal %d: %s\n%s", line, reason, bytes.Split(signals, []byte("\n"))[line-1])
		},
	})
	w.must(err)
}

// shown is what reads show and what follows from objects and signals.
var shown = map[string]string{
	"users": "SELECT id, status, role, overrides, phished_sent, phished_clicked, phished_sent_year FROM users ORDER BY id",
	"scores": `SELECT id, u.score, to_jsonb(r) - 'computed_at', u.next_due_on, u.next_course_id FROM users AS u
		JOIN user_risks AS r ON r.user_id = u.id ORDER BY id`,
	"members":     "SELECT collection_id, user_id, added_at FROM collection_members ORDER BY 1, 2",
	"collections": "SELECT id, created_by, member_count FROM collections ORDER BY id",
	"reported":    "SELECT user_id, message_id, classification, mailbox_action, reported_at, classified_at FROM reported_emails ORDER BY 1, 2",
	"signatures":  "SELECT s.user_id, s.policy_id, s.version, s.signed_at FROM policy_signatures AS s JOIN policies AS p ON p.id = s.policy_id AND p.archived_at IS NULL ORDER BY 1, 2, 3",
	"training": `SELECT user_id, course_id, round, position, from_program, direct, frameworks, assigned_at, due_on, started_at,
		completed_at, superseded FROM assignments ORDER BY 1, 2, 3`,
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
	from.must(err)
	var other db.PartnerSummary
	for _, p := range all {
		if p.Name == seed.OtherDemoPartner {
			other = p
		}
	}
	var out bytes.Buffer
	told := map[string]int{}
	err = transfer.Export(t.Context(), from.DB, other.ID, transfer.Output{Objects: &out}, func(object string, lines int, _ bool) {
		told[object] = lines
	})
	from.must(err)
	to.takeAll(out.Bytes())
	to.is("(1,2)", "SELECT (SELECT count(*) FROM partners), (SELECT count(*) FROM clients)")
	if told["client"] != 2 || told["partner"] != 1 || told["user"] == 0 {
		t.Errorf("told of %v", told)
	}
	wantSameLines(t, "the copy", to.export(), out.Bytes())
}

// copyBreaches gives a database the breaches of another one, as the command breaches
// import would.
func (w *world) copyBreaches(from *world) {
	w.t.Helper()
	w.must(w.LoadTemplates(w.t.Context()))
	var breaches string
	err := from.SQL().QueryRowContext(w.t.Context(), "SELECT json_agg(b)::text FROM breaches AS b").Scan(&breaches)
	if err == nil {
		_, err = w.SQL().ExecContext(w.t.Context(),
			"INSERT INTO breaches SELECT * FROM json_populate_recordset(NULL::breaches, $1::json)", breaches)
	}
	w.must(err)
}
