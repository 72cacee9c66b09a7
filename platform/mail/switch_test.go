package mail_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

// TestSwitches: what is due while its kind is off is not sent, then or later, and
// is no failure. A monthly report is off unless it was switched on.
func TestSwitches(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	u := p.user(p.client, "ada@example.test", domain.English)
	turn := func(kind domain.MessageType, on bool) {
		t.Helper()
		p.must(outbox.SwitchMail(t.Context(), p.DB, p.client, kind, on))
	}
	turn(domain.CertificateMail, false)
	turn(domain.PhishReminder, false)
	p.completed(u, now)
	p.exposed(u, "List", now)
	p.clicked(p.simulation(u, now.Add(-time.Hour)), now)
	if got := p.sent(); got != "exposure-notice" {
		t.Errorf("sent %q", got)
	}
	turn(domain.CertificateMail, true)
	turn(domain.PhishReminder, true) // before it is due
	p.Clock.Advance(2 * day)
	if got := p.sent(); got != "phish-reminder" {
		t.Errorf("sent %q after they were switched on", got)
	}
	if n := p.Number("SELECT count(*) FROM mail_requests WHERE suppressed_at IS NOT NULL AND failed_at IS NULL"); n != 1 {
		t.Errorf("%d are suppressed", n)
	}
	inactive := p.user(p.client, "gone@example.test", domain.English)
	turn(domain.CertificateMail, false)
	p.completed(inactive, p.Clock.Now())
	p.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive.User)
	if got := p.drain(p.sender); len(got) != 1 || got[0] != mail.Suppressed {
		t.Errorf("to an inactive user: %v", got)
	}
	turn(domain.CertificateMail, true)
	failed, err := outbox.RetryMails(t.Context(), p.DB, time.Time{}, nil, 10)
	f := worldtest.Figures(t, p.DB)
	if err != nil || len(failed) != 0 || f["mails mail waiting"] != 0 || f["mails mail failed"] != 0 {
		t.Errorf("%v, %v: %v", failed, f, err)
	}

	var want []domain.MailSwitch
	for _, kind := range domain.ClientSwitches {
		want = append(want, domain.MailSwitch{Type: kind, On: kind != domain.MonthlyReportMail && kind != domain.ReportLink})
	}
	if got, err := outbox.MailSwitches(t.Context(), p.DB, p.client); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v: %v", got, err)
	}
	if err := outbox.SwitchMail(t.Context(), p.DB, domain.ClientID{15: 1}, domain.CertificateMail, true); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("an unknown client: %v", err)
	}
}

// reportFiles are reports by their ids.
type reportFiles map[domain.ReportID]string

func (f reportFiles) ReportPDF(_ context.Context, _ domain.ClientID, id domain.ReportID) ([]byte, error) {
	data, ok := f[id]
	if !ok {
		return nil, domain.ErrNotFound(id.Noun())
	}
	return []byte(data), nil
}

// certifier writes certificates, as processes that send emails do.
var certifier = report.NewAttachments(nil, nil, report.NewRenderer(nil))

func (reportFiles) CertificatePDF(ctx context.Context, c domain.Certificate) ([]byte, error) {
	return certifier.CertificatePDF(ctx, c)
}

// TestMonthlyReport: each admin of the client gets the file once, and it is
// recorded where the admin is a user of this client.
func TestMonthlyReport(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	user := p.user(p.client, "ada@example.test", domain.French)
	gone := p.user(p.client, "gone@example.test", domain.English)
	p.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", gone.User)
	foreign := p.user(p.AddClient(p.tenant, "Other").ID, "eve@example.test", domain.Spanish)
	var admins []domain.AdminID
	for _, email := range []string{"ada@example.test", "eve@example.test", "gone@example.test"} {
		admin := db.NewID[domain.AdminKind]()
		admins = append(admins, admin)
		p.Exec("INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at) VALUES ($1, $2, $3, $4, 'Eve Admin', 'admin', $5)",
			admin, p.tenant.ID, p.client, email, now)
	}
	files := reportFiles{}
	request := func(to ...domain.AdminID) domain.ReportID {
		id := db.NewID[domain.ReportKind]()
		p.Exec(`INSERT INTO reports (client_id, id, type, format, status, period_start, period_end, created_at, updated_at)
			VALUES ($1, $2, 'monthly_report', 'pdf', 'ready', '2026-05-01', '2026-05-31', $3, $3)`, p.client, id, now)
		files[id] = "%PDF " + id.String()
		for range 2 {
			err := p.DB.Change(t.Context(), func(_ context.Context, c *db.Change) error {
				for _, admin := range to {
					c.RequestMail(domain.UserKey{Client: p.client}, c.At,
						db.MailRequest{Type: domain.MonthlyReportMail, AdminID: admin.UUID(), ReportID: id.UUID()})
				}
				return nil
			})
			p.must(err)
		}
		return id
	}
	p.attachments = files
	request(admins...)
	if got := p.sent(); got != "" || len(p.server.all()) != 0 {
		t.Fatalf("sent %q while it is off", got)
	}
	p.must(outbox.SwitchMail(t.Context(), p.DB, p.client, domain.MonthlyReportMail, true))
	second := request(append(admins, domain.AdminID{15: 1})...)
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
		eve.subject == "Security report for May 2026", strings.HasPrefix(eve.text, "Hello Eve Admin,"), strings.Count(eve.html, "<a ") == 1,
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

	delete(files, request(admins[0]))
	if p.sent(); len(p.server.all()) != 2 || p.Number("SELECT count(*) FROM mail_requests WHERE failure LIKE '%report%'") != 1 {
		t.Error("a report without a file is not given up")
	}
	p.attachments = nil
	request(admins[0])
	if p.sent(); len(p.server.all()) != 2 || p.Number("SELECT count(*) FROM mail_requests WHERE failure LIKE '%no attachments%'") != 1 {
		t.Error("a report without attachments is not given up")
	}
}

