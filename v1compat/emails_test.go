package v1compat

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

func TestSentEmailsGolden(t *testing.T) {
	t.Parallel()
	user, _ := domain.ParseUUID[domain.UserKind]("0197f2c4-7bc0-7000-8000-000000000001")
	message, _ := domain.ParseUUID[domain.MessageKind]("0197f2c4-7bc0-7000-8000-000000000002")
	in := &listSentEmails{}
	in.Body.UserInfimaID = new(uuidOf(user))
	in.Body.EmailAddress = "ada@example.com"
	in.Body.StartTime = &atNoon
	in.Body.MessageTypes = []choice[MessageType]{"certificate"}
	out, _ := fromListSentEmails(in)
	if b := out.Body; *b.UserID != user || b.Email != "" || !b.Start.Time.Equal(noon) ||
		!slices.Equal(b.MessageTypes, []domain.MessageType{domain.CertificateMail}) {
		t.Errorf("asks v2 for %+v", out)
	}
	in = &listSentEmails{}
	in.Body.EmailAddress = " ada@example.com "
	out, _ = fromListSentEmails(in)
	if b := out.Body; b.UserID != nil || b.Email != "ada@example.com" || b.Start != nil || len(b.MessageTypes) != 5 {
		t.Errorf("asks v2 for %+v", out)
	}
	written(t, toSentEmail(api.AddressedEmail{
		SentEmail: api.SentEmail{
			SentAt: atNoon, FromEmail: "a@example.com", Subject: "Hello", SendMethod: domain.BySMTP, MessageType: domain.TrainingInvite,
		},
		MessageID: message, UserID: user,
	}), `{"message_infima_id":"0197f2c4-7bc0-7000-8000-000000000002","user_infima_id":"0197f2c4-7bc0-7000-8000-000000000001",`+
		`"event_time":"2026-06-15T12:00:00Z","from_email":"a@example.com","subject":"Hello","send_method":"smtp","message_type":"training-invite"}`)
}

