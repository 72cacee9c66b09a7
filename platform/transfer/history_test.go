package transfer_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// catalogues gives the database templates and breaches that history refers to.
func (w *world) catalogues() *world {
	w.t.Helper()
	w.must(w.LoadTemplates(w.t.Context()))
	_, _, err := w.ImportTemplates(w.t.Context(), []domain.Template{{
		Name: "Parcel", Language: domain.Spanish, Category: "Post", Subject: "Parcel", From: "post@example.com",
		TemplateContent: domain.TemplateContent{Difficulty: 1, Landing: domain.LandingLesson, Indicators: []domain.Indicator{}},
	}})
	w.must(err)
	w.catalogue()
	return w
}

// past is what happened at the school, of every kind that there is.
func past() []string {
	own, err := db.OwnTemplates()
	if err != nil {
		panic(err)
	}
	template := `,'template':'` + own[0].ID.String() + `'`
	return []string{
		ref("client", 14, `'partner':#1,'name':'Gone','archived':true,'dark_web_monitoring':false`),
		ref("group", 15, `'client':#14,'name':'By hand','manual':true`),
		ref("user", 22, `'client':#10,'email':'cy@acme.example','source':'google','created_at':'2024-02-29T00:00:00Z'`),
		ref("policy", 41, `'client':#10,'title':'Gone','scope_type':'collection','scope_id':#98,'scope_deleted':true`),
		ref("policy", 42, `'client':#10,'title':'Old','archived':true`),
		ref("framework_assignment", 50, `'client':#10,'framework':'gdpr','created_at':'2026-03-01T00:00:00Z'`),
		ref("framework_assignment", 51, `'client':#10,'framework':'nist_csf','modules':{'policies':true,'training':false},'audience':{'type':'collection','id':#30}`),
		ref("framework_assignment", 52, `'client':#10,'framework':'soc2','audience':{'type':'group','id':#12}`),
		ref("framework_assignment", 53, `'client':#10,'framework':'soc2','audience':{'type':'collection','id':#99,'deleted':true}`),
		ref("phishing_result", 60, `'user':#20,'sent_at':'2026-06-02T10:00:00.000001Z','opened_at':'2026-06-02T11:00:00Z',
			'clicked_at':'2026-06-03T00:00:00Z','reported_at':'2026-06-04T00:00:00Z'`+template),
		ref("phishing_result", 61, `'user':#22,'template_name':{'name':'Parcel','language':'es'},'sent_at':'2025-03-01T00:00:00Z','automated_reason':'fast'`),
		ref("phishing_result", 62, `'user':#22,'send_at':'2026-06-18T00:00:00Z'`+template),
		ref("phishing_result", 63, `'user':#21,'failed_at':'2026-05-01T00:00:00Z','failure':'550'`+template),
		ref("sent_email", 70, `'user':#20,'event_time':'2026-06-05T00:00:00Z','from_email':'It <it@x.example>','subject':'Ünïcode \u003c',
			'send_method':'gmail-api','message_type':'welcome'`),
		ref("exposure", 80, `'user':#20,'breach_name':'Forum','first_seen_at':'2026-06-05T00:00:00Z','data_classes':['Names','PINs']`),
		ref("exposure", 81, `'user':#22,'breach_name':'List','first_seen_at':'2026-03-05T00:00:00Z','resolved_at':'2026-06-12T00:00:00Z'`),
	}
}

// simulate sends a simulated mail to a new user: what an export could see half of.
func (w *writer) simulate(ctx context.Context) error {
	templates, err := db.OwnTemplates()
	if err != nil {
		return err
	}
	var user domain.UserID
	err = w.change(ctx, func(ctx context.Context, c *db.Change, t *db.Tenant) (err error) {
		user, err = w.create(ctx, c, t)
		return err
	})
	if err != nil {
		return err
	}
	return w.change(ctx, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.ScheduleResults(ctx, c, []domain.Result{{
			ID: db.NewID[domain.ResultKind](), User: user, Template: templates[0].ID, SendAt: c.At.Add(time.Hour),
		}})
	})
}

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
	w.must(transfer.Export(w.t.Context(), w.DB, domain.PartnerID{}, to, func(string, int, bool) {}))
	return out.Bytes(), did.Bytes()
}

// takeAll imports an export, of which nothing may be refused, and returns how many lines
// it has.
func (w *world) takeAll(export []byte) transfer.Report {
	w.t.Helper()
	report, err := transfer.Import(w.t.Context(), w.DB, transfer.Lines(bytes.NewReader(export)), transfer.Watcher{
		Refused: func(line int, reason string) {
			w.t.Errorf("line %d: %s\n%.300s", line, reason, bytes.Split(export, []byte("\n"))[line-1])
		},
	})
	w.must(err)
	return report
}

// wantSameLines compares two exports, and names the lines that only one has.
func wantSameLines(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, not %d:\n%s", what, len(got), len(want), differing(string(got), string(want)))
	}
}

// recount holds stored values against what they sum up.
func (w *world) recount() {
	w.t.Helper()
	if wrong, err := doctor.Recount(w.t.Context(), w.DB); err != nil || len(wrong) > 0 {
		w.t.Errorf("wrong counts: %v, %v", wrong, err)
	}
	for what, query := range recounts {
		if got := w.text(query); got != "(0)" {
			w.t.Errorf("%s: %s differ", what, got)
		}
	}
}

// recounts count where values differ from what they sum up that the doctor does not count.
var recounts = map[string]string{
	"scores": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
		WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
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
