package v1compat

import (
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// BenchmarkSuccessor makes the links of answers: what they add to a page's work.
func BenchmarkSuccessor(b *testing.B) {
	f := Declare(Config{Release: op.Latest})
	client, user := domain.ClientID{15: 1}, domain.UserID{15: 2}

	users := &api.ListUsersInput{}
	users.Path.ClientID = client
	users.Query.Status, users.Query.Sort, users.Query.Limit = "active", "created_at", 50
	mails := &api.SentEmailsInput{User: user, Since: &benchedAt, Until: &benchedAt}
	mails.Body.MessageTypes = []domain.MessageType{
		domain.TrainingInvite, domain.PhishingMail, domain.PhishReminder, domain.CertificateMail, domain.MonthlyReportMail,
	}
	sent, paging := nextListSentEmails(mails, nil)
	paging.Limit = 100

	for name, next := range map[string]any{"partner": &api.GetPartnerInput{}, "users": users, "sentemails": sent} {
		for _, r := range f.routes {
			if r.ID == name {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if r.link(next) == "" {
							b.Fatal("no link")
						}
					}
				})
			}
		}
	}
}
