package v2_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

func (w *world) clientPath() string { return "/v2/clients/" + w.client.ID.String() }

// TestSummary: a client's reads show what its users and their mails were five minutes ago
// at most, and days that only pass.
func TestSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	w.Exec("UPDATE users SET score = 333, next_due_on = '2026-06-15'") // today is not past
	w.Exec("INSERT INTO phishing_days (client_id, day, sent, clicked) VALUES ($1, '2026-06-15', 3, 1), ($1, '2026-03-18', 4, 1)",
		w.client.ID)
	w.Clock.Advance(domain.SummaryAge)
	if got := w.Get(w.clientPath(), w.tenant.Key).Field("risk.average_score"); got != 750.0 {
		t.Errorf("is %v before it is older than five minutes", got)
	}
	w.Clock.Advance(time.Microsecond)
	if got := w.Get(w.clientPath()+"/risk", w.tenant.Key).Field("average_score"); got != 333.0 {
		t.Errorf("is %v when older than five minutes", got)
	}
	c := w.Get(w.clientPath(), w.tenant.Key)
	for path, want := range map[string]any{"risk.grade": "F", "training.overdue_users": 0.0, "phishing.click_rate_90d": 28.6} {
		if got := c.Field(path); got != want {
			t.Errorf("%s is %v, not %v", path, got, want)
		}
	}
	w.Clock.Set(time.Date(2026, 6, 16, 0, 0, 1, 0, time.UTC)) // the clock alone: due yesterday, sent 91 days ago
	c = w.Get(w.clientPath(), w.tenant.Key)
	if c.Field("training.overdue_users") != 1.0 || c.Field("phishing.click_rate_90d") != 33.3 {
		t.Errorf("the next day shows %s", c.Body)
	}
}

// TestUpdatedSince: it finds what a refresh changes, at or after the time.
func TestUpdatedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	w.AddClient(w.tenant, "Quiet")
	since := func(at time.Time) string {
		text := strings.ReplaceAll(at.Format(time.RFC3339Nano), "+", "%2B")
		return strings.Join(names(w.Get("/v2/clients?updated_since="+text, w.tenant.Key).Want(200)), ", ")
	}
	if got := since(v2test.Noon); got != "Client, Quiet" {
		t.Errorf("at the very time, finds %q", got)
	}
	if got := since(v2test.Noon.Add(time.Microsecond)); got != "" {
		t.Errorf("after it, finds %q", got)
	}
	if got := since(v2test.Noon.In(time.FixedZone("", -5*3600))); got != "Client, Quiet" {
		t.Errorf("in another zone, finds %q", got)
	}
	w.Clock.Advance(time.Hour)
	w.Exec("UPDATE users SET score = 100, updated_at = $1", w.Clock.Now())
	if got := since(w.Clock.Now()); got != "Client" {
		t.Errorf("after a score moved, finds %q", got)
	}
	u := w.Get(w.clientPath()+"/users?updated_since="+w.Clock.Now().Format(time.RFC3339), w.tenant.Key)
	if len(column(u, "id")) != 1 {
		t.Errorf("users: %s", u.Body)
	}
	for extreme, n := range map[string]int{
		"0000-01-01T00:00:00Z": 2, "0000-01-01T00:00:00%2B23:59": 2, "0001-01-01T00:00:00Z": 2,
		"9999-12-31T23:59:59.999999999Z": 0, "9999-12-31T23:59:59-23:59": 0,
	} {
		r := w.Get("/v2/clients?updated_since="+extreme, w.tenant.Key)
		if r.Status != 200 && r.Status != 400 || r.Status == 200 && len(names(r)) != n {
			t.Errorf("since %s: %d %s", extreme, r.Status, r.Body)
		}
	}
}

// TestClickRates: a client shows its click rates of all times and of 365 days; days that
// only pass change the second, and not updated_at.
func TestClickRates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	w.Exec("INSERT INTO phishing_days (client_id, day, sent, clicked) VALUES ($1, '2025-06-16', 4, 1), ($1, '2020-01-01', 4, 3)", w.client.ID)
	w.Clock.Advance(time.Hour)
	before := w.Get(w.clientPath(), w.tenant.Key).Want(http.StatusOK)
	if before.Field("phishing.click_rate_total") != 50.0 || before.Field("phishing.click_rate_365d") != 25.0 {
		t.Errorf("%s", before.Body)
	}
	w.Clock.Advance(24 * time.Hour)
	after := w.Get(w.clientPath(), w.tenant.Key).Want(http.StatusOK)
	if after.Field("phishing.click_rate_total") != 50.0 || after.Field("phishing.click_rate_365d") != 0.0 {
		t.Errorf("a day later: %s", after.Body)
	}
	if after.Field("updated_at") != before.Field("updated_at") {
		t.Errorf("updated_at moved from %v to %v", before.Field("updated_at"), after.Field("updated_at"))
	}
}

// TestUserPhishing: a user shows the mails that were sent to it and those that it clicked;
// days that only pass change the counts of 365 days, and not updated_at.
func TestUserPhishing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	user := "/v2/users/" + w.user.ID.String()
	shows := func(want string, moved bool) {
		t.Helper()
		before := w.user.UpdatedAt.Time
		r := w.Get(user, w.tenant.Key).Want(http.StatusOK)
		r.Into(&struct {
			At *domain.Time `json:"updated_at"`
		}{&w.user.UpdatedAt})
		if got := fmt.Sprint(r.Field("phishing")); got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if !w.user.UpdatedAt.Time.Equal(before) != moved {
			t.Errorf("updated_at: from %v to %v", before, w.user.UpdatedAt)
		}
	}
	refresh := func() {
		t.Helper()
		if _, err := w.DB.DailyRefresh(t.Context(), domain.DateOf(w.Clock.Now()), nil); err != nil {
			t.Fatal(err)
		}
	}
	shows("map[click_rate:0 click_rate_365d:0 clicked:0 clicked_365d:0 sent:0 sent_365d:0]", false)

	w.Clock.Advance(time.Hour)
	clicked := db.NewID[domain.ResultKind]()
	for _, id := range []domain.ResultID{clicked, db.NewID[domain.ResultKind]()} {
		w.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
			VALUES ($1, $2, $3, $4, 'sent', $5, $5, $5, $5)`, w.client.ID, id, w.user.ID, w.parts.template, w.Clock.Now())
	}
	w.Clock.Advance(time.Hour)
	w.Signal(domain.Signal{Type: domain.PhishingClicked, Result: clicked, At: w.Clock.Now()})
	shows("map[click_rate:50 click_rate_365d:50 clicked:1 clicked_365d:1 sent:2 sent_365d:2]", true)

	w.Clock.Advance(364 * 24 * time.Hour) // one more, and the click weighs nothing
	refresh()
	shows("map[click_rate:50 click_rate_365d:50 clicked:1 clicked_365d:1 sent:2 sent_365d:2]", true) // the score decayed
	w.Clock.Advance(24 * time.Hour)
	refresh()
	shows("map[click_rate:50 click_rate_365d:0 clicked:1 clicked_365d:0 sent:2 sent_365d:0]", false)
}
