package v1compat

import (
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

var benchedAt = op.At(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))

// BenchmarkUsers translates and encodes the largest page that a list of v2
// gives: what v1 adds to its work, beside the look-up of numbers.
func BenchmarkUsers(b *testing.B) {
	department := "Finance"
	rows := make([]v2.User, 500)
	for i := range rows {
		rows[i].UserCore = v2.UserCore{
			ID: domain.UserID{15: byte(i)}, Email: "someone@example.com", FirstName: "Some", LastName: "One", Department: &department,
			Status: domain.Active, CreatedAt: benchedAt, UpdatedAt: benchedAt,
		}
	}
	benchPage(b, rows, toUser)
}

// BenchmarkClients is BenchmarkUsers for clients, which have numbers.
func BenchmarkClients(b *testing.B) {
	rows := make([]v2.Client, 500)
	for i := range rows {
		rows[i] = v2.Client{ID: domain.ClientID{15: byte(i)}, Name: "Northern Analytics", CreatedAt: benchedAt}
	}
	benchPage(b, rows, func(c v2.Client) Client {
		out := toClient(c)
		out.ID = idmap.Ref[domain.ClientKind]{ID: c.ID, Number: 1}
		return out
	})
}

func benchPage[Row, Item any](b *testing.B, rows []Row, item func(Row) Item) {
	b.ReportAllocs()
	for b.Loop() {
		page := Paging[Item]{Items: make([]Item, len(rows)), Limit: len(rows)}
		for i, row := range rows {
			page.Items[i] = item(row)
		}
		body, err := ginop.Encode(page)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

// BenchmarkSuccessor makes the links of answers: what they add to a page's work.
func BenchmarkSuccessor(b *testing.B) {
	api := v2.New(nil, nil)
	f := New(api, Config{Release: op.Latest})
	client, user := domain.ClientID{15: 1}, domain.UserID{15: 2}

	users := &v2.ListUsers{}
	users.Path.ClientID = client
	users.Query.Status, users.Query.Sort, users.Query.Limit = "active", "created_at", 50
	mails := &v2.SentEmails{User: user, Since: &benchedAt, Until: &benchedAt}
	mails.Body.MessageTypes = []domain.MessageType{
		domain.TrainingInvite, domain.PhishingMail, domain.PhishReminder, domain.CertificateMail, domain.MonthlyReportMail,
	}
	sent, paging := nextListSentEmails(mails, nil)
	paging.Limit = 100

	for name, next := range map[string]any{"partner": &v2.GetPartner{}, "users": users, "sentemails": sent} {
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
