package v2_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// simulate adds a simulated mail: columns of times are set, each one as of the
// time of sending. A zero time is not sent yet.
func (w *staff) simulate(user api.User, status domain.ResultStatus, sent time.Time, columns ...string) domain.ResultID {
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

func TestPhishingSummary(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
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
	w.Exec("UPDATE phishing_results SET automated = true, automated_reason = 'head', reported = true WHERE id = $1", scanned)
	if r := w.Get(path, w.tenant.Key).Want(200); r.Field("repeat_clickers") != 1.0 {
		t.Errorf("repeat clickers: %s", r.Body)
	}
	if r := w.result(scanned.String()); r["reported"] != true || r["automated"] != true || r["automated_reason"] != "head" {
		t.Errorf("the scanned one is %v", r)
	}
}
