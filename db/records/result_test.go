package records_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/records"
	"partnerapi/domain"
)

// moment is so long before noon, as a field of a record.
func moment(ago time.Duration) domain.Optional[domain.Time] {
	return domain.Give(domain.At(noon.Add(-ago)))
}

// maybe is moment, for a field that may be null.
func maybe(ago time.Duration) domain.Optional[*domain.Time] {
	return domain.Give(new(domain.At(noon.Add(-ago))))
}

// aTemplate is a template that records of results name.
var aTemplate = domain.TemplateID{15: 1}

// resultOf is a record of a new result.
func resultOf(user domain.UserID) domain.ResultRecord {
	return domain.ResultRecord{
		ID: domain.RefTo(db.NewID[domain.ResultKind]()), User: domain.Give(domain.RefTo(user)),
		Template: domain.Give(domain.RefTo(aTemplate)),
	}
}

// importAll applies records of a kind, and holds what became of them against what is wanted:
// a word for each, or nothing.
func importAll[T any](w *world, of records.Kind, batch []T, want ...string) []domain.ImportResult {
	w.T.Helper()
	all := make([]any, len(batch))
	for i := range batch {
		all[i] = &batch[i]
	}
	results, err := of.Import(w.T.Context(), w.DB, all)
	w.Must(err)
	words := []string{"refused", "created", "updated", "unchanged"}
	for i, prefix := range want {
		got := strings.TrimSuffix(words[results[i].Outcome]+": "+results[i].Refusal, ": ")
		if !strings.HasPrefix(got, prefix) {
			w.T.Errorf("record %d is %q, not %q", i, got, prefix)
		}
	}
	return results
}

// TestImportResults: what records say is stored and counted, and nobody is told; a
// change of what people did is an event, and never a step back; a sending is none.
func TestImportResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	w.Add("phishing_templates", row{"id": aTemplate})
	w.Add("phishing_templates", row{"id": domain.TemplateID{15: 2}, "name": "Parcel", "language": "es", "own": false})

	clicked, called, waiting, failed := resultOf(user), resultOf(user), resultOf(user), resultOf(user)
	clicked.SentAt, clicked.ClickedAt, clicked.ReportedAt = moment(30*day), maybe(29*day), maybe(28*day)
	called.Template = domain.Optional[domain.Ref[domain.TemplateKind]]{}
	called.TemplateName = domain.Give(domain.TemplateName{Name: "Parcel", Language: domain.Spanish})
	called.SentAt, called.Reported = moment(400*day), domain.Give(true)
	waiting.SendAt = moment(-day)
	failed.FailedAt, failed.Failure = maybe(2*day), domain.Give(new("550 unknown"))
	all := []domain.ResultRecord{clicked, called, waiting, failed}

	importAll(w, records.Results, all, "created", "created", "created", "created")
	w.WantPhishingCounts(t)
	var events, mails, outbox, uses, score, statuses int
	var reported bool // as of the sending, where nobody knows its time
	w.Scan(`SELECT (SELECT reported_at = sent_at FROM phishing_results WHERE id = $2), (SELECT count(*) FROM events), (SELECT count(*) FROM mail_requests),
		(SELECT count(*) FROM outbox WHERE kind = 'simulation' AND due_at = $1), (SELECT sum(used) FROM template_uses),
		(SELECT score FROM users), (SELECT count(DISTINCT status) FROM phishing_results)`,
		[]any{noon.Add(day), called.ID.ID}, &reported, &events, &mails, &outbox, &uses, &score, &statuses)
	if events != 0 || mails != 0 || outbox != 1 || uses != 4 || score >= 750 || statuses != 4 || !reported {
		t.Errorf("%d events, %d mails, %d wait, %d uses, score %d, %d statuses, reported when it was sent: %v",
			events, mails, outbox, uses, score, statuses, reported)
	}

	before := w.UpdatedAt("phishing_results", clicked.ID.ID)
	w.Clock.Advance(time.Hour)
	importAll(w, records.Results, all, "unchanged", "unchanged", "unchanged", "unchanged")
	if !w.UpdatedAt("phishing_results", clicked.ID.ID).Equal(before) {
		t.Error("what says nothing new writes")
	}

	further := domain.ResultRecord{ID: clicked.ID, CredentialsSubmittedAt: maybe(27 * day)}
	sent := domain.ResultRecord{ID: waiting.ID, SentAt: moment(0)}
	back := domain.ResultRecord{ID: called.ID, Reported: domain.Give(false)}
	importAll(w, records.Results, []domain.ResultRecord{further, sent, back}, "updated", "updated", "refused: reported")
	w.WantPhishingCounts(t)
	w.Scan("SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM mail_requests)", nil, &outbox, &mails)
	if n := w.ResultUpdates(); n != 1 || outbox != 0 || mails != 0 {
		t.Errorf("%d events, %d mails wait, %d are asked for", n, outbox, mails)
	}
}

