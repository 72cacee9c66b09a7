package mail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// reportFiles are reports by their ids.
type reportFiles map[domain.ReportID]string

func (f reportFiles) ReportPDF(_ context.Context, _ domain.ClientID, id domain.ReportID) ([]byte, error) {
	data, ok := f[id]
	if !ok {
		return nil, domain.ErrNotFound(id.Noun())
	}
	return []byte(data), nil
}

// TestMonthlyReport: each admin of the client gets the file once, and it is
// recorded where the admin is a user of this client.
func TestMonthlyReport(t *testing.T) {
	t.Parallel()
	p, now := newPlatform(t), v2test.Noon
	user := p.user(p.client, "ada@example.test", domain.French)
	gone := p.user(p.client, "gone@example.test", domain.English)
	p.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", gone.User)
	foreign := p.user(p.Client(p.tenant, "Other").ID, "eve@example.test", domain.Spanish)
	var admins []domain.AdminID
	for _, email := range []string{"ada@example.test", "eve@example.test", "gone@example.test"} {
		admin := db.NewID[domain.AdminKind]()
		admins = append(admins, admin)
		p.Exec("INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at) VALUES ($1, $2, $3, $4, 'Eve Admin', 'admin', $5)",
			admin, p.tenant.ID, p.client, email, now)
	}
	files := reportFiles{}
	report := func(to ...domain.AdminID) domain.ReportID {
		id := db.NewID[domain.ReportKind]()
		p.Exec(`INSERT INTO reports (client_id, id, type, format, status, period_start, period_end, created_at, updated_at)
			VALUES ($1, $2, 'monthly_report', 'pdf', 'ready', '2026-05-01', '2026-05-31', $3, $3)`, p.client, id, now)
		files[id] = "%PDF " + id.String()
		for range 2 {
			err := p.DB.Change(t.Context(), func(_ context.Context, c *db.Change) error {
				c.MailReport(p.client, id, to...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	p.reports = files
	report(admins...)
	if got := p.sent(); got != "" || len(p.server.all()) != 0 {
		t.Fatalf("sent %q while it is off", got)
	}
	if err := outbox.SwitchMail(t.Context(), p.DB, p.client, domain.MonthlyReportMail, true); err != nil {
		t.Fatal(err)
	}
	second := report(append(admins, domain.AdminID{15: 1})...)
	if got := p.sent(); got != "monthly-report" {
		t.Errorf("recorded %q", got)
	}
	got := map[string]parsed{}
	for _, m := range p.server.all() {
		got[m.to] = parse(t, m.data)
	}
	ada, eve := got["ada@example.test"], got["eve@example.test"]
	for _, ok := range []bool{
		len(got) == 2 && len(p.server.all()) == 2, ada.file == "monthly-report-2026-05.pdf:%PDF "+second.String(), eve.file == ada.file,
		ada.subject == "Rapport de sécurité, mai 2026", strings.HasPrefix(ada.text, "Bonjour Ada,"),
		eve.subject == "Security report for May 2026", strings.HasPrefix(eve.text, "Hello Eve Admin,"), !strings.Contains(eve.html, "<a "),
		p.Number("SELECT count(*) FROM sent_emails WHERE user_id = $1", user.User) == 1, p.Number("SELECT count(*) FROM sent_emails WHERE user_id = $1", foreign.User) == 0,
	} {
		if !ok {
			t.Fatalf("%v\n%s\n%s", got, ada.text, eve.text)
		}
	}
	failures := map[string]string{}
	failed, err := outbox.FailedMails(t.Context(), p.DB, time.Time{}, 10)
	for _, m := range failed {
		failures[m.Failure] = m.To
	}
	if err != nil || len(failures) != 2 || failures["the user is inactive"] != "gone@example.test" || failures["the admin was removed"] != "" {
		t.Errorf("%v: %v", failures, err)
	}

	delete(files, report(admins[0]))
	if p.sent(); len(p.server.all()) != 2 || p.Number("SELECT count(*) FROM mail_requests WHERE failure LIKE '%report%'") != 1 {
		t.Error("a report without a file is not given up")
	}
	p.reports = nil
	report(admins[0])
	if p.sent(); len(p.server.all()) != 2 || p.Number("SELECT count(*) FROM mail_requests WHERE failure LIKE '%no reports%'") != 1 {
		t.Error("a report where none are made is not given up")
	}
}
