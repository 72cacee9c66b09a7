package report_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestMonthlyReports: on the first of a month, or up to a week later, each client
// that wants it gets a report of the month before, once. Its mails to the admins are
// asked for when it is ready, and it counts towards no limit.
func TestMonthlyReports(t *testing.T) {
	t.Parallel()
	w := newService(t)
	without := w.Client(w.tenant, "Does not want them")
	archived := w.Client(w.tenant, "Archived")
	for _, client := range []domain.ClientID{w.client.ID, archived.ID} {
		w.must(outbox.SwitchMail(t.Context(), w.DB, client, domain.MonthlyReportMail, true))
	}
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", archived.ID)
	admin := db.NewID[domain.AdminKind]()
	w.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		VALUES ($1, $2, $3, 'ada@example.com', 'Ada', 'owner', now())`, admin, w.tenant.ID, w.client.ID)
	monthly := func() int {
		t.Helper()
		w.care()
		w.care()
		if n := w.Number("SELECT count(*) FROM reports WHERE client_id IN ($1, $2)", without.ID, archived.ID); n != 0 {
			t.Errorf("%d reports of clients that get none", n)
		}
		return w.Number("SELECT count(*) FROM reports WHERE mailed_for IS NOT NULL")
	}

	w.Clock.Set(time.Date(2026, 7, 9, 12, 0, 0, 0, time.UTC)) // too late for June's
	if n := monthly(); n != 0 {
		t.Fatalf("%d reports more than a week after the first", n)
	}
	w.Clock.Set(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	if n := monthly(); n != 1 {
		t.Fatalf("%d reports of July", n)
	}
	w.must(outbox.SwitchMail(t.Context(), w.DB, without.ID, domain.MonthlyReportMail, true)) // from the next month on
	w.Clock.Set(time.Date(2026, 8, 3, 0, 0, 0, 0, time.UTC))
	if n := monthly(); n != 1 {
		t.Fatalf("%d reports of July two days later", n)
	}

	in := &api.ListReportsInput{}
	in.Path.ClientID, in.Query.Limit = w.client.ID, 10
	page, err := op.Call(w.tenant.Ctx, &w.API.Set, api.ListReports, in)
	w.must(err)
	r := w.report(page.Data[0].ID)
	if r.Type != domain.MonthlyReport || r.Period.Start.String() != "2026-07-01" || r.Period.End.String() != "2026-07-31" {
		t.Errorf("queued %+v", r)
	}
	for range domain.MaxReports { // as many as without it
		_, err := op.Call(w.tenant.Ctx, &w.API.Set, api.RequestReport, w.asked(domain.PolicyReport))
		w.must(err)
	}
	for range domain.MaxReports { // which are made first
		leases, err := reports.ClaimReports(t.Context(), w.DB, 1, time.Minute)
		if w.must(err); len(leases) != 1 || leases[0].Report == r.ID {
			t.Errorf("claimed %+v", leases)
		}
	}
	outcome, err := w.worker(report.NewRenderer(report.Options{})).Process(t.Context(), w.lease(r))
	w.must(err)
	if outcome != report.Made {
		t.Errorf("the report was %s", outcome)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests AS m JOIN outbox AS o USING (client_id, id) WHERE m.report_id = $1 AND m.admin_id = $2", r.ID, admin); n != 1 {
		t.Errorf("%d mails to the admin", n)
	}
	pdf, err := report.NewAttachments(w.DB, w.store).ReportPDF(t.Context(), r.Client, r.ID)
	if err != nil || string(pdf[:5]) != "%PDF-" {
		t.Errorf("the mail brings %.20q, %v", pdf, err)
	}
	w.Exec("UPDATE clients SET archived_at = now()")
	if _, err := report.NewAttachments(w.DB, w.store).ReportPDF(t.Context(), r.Client, r.ID); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("of an archived client: %v", err)
	}
}
