package v1compat

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// mail adds the record of a mail.
func (s *service) mail(client domain.ClientID, user domain.UserID, kind domain.MessageType, at time.Time) string {
	s.T.Helper()
	id := db.NewID[domain.MessageKind]()
	s.insertMail(client, user, id, kind, at)
	return id.UUID()
}

// insertMail adds the record of a mail, or gives one another type.
func (s *service) insertMail(client domain.ClientID, user domain.UserID, id domain.MessageID, kind domain.MessageType, at time.Time) {
	s.T.Helper()
	s.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		VALUES ($1, $2, $3, $4, 'a@example.com', 'S', 'smtp', $5)
		ON CONFLICT (client_id, user_id, id) DO UPDATE SET message_type = excluded.message_type`, client, user, id, at, kind)
}

// TestSentEmails: whose mails are listed, and which members of the body are read.
func TestSentEmails(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, stranger := s.AddPartner("Partner"), s.AddPartner("Stranger")
	mailed := func(of v2test.Partner, client, email string) (user, mail string) {
		u := s.AddUser(of, s.AddClient(of, client).ID, email)
		s.Clock.Advance(-time.Minute)
		return u.ID.UUID(), s.mail(u.ClientID, u.ID, domain.PhishingMail, s.Clock.Now())
	}
	id, hers := mailed(tenant, "Client", "ada@example.com")
	_, twins := mailed(tenant, "Second", "ada@example.com")
	theirs, _ := mailed(stranger, "Theirs", "ada@example.com")
	_, _ = mailed(stranger, "More", "bob@example.com")
	_, greek := mailed(tenant, "Greek", "ΝΊΚΟΣ@bücher.example")
	gone, _ := mailed(tenant, "Archived", "eve@example.com")
	s.Exec("UPDATE clients SET archived_at = now() WHERE name = 'Archived'")
	s.Clock.Set(noon)
	none := s.AddKey(tenant, []domain.Scope{domain.Read}, []domain.ClientID{})

	for name, c := range map[string]struct {
		key, body string
		status    int
		want      []string
	}{
		"the id takes precedence":       {tenant.Key, `{"user_infima_id":"` + id + `","email_address":"nobody@example.com"}`, 200, []string{hers}},
		"null is absent":                {tenant.Key, `{"user_infima_id":null,"email_address":"ada@example.com","message_types":null,"start_time":null}`, 200, []string{hers, twins}},
		"all users of an email":         {tenant.Key, `{"email_address":"ADA@example.com"}`, 200, []string{hers, twins}},
		"an email by its key":           {tenant.Key, `{"email_address":"νίκοΣ@XN--Bcher-kva.example"}`, 200, []string{greek}},
		"an empty text is absent":       {tenant.Key, `{"user_infima_id":"` + id + `","email_address":"","message_types":[]}`, 200, []string{hers}},
		"unknown members are passed by": {tenant.Key, `{"user_infima_id":"` + id + `","limit":1}`, 200, []string{hers}},
		"another partner's user":        {tenant.Key, `{"user_infima_id":"` + theirs + `"}`, 403, nil},
		"beyond the key":                {none, `{"user_infima_id":"` + id + `"}`, 403, nil},
		"an address beyond the key":     {none, `{"email_address":"ada@example.com"}`, 404, nil},
		"another partner's address":     {tenant.Key, `{"email_address":"bob@example.com"}`, 404, nil},
		"an archived client's user":     {tenant.Key, `{"user_infima_id":"` + gone + `"}`, 404, nil},
		"an archived client's address":  {tenant.Key, `{"email_address":"eve@example.com"}`, 404, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.Do("POST", "/v1/sentemails", c.key, c.body)
			if c.status != http.StatusOK {
				envelope(t, name, r, c.status, codeOf[c.status], map[int]string{403: "this key has no access to the user", 404: "no such user, or this key has no access to it"}[c.status])
				return
			}
			var p page
			r.Want(c.status).Into(&p)
			if got := p.texts("message_infima_id"); !slices.Equal(got, c.want) || p.Total != len(c.want) || p.Limit != 100 {
				t.Errorf("%s: %+v\nnot %v", c.body, p, c.want)
			}
			if target := successorOf(t, r); (target == "") != (len(c.want) > 1) { // v2 lists one user's
				t.Errorf("%s leads to %q", c.body, target)
			}
		})
	}
}

// TestDaysOfSentEmails: v1 lists the mails of its own types in the 30 days from a time on,
// which is the first moment of them, or in the last 30 days; and those of some types alone.
func TestDaysOfSentEmails(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	u := s.AddUser(tenant, s.AddClient(tenant, "Client").ID, "ada@example.com")
	for kind, days := range map[domain.MessageType]int{
		domain.PhishingMail: 0, domain.PhishReminder: 1, domain.TrainingInvite: 29, domain.CertificateMail: 31,
		domain.MonthlyReportMail: 61, domain.WelcomeMail: 0, domain.PolicyReminder: 2, // the last two are v2's
	} {
		s.mail(u.ClientID, u.ID, kind, noon.AddDate(0, 0, -days))
	}
	s.Clock.Set(noon.Add(time.Second))
	for _, c := range []struct{ members, want string }{
		{``, "phishing phish-reminder training-invite"},
		{`,"message_types":["phish-reminder"]`, "phish-reminder"},
		{`,"message_types":["training-invite","phishing"]`, "phishing training-invite"},
		{`,"message_types":["monthly-report"]`, ""},
		{`,"start_time":"2026-04-15T12:00:00Z"`, "monthly-report"},
		{`,"start_time":"2026-04-15T12:00:01Z"`, "certificate"},
		{`,"start_time":"2026-05-15T12:00:00Z"`, "training-invite certificate"},
		{`,"start_time":"2026-05-15T12:00:01Z"`, "phish-reminder training-invite"},
		{`,"start_time":"2026-05-17T14:00:01+02:00"`, "phishing phish-reminder"},
		{`,"start_time":"2026-05-15T12:00:00Z","message_types":["certificate"]`, "certificate"},
		{`,"start_time":"2026-07-01T00:00:00Z"`, ""},
		{`,"start_time":"9999-12-02T00:00:00Z"`, ""},
	} {
		var p page
		s.Do("POST", "/v1/sentemails", tenant.Key, `{"user_infima_id":"`+u.ID.UUID()+`"`+c.members+`}`).Want(200).Into(&p)
		if got := strings.Join(p.texts("message_type"), " "); got != c.want {
			t.Errorf("%s: %q, not %q", c.members, got, c.want)
		}
	}
}
