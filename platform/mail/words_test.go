package mail_test

import (
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestExposureNotices verifies that an exposure notice says in each language what to do, differently for each severity, and
// whom to ask: the support contact, which its button leads to, or else the IT team.
func TestExposureNotices(t *testing.T) {
	t.Parallel()
	c := composer(t, "")
	for language, it := range map[domain.Language]string{domain.English: "your IT team", domain.Spanish: "su equipo de informática", domain.French: "votre équipe informatique"} {
		seen := map[string]bool{}
		for _, severity := range domain.Severity("").Values() {
			for _, contact := range []domain.Contact{"", "help@acme.example"} {
				m := must(c.Compose(domain.Mail{
					Type: domain.ExposureNotice, Language: language, Exposure: domain.Exposure{Title: "Forum", Severity: domain.Severity(severity)},
					Brand: domain.Brand{SupportContact: contact},
				}, v2test.Noon))
				_, steps, found := strings.Cut(m.Text, "\n1. ")
				steps, _, _ = strings.Cut(steps, "\n\n")
				if !found || !strings.Contains(steps, "\n2. ") || seen[steps] && (contact == "" || severity == "critical") {
					t.Errorf("%s, %s: the steps are missing or those of another severity:\n%s", language, severity, m.Text)
				}
				seen[steps] = true
				button := `class="action" bgcolor="#3f3ccf" style="border-radius:6px"><a href="mailto:help@acme.example"`
				if asks := strings.Contains(m.HTML, button); asks != (contact != "") || strings.Contains(m.Text, it) == asks || strings.Contains(m.Text, "help@acme.example.") != asks {
					t.Errorf("%s, %s: whom to ask is not %s:\n%s", language, severity, contact, m.Text)
				}
			}
		}
	}
}

// TestSentencesOfEmails verifies that the sentences of English emails to users have at most 20 words.
func TestSentencesOfEmails(t *testing.T) {
	t.Parallel()
	c := composer(t, "")
	for _, kind := range domain.MailKinds {
		if kind.Text == nil {
			continue
		}
		for _, severity := range domain.Severity("").Values() {
			m := must(c.Compose(domain.Mail{
				Type: kind.Type, Language: domain.English, Name: "Ada", ClientName: "Acme", PartnerName: "Northlight", CourseTitle: "Phishing", PolicyTitle: "Devices",
				CompletedOn: domain.DateOf(v2test.Noon), DueOn: domain.DateOf(v2test.Noon), Exposure: domain.Exposure{Title: "Forum", Severity: domain.Severity(severity)},
				Simulated: domain.SimulatedMail{From: "ceo@bait.example", Subject: "Urgent!", SentOn: domain.DateOf(v2test.Noon), Clues: (&domain.Template{}).Clues()},
			}, v2test.Noon))
			for line := range strings.Lines(m.Text) {
				for sentence := range strings.SplitSeq(line, ". ") {
					if words := strings.Fields(sentence); len(words) > 20 {
						t.Errorf("%s: a sentence has %d words: %s", kind.Type, len(words), sentence)
					}
				}
			}
		}
	}
}
