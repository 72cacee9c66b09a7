package mail_test

import (
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestServiceMailWords: each kind is there in every language, and what names and
// catalogues hold is text and nothing else. What callers name as they like is in no
// subject, which mail programs show before the mail is opened.
func TestServiceMailWords(t *testing.T) {
	t.Parallel()
	c := composer(t, "")
	const name, odd = "<b>Your account is locked</b>\r\n\r\nBcc: all@example.test", "<b>x</b>\r\n\r\nBcc: all@example.test"
	host := odd
	for _, kind := range append([]domain.MessageType{
		domain.WelcomeMail, domain.AdminInviteMail, domain.TrainingInvite, domain.TrainingReminder, domain.PolicyReminder,
	}, domain.ServiceMails...) {
		for _, language := range []domain.Language{domain.English, domain.Spanish, domain.French} {
			m := domain.Mail{
				ID: db.NewID[domain.MessageKind](), Type: kind, To: "ada@example.test", Name: name, Language: language,
				ClientName: name, PartnerName: odd, CourseTitle: odd, CompletedOn: domain.DateOf(v2test.Noon), MonthOf: domain.DateOf(v2test.Noon),
				Simulated: domain.SimulatedMail{From: odd, Subject: odd, SentOn: domain.DateOf(v2test.Noon), Clues: (&domain.Template{}).Clues()},
				Overdue:   []domain.OverdueCourse{{Title: odd, DueOn: domain.DateOf(v2test.Noon)}},
				Exposure:  domain.Exposure{Title: odd, Domain: &host, DataClasses: []string{odd, "email ADDRESSES"}, Severity: domain.SeverityLow},
			}
			got, err := c.Compose(m, v2test.Noon)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"<b>", "<no value>", "ZgotmplZ", "%!"} {
				if strings.Contains(got.HTML, text) {
					t.Errorf("%s in %s holds %q:\n%s", kind, language, text, got.HTML)
				}
			}
			if strings.ContainsAny(got.Subject, "\r\n") || got.Subject == "" || strings.Contains(got.Subject, "locked") || strings.Contains(got.Text, "\nBcc") || strings.Contains(got.Text, "<no value>") {
				t.Errorf("%s in %s: %q\n%s", kind, language, got.Subject, got.Text)
			}
			if kind == domain.CertificateMail && !strings.Contains(got.Text, "\n    ada@example.test\n") {
				t.Errorf("the certificate of a user without a name:\n%s", got.Text)
			}
			class := map[domain.Language]string{domain.English: "- email ADDRESSES", domain.Spanish: "- Direcciones de correo", domain.French: "- Adresses courriel"}[language]
			if kind == domain.ExposureNotice && !strings.Contains(got.Text, class) {
				t.Errorf("%s lacks %q:\n%s", language, class, got.Text)
			}
		}
	}
}
