package mail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// TestNotices: a mail to a partner's admins is sent once to each address of a kind and cause,
// with the service's links; not where its kind is switched off, or the admin was removed; and
// one that was given up can be sent again.
func TestNotices(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	var partner domain.PartnerID
	if err := p.DB.SQL().QueryRowContext(t.Context(), "SELECT partner_id FROM clients WHERE id = $1", p.client).Scan(&partner); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
	if got.subject != "Deliveries to your webhook fail" || strings.Contains(got.text+got.html, domain.PublicURL) ||
		p.Number("SELECT count(*) FROM partner_mails WHERE sent_at IS NOT NULL") != 1 || len(p.recorded()) != 0 {
		t.Errorf("sent %+v", got)
	}

	if err := outbox.SwitchPartnerMail(t.Context(), p.DB, partner, domain.WebhookFailingMail, false); err != nil {
		t.Fatal(err)
	}
	ask("two", 1)
	sent(mail.Suppressed)
	if list, err := outbox.PartnerMailSwitches(t.Context(), p.DB, partner); err != nil || list[0].On || !list[1].On {
		t.Errorf("switches %v: %v", list, err)
	}
	if err := outbox.SwitchPartnerMail(t.Context(), p.DB, partner, domain.WebhookFailingMail, true); err != nil {
		t.Fatal(err)
	}
	ask("three", 1)
	p.Exec("UPDATE admins SET role = 'viewer' WHERE client_id IS NULL")
	sent(mail.Failed)

	p.Exec("UPDATE admins SET role = 'owner' WHERE client_id IS NULL")
	waiting, _, err := outbox.MailBacklogs(t.Context(), p.DB)
	if err != nil || waiting.Failed != 1 {
		t.Errorf("backlog %+v: %v", waiting, err)
	}
	again, err := outbox.RetryMails(t.Context(), p.DB, time.Time{}, nil, 10)
	if err != nil || len(again) != 1 || again[0].Client != nil || again[0].To != "ada@example.test" || again[0].Type != domain.WebhookFailingMail {
		t.Errorf("again %+v: %v", again, err)
	}
	sent(mail.Sent)

	failure.Disabled = true
	if kind, n := failure.Mail(); kind != domain.WebhookDisabledMail || !strings.Contains(n.Paragraphs[0], "none has succeeded") {
		t.Errorf("%s: %+v", kind, n)
	}
	p.Exec("INSERT INTO moves (partner_id, step, cell) VALUES ($1, 'handing', '01')", partner)
	failure.Disabled = false
	ask("four", 1)
	sent() // nothing of a partner that is handed over
}