// TestNotices: a mail to a partner's admins is sent once to each address of a kind and cause,
// with the service's links; not where its kind is switched off, or the admin was removed; and
// one that was given up can be sent again.
func TestNotices(t *testing.T) {
	t.Parallel()
	p := newOffice(t)
	partner := p.tenant.ID
	p.Exec("DELETE FROM admins WHERE client_id IS NULL")
	admin := func(email string) {
		fixture.Insert(t, p.DB.SQL(), "admins", fixture.Row{
			"id": db.NewID[domain.AdminKind](), "partner_id": partner, "email": email, "name": "A", "role": "admin", "created_at": v2test.Noon,
		})
	}
	admin("ada@example.test")
	failure := domain.WebhookFailure{ID: db.NewID[domain.WebhookKind](), URL: "https://hook.example/", Since: v2test.Noon.Add(-6 * time.Hour)}
	ask := func(cause string, want int) {
		t.Helper()
		kind, notice := failure.Mail()
		notice.Points, notice.PointsHeading = []string{"see " + domain.PublicURL + "/docs"}, "Points:"
		err := p.DB.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
			mailed, err := outbox.MailPartners(ctx, c, []domain.PartnerMail{{Partner: partner, Kind: kind, Cause: cause, Notice: notice}})
			if len(mailed) != want {
				t.Errorf("%s: mailed %+v", cause, mailed)
			}
			return err
		})
		p.must(err)
	}
	sent := func(want ...mail.Outcome) {
		t.Helper()
		if got := p.drain(p.sender); len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("outcomes %v, not %v", got, want)
		}
	}

	ask("one", 1)
	ask("one", 0)
	sent(mail.Sent)
	got := parse(t, []byte(p.server.all()[0].data))
	for _, text := range []string{"webhook " + failure.ID.String() + " (https://hook.example)", "since 15 June 2026, 06:00 UTC", "/docs/guide/webhooks", "- see http"} {
		if !strings.Contains(got.text, text) {
			t.Errorf("no %q in\n%s", text, got.text)
		}
	}
	if got.subject != "Deliveries to your webhook are failing" || strings.Contains(got.text+got.html, domain.PublicURL) ||
		p.Number("SELECT count(*) FROM partner_mails WHERE sent_at IS NOT NULL") != 1 || len(p.recorded()) != 0 {
		t.Errorf("sent %+v", got)
	}

	p.must(outbox.SwitchPartnerMail(t.Context(), p.DB, partner, domain.WebhookFailingMail, false))
	ask("two", 1)
	sent(mail.Suppressed)
	if list, err := outbox.PartnerMailSwitches(t.Context(), p.DB, partner); err != nil || list[0].On || !list[1].On {
		t.Errorf("switches %v: %v", list, err)
	}
	p.must(outbox.SwitchPartnerMail(t.Context(), p.DB, partner, domain.WebhookFailingMail, true))
	ask("three", 1)
	p.Exec("UPDATE admins SET role = 'viewer' WHERE client_id IS NULL")
	sent(mail.Failed)

	p.Exec("UPDATE admins SET role = 'owner' WHERE client_id IS NULL")
	ask("four", 1)
	p.Exec("UPDATE partners SET archived_at = now() WHERE id = $1", partner)
	ask("five", 0)
	sent(mail.Failed)
	p.Exec("UPDATE partners SET archived_at = NULL")
	p.Exec("DELETE FROM partner_mails WHERE cause = 'four'")
	if n := worldtest.Figures(t, p.DB)["mails mail failed"]; n != 1 {
		t.Errorf("got %v failed mails, want 1", n)
	}
	again, err := outbox.RetryMails(t.Context(), p.DB, time.Time{}, nil, 10)
	if err != nil || len(again) != 1 || again[0].Client != nil || again[0].To != "ada@example.test" || again[0].Type != domain.WebhookFailingMail {
		t.Errorf("again %+v: %v", again, err)
	}
	sent(mail.Sent)

	failure.Disabled = true
	if kind, n := failure.Mail(); kind != domain.WebhookDisabledMail || !strings.Contains(n.Paragraphs[0], "All deliveries have failed") {
		t.Errorf("%s: %+v", kind, n)
	}
	p.Exec("INSERT INTO moves (partner_id, step, cell) VALUES ($1, 'handing', '01')", partner)
	failure.Disabled = false
	ask("four", 1)
	sent() // nothing of a partner that is handed over
}
