package v2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// simulate adds a simulated mail: columns of times are set, each one as of the
// time of sending. A zero time is not sent yet.
func (w *trainee) simulate(user api.User, status domain.ResultStatus, sent time.Time, columns ...string) domain.ResultID {
	w.T.Helper()
	id := db.NewID[domain.ResultKind]()
	w.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES ($1, 'Mailbox full', 'en', 'it', 'Full', 'it@example.com', '', '', $2) ON CONFLICT DO NOTHING`, domain.TemplateID{15: 1}, w.Clock.Now())
	var at any
	if !sent.IsZero() {
		at = sent
	}
	w.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $6)`, w.client.ID, id, user.ID, domain.TemplateID{15: 1}, status, w.Clock.Now(), at)
	for _, column := range columns {
		w.Exec("UPDATE phishing_results SET "+column+" = $2 WHERE id = $1", id, at)
	}
	return id
}

func TestPhishingResults(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 2)
	noon := w.Clock.Now()
	first := w.simulate(w.users[0], domain.ResultClicked, noon.AddDate(0, 0, -2), "opened_at", "clicked_at")
	second := w.simulate(w.users[1], domain.ResultSent, noon.AddDate(0, 0, -1), "reported_at")
	w.Exec("UPDATE phishing_results SET reported = true, automated = true, automated_reason = 'head' WHERE id = $1", second)
	third := w.simulate(w.users[0], domain.ResultScheduled, time.Time{})
	w.Exec("UPDATE phishing_results SET updated_at = $2 WHERE id = $1", third, noon.Add(time.Hour))
	path := "/v2/clients/" + w.client.ID.String() + "/phishing/results"
	for query, want := range map[string][]domain.ResultID{
		"":                                    {first, second, third},
		"user_id=usr_x":                       {},
		"result_id=" + w.users[0].ID.String(): {},
		"status=clicked,%20scheduled,clicked": {first, third},
		"status=clicked&status=sent":          {first, second},
	} {
		got := []string{}
		for _, r := range rows(w.Get(path+"?"+query, w.tenant.Key).Want(200)) {
			got = append(got, r["result_id"].(string))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, not %v", query, got, want)
		}
	}
	list := rows(w.Get(path, w.tenant.Key))
	if r := list[0]; len(r) != 17 || r["automated_reason"] != nil || r["failure"] != nil || r["failed_at"] != nil || r["clicked_at"] != noon.AddDate(0, 0, -2).Format("2006-01-02T15:04:05.000000Z") || r["reported_at"] != nil || r["template_id"] != (domain.TemplateID{15: 1}).String() {
		t.Errorf("the first is %v", r)
	}
	if r := list[1]; r["reported"] != true || r["automated"] != true || r["automated_reason"] != "head" || r["user_id"] != w.users[1].ID.String() {
		t.Errorf("the second is %v", r)
	}
	for _, bad := range []string{"status=gone", "status=sent,gone", "status=" + strings.Repeat("sent,", 1000), "since=x", "until=x", "updated_since=x", "cursor=x", "limit=0"} {
		r := w.Get(path+"?"+bad, w.tenant.Key).Want(400)
		if field := r.Field("error.fields").([]any)[0].(map[string]any)["field"]; field != strings.Split(bad, "=")[0] {
			t.Errorf("%s: %s", bad, r.Body)
		}
	}
}

func TestPhishingSummary(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 3)
	path := "/v2/clients/" + w.client.ID.String() + "/phishing/summary"
	empty := w.Get(path, w.tenant.Key).Want(200)
	if empty.Field("total.sent") != 0.0 || empty.Field("90d.click_rate") != 0.0 || empty.Field("repeat_clickers") != 0.0 {
		t.Errorf("an empty client has %s", empty.Body)
	}
	today := domain.DateOf(w.Clock.Now())
	for age, sent := range map[int]int{0: 1, 29: 2, 30: 4, 89: 8, 90: 16, 364: 32, 365: 64} {
		w.Exec(`INSERT INTO phishing_days (client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened) VALUES ($1, $2, $3, 3, 1, 2, 4, 5)`,
			w.client.ID, today.AddDays(-age), sent)
	}
	r := w.Get(path, w.tenant.Key).Want(200)
	for name, want := range map[string]float64{
		"30d.sent": 3, "90d.sent": 15, "365d.sent": 63, "total.sent": 127, "30d.click_rate": 66.7, "total.report_rate": 11,
		"90d.opened": 12, "90d.clicked": 4, "90d.reported": 8, "90d.credentials_submitted": 16, "90d.attachments_opened": 20,
	} {
		if r.Field(name) != want {
			t.Errorf("%s is %v, not %v", name, r.Field(name), want)
		}
	}
	if r.Header.Get("X-Ratelimit-Limit") == "" {
		t.Error("no budget")
	}
	noon := w.Clock.Now()
	for _, fall := range []string{"clicked_at", "attachment_opened_at"} { // two in a year
		w.simulate(w.users[0], domain.ResultClicked, noon, fall)
	}
	w.simulate(w.users[1], domain.ResultClicked, noon, "clicked_at") // one, and others that do not count
	w.simulate(w.users[1], domain.ResultClicked, noon.AddDate(0, 0, -365), "clicked_at")
	w.simulate(w.users[1], domain.ResultOpened, noon, "opened_at")
	scanned := w.simulate(w.users[1], domain.ResultSent, noon)
	w.Exec("UPDATE phishing_results SET automated = true WHERE id = $1", scanned)
	if r := w.Get(path, w.tenant.Key).Want(200); r.Field("repeat_clickers") != 1.0 {
		t.Errorf("repeat clickers: %s", r.Body)
	}
}

// email adds the record of a mail.
func (w *trainee) email(client domain.ClientID, user api.User, kind domain.MessageType, at time.Time) domain.MessageID {
	w.T.Helper()
	id := db.NewID[domain.MessageKind]()
	w.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		VALUES ($1, $2, $3, $4, 'a@example.com', $5, 'smtp', $6)`, client, user.ID, id, at, id.String(), kind)
	return id
}

func TestEmails(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 2)
	noon := w.Clock.Now()
	user := w.users[0]
	old := w.email(w.client.ID, user, domain.WelcomeMail, noon.AddDate(0, -3, 0))
	mid := w.email(w.client.ID, user, domain.PhishingMail, noon.AddDate(0, 0, -3))
	tie := w.email(w.client.ID, user, domain.MonthlyReportMail, noon.AddDate(0, 0, -3))
	last := w.email(w.client.ID, user, domain.PolicyReminder, noon)
	path := "/v2/users/" + user.ID.String() + "/emails"
	for query, want := range map[string][]domain.MessageID{
		"":                                  {last, tie, mid, old},
		"message_types=":                    {last, tie, mid, old},
		"message_types=welcome,%20phishing": {mid, old},
		"message_types=welcome&message_types=policy-reminder": {last, old},
	} {
		got := []string{}
		for _, e := range rows(w.Get(path+"?"+query, w.tenant.Key).Want(200)) {
			got = append(got, e["subject"].(string))
			if len(e) != 5 {
				t.Errorf("an item is %v", e)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, not %v", query, got, want)
		}
	}
	for _, bad := range []string{"message_types=spam", "since=x", "until=x"} {
		r := w.Get(path+"?"+bad, w.tenant.Key).Want(400)
		if field := r.Field("error.fields").([]any)[0].(map[string]any)["field"]; field != strings.Split(bad, "=")[0] {
			t.Errorf("%s: %s", bad, r.Body)
		}
	}
}
