package v2_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// newWatch is a staff whose data may be found in breaches.
func newWatch(t *testing.T, users int) *staff {
	w := newStaff(t, users)
	w.Clock.Advance(time.Second)
	on, _ := domain.ParseDate("2024-05-06")
	service := "forum.example"
	_, _, err := w.DB.ImportBreaches(t.Context(), []domain.Breach{
		{Name: "Forum & Co/2", Title: "Forum", Domain: &service, On: &on, Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"}},
		{Name: "List", Title: "A list", Severity: domain.SeverityLow, DataClasses: []string{"Email addresses"}, SpamList: true},
		{Name: "Clinic", Title: "Clinic", Severity: domain.SeverityHigh, DataClasses: []string{"Names"}, Sensitive: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *staff) find(user int, breach string, at time.Time) {
	w.T.Helper()
	w.Signal(domain.Signal{Type: domain.ExposureFound, User: w.users[user].ID, Breach: breach, At: at})
}

func (w *staff) darkWebPath() string { return "/v2/clients/" + w.client.ID.String() + "/dark-web" }

func (w *staff) darkWeb(path string) []map[string]any {
	w.T.Helper()
	return rows(w.Get(w.darkWebPath()+path, w.tenant.Key).Want(http.StatusOK))
}

func (w *staff) resolve(user int, escapedBreach string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", "/v2/users/"+w.users[user].ID.String()+"/exposures/"+escapedBreach+"/resolve", w.tenant.Key, nil)
}

func (w *staff) score(user int) float64 {
	w.T.Helper()
	return w.Get("/v2/users/"+w.users[user].ID.String()+"/risk", w.tenant.Key).Want(http.StatusOK).Field("score").(float64)
}

func TestResolvingTakesTheWeightOffTheScore(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 1)
	clean := w.score(0)
	w.find(0, "Forum & Co/2", w.Clock.Now())
	exposed := w.score(0)
	if exposed != clean-70 {
		t.Errorf("score %v after %v", exposed, clean)
	}
	w.Clock.Advance(time.Hour)
	since := "?updated_since=" + w.Clock.Now().Format(time.RFC3339Nano)
	first := w.resolve(0, "Forum%20&%20Co%2F2").Want(http.StatusOK)
	if w.score(0) != clean || first.Field("resolved_at") != "2026-06-15T13:00:01.000000Z" || first.Field("breach_on") != "2024-05-06" {
		t.Errorf("score %v after resolving %s", w.score(0), first.Body)
	}
	if len(w.darkWeb("/exposures"+since)) != 1 {
		t.Error("the resolved exposure is not among what changed")
	}
	if got := w.Get("/v2/clients/"+w.client.ID.String()+"/users"+since, w.tenant.Key).Want(http.StatusOK).Field("data").([]any); len(got) != 1 {
		t.Error("the user is not among what changed")
	}
	w.Clock.Advance(time.Hour)
	if again := w.resolve(0, "Forum%20&%20Co%2F2").Want(http.StatusOK); string(again.Body) != string(first.Body) {
		t.Errorf("resolved again: %s\nafter %s", again.Body, first.Body)
	}
	w.resolve(0, "List").Want(http.StatusNotFound)
}

func TestDarkWebSummary(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 4)
	day := w.Clock.Now()
	for user := range w.users {
		w.find(user, "Forum & Co/2", day.AddDate(0, 0, -user))
	}
	w.find(0, "List", day.Add(-time.Minute))
	w.find(1, "Clinic", day.AddDate(0, 0, -9))
	w.resolve(2, "Forum%20&%20Co%2F2").Want(http.StatusOK)
	w.Do("PATCH", "/v2/users/"+w.users[3].ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(http.StatusOK)
	var got api.DarkWeb
	w.Get(w.darkWebPath(), w.tenant.Key).Want(http.StatusOK).Into(&got)
	last := domain.At(day)
	want := api.DarkWeb{Enabled: true, Summary: &api.DarkWebSummary{
		UnresolvedExposures: 4, ResolvedExposures: 1, AffectedUsers: 2, BySeverity: domain.BySeverity{Critical: 2, High: 1, Low: 1}, LastFoundAt: &last,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v, want\n%+v", got, got.Summary, want.Summary)
	}
	if n := len(w.darkWeb("/exposures")); n != 6 {
		t.Errorf("%d exposures of all users, inactive ones too", n)
	}
	w.resolve(3, "Forum%20&%20Co%2F2").Want(http.StatusOK) // of the inactive one
	users := w.darkWeb("/users")
	if len(users) != 3 || users[0]["unresolved_exposures"] != 2.0 || users[2]["resolved_exposures"] != 1.0 {
		t.Errorf("users %v", users)
	}
	within := "since=" + day.AddDate(0, 0, -1).Format(time.RFC3339Nano) + "&until=" + day.Format(time.RFC3339Nano)
	if got := w.darkWeb("/exposures?" + within); len(got) != 2 {
		t.Errorf("within a day: %v", got)
	}
	users = w.darkWeb("/users?" + within)
	if len(users) != 3 || users[0]["unresolved_exposures"] != 1.0 || users[1]["unresolved_exposures"] != 1.0 || users[2]["resolved_exposures"] != 0.0 {
		t.Errorf("users within a day: %v", users)
	}
}

func TestDarkWebWhereNotEnabled(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 1)
	w.Exec("UPDATE clients SET dark_web_monitoring = false")
	w.find(0, "List", w.Clock.Now())
	off := w.Get(w.darkWebPath(), w.tenant.Key).Want(http.StatusOK)
	if string(off.Body) != `{"enabled":false,"summary":null}` {
		t.Errorf("shown as %s", off.Body)
	}
	for _, path := range []string{"/exposures", "/users"} {
		if code := w.Get(w.darkWebPath()+path, w.tenant.Key).Want(http.StatusForbidden).Code(); code != domain.Forbidden {
			t.Errorf("code %s", code)
		}
	}
	w.resolve(0, "List").Want(http.StatusForbidden)
}