// TestImportLabels verifies that results get the spelling of a label's first one, and that their labels are counted and
// do not change.
func TestImportLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.AddUser(w.AddClient(), domain.RoleStandard, 750)
	w.Add("phishing_templates", row{"id": aTemplate})
	all := []domain.ResultRecord{resultOf(user), resultOf(user), resultOf(user)}
	for i, label := range []string{"Drill", "DRILL", "Other"} {
		all[i].Label, all[i].SentAt = domain.Give(label), moment(time.Duration(i)*day)
	}
	all[1].SentAt, all[1].SendAt = domain.Optional[domain.Time]{}, moment(-day)
	importAll(w, records.Results, all[:1], "created")
	importAll(w, records.Results, all, "unchanged", "created", "created")
	importAll(w, records.Results, all, "unchanged", "unchanged", "unchanged")
	w.WantPhishingCounts(t)
	if n := w.Number("SELECT count(*) FROM phishing_results WHERE label = 'Drill' AND label_key = 'drill'"); n != 2 {
		t.Errorf("%d results have the first spelling", n)
	}

	changed, later := all[0], all[1]
	changed.Label, later.SendAt = domain.Give("Other"), moment(-9*day)
	importAll(w, records.Results, []domain.ResultRecord{changed, later}, "refused: label", "updated")
	later.FailedAt, later.Failure = maybe(0), domain.Give(new(domain.FailureCancelled))
	importAll(w, records.Results, []domain.ResultRecord{later}, "updated")
	w.WantPhishingCounts(t)
	w.Must(w.Snapshot(t.Context(), func(ctx context.Context) error {
		for record, err := range records.Results.Export(ctx, w.DB, domain.PartnerID{}) {
			w.Must(err)
			if r := record.(*domain.ResultRecord); r.Label.Value != "Drill" && r.Label.Value != "Other" {
				t.Errorf("exported %+v", r.Label)
			}
		}
		return nil
	}))
}

// TestImportResultsRefuses: records that cannot be are refused by the field.
func TestImportResultsRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user, other := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	w.Add("phishing_templates", row{"id": aTemplate}, row{"id": domain.TemplateID{15: 3}})
	stored := resultOf(user)
	stored.SentAt, stored.ClickedAt = moment(3*day), maybe(2*day)
	importAll(w, records.Results, []domain.ResultRecord{stored}, "created")

	of := func(change func(*domain.ResultRecord)) domain.ResultRecord {
		r := resultOf(user)
		r.SentAt = moment(3 * day)
		change(&r)
		return r
	}
	none := domain.Optional[domain.Time]{}
	null := domain.Give[*domain.Time](nil)
	cases := []struct {
		record domain.ResultRecord
		want   string
	}{
		{of(func(r *domain.ResultRecord) { r.User.Value = domain.RefTo(domain.UserID{1}) }), "user: there is no such user"},
		{of(func(r *domain.ResultRecord) { r.Template.Value = domain.RefTo(domain.TemplateID{1}) }), "template: there is no such template; first, import the templates with partnerapi templates import"},
		{of(func(r *domain.ResultRecord) { r.Template = domain.Optional[domain.Ref[domain.TemplateKind]]{} }), "template is required"},
		{of(func(r *domain.ResultRecord) {
			r.TemplateName = domain.Give(domain.TemplateName{Name: "None", Language: "en"})
		}), "template_name: there is no imported template"},
		{of(func(r *domain.ResultRecord) { r.SentAt = none }), "send_at is required"},
		{of(func(r *domain.ResultRecord) { r.SentAt, r.SendAt = none, moment(8*day) }), "send_at was more than 7 days ago"},
		{of(func(r *domain.ResultRecord) { r.ClickedAt = maybe(4 * day) }), "clicked_at is before sent_at"},
		{of(func(r *domain.ResultRecord) { r.ReportedAt = maybe(-day) }), "reported_at is in the future"},
		{of(func(r *domain.ResultRecord) { r.SentAt, r.SendAt, r.OpenedAt = none, moment(0), maybe(0) }), "sent_at is required if opened_at is set"},
		{of(func(r *domain.ResultRecord) { r.Reported, r.ReportedAt = domain.Give(false), maybe(0) }), "reported is false"},
		{of(func(r *domain.ResultRecord) { r.FailedAt = maybe(0) }), "failed_at and failure"},
		{of(func(r *domain.ResultRecord) { r.FailedAt, r.Failure = maybe(0), domain.Give(new("refused")) }), "failed_at and sent_at must not both be set"},
		{domain.ResultRecord{ID: stored.ID, User: domain.Give(domain.RefTo(other))}, "user cannot be changed"},
		{domain.ResultRecord{ID: stored.ID, Template: domain.Give(domain.RefTo(domain.TemplateID{15: 3}))}, "template cannot be changed"},
		{domain.ResultRecord{ID: stored.ID, SentAt: moment(4 * day)}, "sent_at cannot be changed"},
		{domain.ResultRecord{ID: stored.ID, ClickedAt: null}, "the status cannot change back from clicked to sent"},
	}
	for _, c := range cases {
		importAll(w, records.Results, []domain.ResultRecord{c.record}, "refused: "+c.want)
	}
	w.WantPhishingCounts(t)
}

// TestImportResultsCost: the number of statements is that of one record.
func TestImportResultsCost(t *testing.T) {
	t.Parallel()
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	w.Add("phishing_templates", row{"id": aTemplate})
	cost := func(n int) int {
		var batch []domain.ResultRecord
		for range n {
			r := resultOf(w.AddUser(w.AddClient(), domain.RoleStandard, 750))
			r.SentAt = moment(day)
			batch = append(batch, r)
		}
		return counter.During(func() {
			importAll(w, records.Results, batch, slices.Repeat([]string{"created"}, n)...)
		})
	}
	if one, many := cost(1), cost(20); one != many {
		t.Errorf("%d statements for a record, %d for twenty", one, many)
	}
}