// mail adds the record of a mail.
func (r *reader) mail(user api.User, kind domain.MessageType, at time.Time) string {
	r.T.Helper()
	id := db.NewID[domain.MessageKind]()
	r.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		VALUES ($1, $2, $3, $4, 'a@example.com', 'S', 'smtp', $5)`, user.ClientID, user.ID, id, at, kind)
	return id.UUID()
}

func (r *reader) sentEmails(query, body string) page {
	r.T.Helper()
	var p page
	r.Do("POST", "/v1/sentemails"+query, r.tenant.Key, body).Want(http.StatusOK).Into(&p)
	return p
}

func TestSentEmails(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	days := func(n int) time.Time { return noon.AddDate(0, 0, n) }
	now := r.mail(r.user, domain.PhishingMail, noon)
	edge := r.mail(r.user, domain.TrainingInvite, days(-30))
	older := r.mail(r.user, domain.CertificateMail, days(-31))
	oldest := r.mail(r.user, domain.MonthlyReportMail, days(-61))
	for _, kind := range []domain.MessageType{domain.WelcomeMail, domain.PolicyReminder, domain.AdminInviteMail, domain.ExposureNotice} {
		r.mail(r.user, kind, noon) // v1 does not know these
	}
	twin := r.User(r.tenant, r.Client(r.tenant, "Second").ID, "ada@example.com")
	twins := r.mail(twin, domain.PhishReminder, days(-1))
	stranger := r.Tenant("Stranger")
	r.mail(r.User(stranger, r.Client(stranger, "Client").ID, "ada@example.com"), domain.PhishingMail, noon)

	id := r.user.ID.UUID()
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"the last 30 days":              {`{"user_infima_id":"` + id + `"}`, []string{now, edge}},
		"the id takes precedence":       {`{"user_infima_id":"` + id + `","email_address":"nobody@example.com"}`, []string{now, edge}},
		"null is absent":                {`{"user_infima_id":null,"email_address":"ada@example.com","message_types":null,"start_time":null}`, []string{now, twins, edge}},
		"all users of an email":         {`{"email_address":"ADA@example.com"}`, []string{now, twins, edge}},
		"an empty text is absent":       {`{"user_infima_id":"` + id + `","email_address":"","message_types":[]}`, []string{now, edge}},
		"an id in upper case":           {`{"user_infima_id":"` + strings.ToUpper(id) + `"}`, []string{now, edge}},
		"no time after the year 9999":   {`{"user_infima_id":"` + id + `","start_time":"9999-12-02T00:00:00Z"}`, nil},
		"30 days from a time":           {`{"user_infima_id":"` + id + `","start_time":"2026-04-15T12:00:00Z"}`, []string{oldest}},
		"a start on the mail":           {`{"user_infima_id":"` + id + `","start_time":"2026-05-15T12:00:00Z"}`, []string{edge, older}},
		"a start after it":              {`{"user_infima_id":"` + id + `","start_time":"2026-05-15T12:00:01Z"}`, []string{edge}},
		"types":                         {`{"user_infima_id":"` + id + `","message_types":["phishing","certificate"]}`, []string{now}},
		"no types are all":              {`{"user_infima_id":"` + id + `","message_types":[]}`, []string{now, edge}},
		"unknown members are passed by": {`{"user_infima_id":"` + id + `","limit":1}`, []string{now, edge}},
	} {
		t.Run(name, func(t *testing.T) {
			p := r.sentEmails("", c.body)
			if got := p.texts("message_infima_id"); !slices.Equal(got, c.want) || p.Total != len(c.want) || p.Limit != 100 {
				t.Errorf("%s: %+v\nnot %v", c.body, p, c.want)
			}
		})
	}
}

// TestSentEmailsAccess: who may ask for whom, beyond what the table of
// conditions says.
func TestSentEmailsAccess(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	id, stranger := r.user.ID.UUID(), r.Tenant("Stranger")
	foreign := r.User(stranger, r.Client(stranger, "Client").ID, "bob@example.com")
	gone := r.User(r.tenant, r.Client(r.tenant, "Archived").ID, "eve@example.com")
	r.archive(gone.ClientID)
	post := func(key, query, body string) v2test.Response { return r.Do("POST", "/v1/sentemails"+query, key, body) }
	t.Run("403 without the scope", func(t *testing.T) {
		post(r.NewKey(r.tenant, []domain.Scope{domain.Write}, nil), "", `{"user_infima_id":"`+id+`"}`).Want(403)
		post(r.NewKey(r.tenant, []domain.Scope{domain.Read}, nil), "", `{"user_infima_id":"`+id+`"}`).Want(200)
	})
	t.Run("403 user not in the partner's managed clients", func(t *testing.T) {
		post(r.tenant.Key, "", `{"user_infima_id":"`+foreign.ID.UUID()+`"}`).Want(403)
		subset := r.NewKey(r.tenant, []domain.Scope{domain.Read}, []domain.ClientID{})
		post(subset, "", `{"user_infima_id":"`+id+`"}`).Want(403)
		post(subset, "", `{"email_address":"ada@example.com"}`).Want(404)
	})
	t.Run("404 specified user does not exist", func(t *testing.T) {
		for _, body := range []string{
			`{"user_infima_id":"0197f2c4-7bc0-7000-8000-000000000001"}`, `{"user_infima_id":"00000000-0000-0000-0000-000000000000"}`,
			`{"user_infima_id":"0197f2c4-7bc0-7000-8000-000000000001","email_address":"ada@example.com"}`,
			`{"user_infima_id":"` + gone.ID.UUID() + `"}`, `{"email_address":"eve@example.com"}`,
			`{"email_address":"bob@example.com"}`, `{"email_address":"nobody"}`, `{"email_address":"` + strings.Repeat("e", 250) + `@example.com"}`,
		} {
			post(r.tenant.Key, "", body).Want(404)
		}
	})
}

// TestSentEmailsWalk: pages of several users' mails, while mails are sent and
// the clock moves the 30 days.
func TestSentEmailsWalk(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	users := []api.User{r.user}
	for i := range 2 {
		users = append(users, r.User(r.tenant, r.Client(r.tenant, fmt.Sprint("More ", i)).ID, "ada@example.com"))
	}
	for i := range 12 {
		r.mail(users[i%3], domain.PhishingMail, noon.Add(-time.Duration(i/2)*time.Hour))
	}
	body := `{"email_address":"ada@example.com"}`
	all := r.sentEmails("", body).texts("message_infima_id")
	if len(all) != 12 {
		t.Fatalf("%d mails", len(all))
	}
	var got []string
	for offset := 0; offset < 12; offset += 5 {
		got = append(got, r.sentEmails(fmt.Sprintf("?limit=5&offset=%d", offset), body).texts("message_infima_id")...)
		r.Clock.Advance(time.Minute)
		r.mail(users[1], domain.PhishingMail, r.Clock.Now())
	}
	if !slices.Equal(got, all) {
		t.Errorf("walked %v\nnot %v", got, all)
	}
	for offset := range 16 { // a cold jump is positional
		p := r.sentEmails(fmt.Sprintf("?limit=3&offset=%d", offset), body)
		now := r.sentEmails("", body).texts("message_infima_id")
		if want := now[min(offset, len(now)):min(offset+3, len(now))]; !slices.Equal(p.texts("message_infima_id"), want) || p.Total != 15 {
			t.Errorf("offset %d: %+v, not %v", offset, p, want)
		}
	}
}
