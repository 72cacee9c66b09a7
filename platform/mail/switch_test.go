package mail_test

import (
	"slices"
	"testing"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// TestSwitches: what is due while its kind is off is not sent, then or later, and
// is no failure. A monthly report is off unless it was switched on.
func TestSwitches(t *testing.T) {
	t.Parallel()
	p, now := newPlatform(t), v2test.Noon
	u := p.user(p.client, "ada@example.test", domain.English)
	turn := func(kind domain.MessageType, on bool) {
		t.Helper()
		if err := outbox.SwitchMail(t.Context(), p.DB, p.client, kind, on); err != nil {
			t.Fatal(err)
		}
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
	if backlog, _, _ := outbox.MailBacklogs(t.Context(), p.DB); err != nil || len(failed) != 0 || backlog != (outbox.MailBacklog{}) {
		t.Errorf("%v, %+v: %v", failed, backlog, err)
	}

	want := []domain.MailSwitch{{Type: "certificate", On: true}, {Type: "phish-reminder", On: true}, {Type: "exposure-notice", On: true}, {Type: "monthly-report"}}
	if got, err := outbox.MailSwitches(t.Context(), p.DB, p.client); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v: %v", got, err)
	}
	if err := outbox.SwitchMail(t.Context(), p.DB, domain.ClientID{15: 1}, domain.CertificateMail, true); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("an unknown client: %v", err)
	}
}

// TestReminderBacklog: a mail that is not due yet does not wait.
func TestReminderBacklog(t *testing.T) {
	t.Parallel()
	p, now := newPlatform(t), v2test.Noon
	p.clicked(p.simulation(p.user(p.client, "ada@example.test", domain.English), now.Add(-time.Hour)), now)
	if backlog, _, err := outbox.MailBacklogs(t.Context(), p.DB); err != nil || backlog.Waiting != 0 {
		t.Errorf("%+v: %v", backlog, err)
	}
	p.Clock.Advance(2*day + time.Minute)
	backlog, _, err := outbox.MailBacklogs(t.Context(), p.DB)
	if err != nil || backlog.Waiting != 1 || !backlog.Oldest.Equal(now.Add(2*day)) {
		t.Errorf("%+v: %v", backlog, err)
	}
}
