package v2_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// watch is a staff whose data is found in breaches.
type watch struct{ *staff }

func newWatch(t *testing.T, users int) *watch {
	w := &watch{newStaff(t, users)}
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

func (w *watch) find(user int, breach string, at time.Time) {
	w.T.Helper()
	w.Signal(domain.Signal{Type: domain.ExposureFound, User: w.users[user].ID, Breach: breach, At: at})
}

func (w *watch) settle(user int, breach string, at time.Time) {
	w.T.Helper()
	w.Signal(domain.Signal{Type: domain.ExposureResolved, User: w.users[user].ID, Breach: breach, At: at})
}

func (w *watch) path() string { return "/v2/clients/" + w.client.ID.String() + "/dark-web" }

func (w *watch) list(path string) []map[string]any {
	w.T.Helper()
	var page op.Page[map[string]any]
	w.Get(w.path()+path, w.tenant.Key).Want(http.StatusOK).Into(&page)
	return page.Data
}

func (w *watch) resolve(user int, escapedBreach string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", "/v2/users/"+w.users[user].ID.String()+"/exposures/"+escapedBreach+"/resolve", w.tenant.Key, nil)
}

func (w *watch) score(user int) float64 {
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
	if len(w.list("/exposures"+since)) != 1 {
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

// What is known of an exposure does not depend on the order in which signals
// of it arrive, or on how often.
func TestFindingsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 2)
	found, resolved := w.Clock.Now().Add(-48*time.Hour), w.Clock.Now().Add(-24*time.Hour)
	w.find(0, "Clinic", found)
	w.settle(0, "Clinic", resolved)
	w.find(0, "Clinic", found.Add(time.Hour))

	w.settle(1, "Clinic", resolved.Add(time.Hour))
	w.find(1, "Clinic", found.Add(time.Hour))
	w.settle(1, "Clinic", resolved)
	w.find(1, "Clinic", found)
	got := w.list("/exposures")
	if len(got) != 2 {
		t.Fatalf("%d exposures", len(got))
	}
	for _, e := range got {
		delete(e, "user_id")
	}
	if !reflect.DeepEqual(got[0], got[1]) || got[0]["resolved_at"] == nil || got[0]["severity"] != "high" {
		t.Errorf("%v\nin another order: %v", got[0], got[1])
	}
	if w.score(0) != w.score(1) {
		t.Errorf("scores %v and %v", w.score(0), w.score(1))
	}

	told := domain.Signal{Type: domain.ExposureFound, User: w.users[0].ID, Breach: "List", At: found, DataClasses: []string{"PINs"}}
	w.Signal(told)
	told.User, told.Severity = w.users[1].ID, domain.SeverityMedium
	w.Signal(told)
	if n := w.Number("SELECT count(*) FROM exposures WHERE breach_name = 'List' AND severity IN ('critical', 'medium') AND data_classes = '{PINs}'"); n != 2 {
		t.Errorf("%d exposures are as the signal says", n)
	}
	told.Breach = "Nowhere"
	if refusal := w.Ingest(told); refusal != domain.NoSuchObject("breach") {
		t.Errorf("a breach that is not in the catalogue: %s", refusal)
	}
	told.User, told.Breach = db.NewID[domain.UserKind](), "List"
	if refusal := w.Ingest(told); refusal != domain.NoSuchObject("user") {
		t.Errorf("a user who is not there: %s", refusal)
	}
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
	w.Get(w.path(), w.tenant.Key).Want(http.StatusOK).Into(&got)
	last := domain.At(day)
	want := api.DarkWeb{Enabled: true, Summary: &api.DarkWebSummary{
		UnresolvedExposures: 4, ResolvedExposures: 1, AffectedUsers: 2, BySeverity: domain.BySeverity{Critical: 2, High: 1, Low: 1}, LastFoundAt: &last,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v, want\n%+v", got, got.Summary, want.Summary)
	}
	if n := len(w.list("/exposures")); n != 6 {
		t.Errorf("%d exposures of all users, inactive ones too", n)
	}
	w.resolve(3, "Forum%20&%20Co%2F2").Want(http.StatusOK) // of the inactive one
	users := w.list("/users")
	if len(users) != 3 || users[0]["unresolved_exposures"] != 2.0 || users[2]["resolved_exposures"] != 1.0 {
		t.Errorf("users %v", users)
	}
	within := "since=" + day.AddDate(0, 0, -1).Format(time.RFC3339Nano) + "&until=" + day.Format(time.RFC3339Nano)
	if got := w.list("/exposures?" + within); len(got) != 2 {
		t.Errorf("within a day: %v", got)
	}
	users = w.list("/users?" + within)
	if len(users) != 3 || users[0]["unresolved_exposures"] != 1.0 || users[1]["unresolved_exposures"] != 1.0 || users[2]["resolved_exposures"] != 0.0 {
		t.Errorf("users within a day: %v", users)
	}
	same := "since=" + day.Format(time.RFC3339Nano) + "&until=" + day.Format(time.RFC3339Nano)
	w.Get(w.path()+"/users?"+same, w.tenant.Key).Want(http.StatusBadRequest)
	w.Get(w.path()+"/exposures?"+same, w.tenant.Key).Want(http.StatusBadRequest)
}

func TestDarkWebWhereNotEnabled(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 1)
	w.Exec("UPDATE clients SET dark_web_monitoring = false")
	w.find(0, "List", w.Clock.Now())
	off := w.Get(w.path(), w.tenant.Key).Want(http.StatusOK)
	if string(off.Body) != `{"enabled":false,"summary":null}` {
		t.Errorf("shown as %s", off.Body)
	}
	for _, path := range []string{"/exposures", "/users"} {
		if code := w.Get(w.path()+path, w.tenant.Key).Want(http.StatusForbidden).Code(); code != domain.Forbidden {
			t.Errorf("code %s", code)
		}
	}
	w.resolve(0, "List").Want(http.StatusForbidden)
}
