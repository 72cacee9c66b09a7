package v1compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// written is what v1 writes for a value.
func written(t *testing.T, value any, want string) {
	t.Helper()
	got, err := json.Marshal(value)
	if err != nil || string(got) != want {
		t.Errorf("written as %s, %v\nnot as %s", got, err, want)
	}
}

var (
	noon   = v2test.Noon
	atNoon = domain.At(noon)
)

func TestTrainingResultGolden(t *testing.T) {
	t.Parallel()
	user, err := domain.ParseUUID[domain.UserKind]("0197f2c4-7bc0-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	in := &listTraining{}
	in.Path.UserID = uuidOf(user)
	out, paging := fromListTraining(in)
	*paging = op.Paging{Rows: 20}
	if out.Path.UserID != user || out.Query.Rows != 20 || out.Query.UpdatedSince != nil {
		t.Errorf("asks v2 for %+v", out)
	}
	written(t, toTrainingResult(api.Assignment{Title: "Safe browsing", Order: 3, CompletedAt: &atNoon, Status: domain.TrainingCompleted}),
		`{"order":3,"course_name":"Safe browsing","completed":true,"completed_date":"2026-06-15T12:00:00Z","passed":true,"passed_date":"2026-06-15T12:00:00Z"}`)
	written(t, toTrainingResult(api.Assignment{Title: "Safe browsing", Order: 1, Status: domain.TrainingOverdue}),
		`{"order":1,"course_name":"Safe browsing","completed":false,"completed_date":"0001-01-01T00:00:00Z","passed":false,"passed_date":"0001-01-01T00:00:00Z"}`)
}

// reader is a service with a client and a user, for v1's reads of a user.
type reader struct {
	*service
	tenant v2test.Tenant
	client domain.ClientID
	user   api.User
}

func newReader(t *testing.T, o setup) *reader {
	r := &reader{service: start(t, o)}
	r.tenant = r.Tenant("Partner")
	r.client = r.Client(r.tenant, "Client").ID
	r.user = r.User(r.tenant, r.client, "ada@example.com")
	return r
}

// TestTraining: order from 1, both spellings, a course that is due again is not
// completed, and what v1 and v2 say agrees.
func TestTraining(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	path := "/v1/users/" + r.user.ID.UUID() + "/training"
	first := domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1}
	r.Signal(domain.Signal{Type: domain.CourseCompleted, User: r.user.ID, Course: first, At: noon})
	p := r.list(path, r.tenant.Key)
	if p.Limit != 20 || p.Offset != 0 || p.Total != 6 || len(p.Items) != 6 {
		t.Fatalf("the page is %+v", p)
	}
	var v2list struct {
		Data []struct {
			Title  string
			Status string
		}
	}
	r.Get("/v2/users/"+r.user.ID.String()+"/training", r.tenant.Key).Into(&v2list)
	for i, item := range p.Items {
		date, done := "0001-01-01T00:00:00Z", i == 0
		if done {
			date = "2026-06-15T12:00:00Z"
		}
		if item["order"] != float64(i+1) || item["completed"] != done || item["passed"] != done || item["completed_date"] != date || item["passed_date"] != date ||
			item["course_name"] != v2list.Data[i].Title || (v2list.Data[i].Status == "completed") != done {
			t.Errorf("item %d is %v, in v2 %v", i, item, v2list.Data[i])
		}
	}
	r.Clock.Set(noon.AddDate(1, 0, 0))
	if _, err := r.DB.DailyRefresh(t.Context(), domain.DateOf(r.Clock.Now()), nil); err != nil {
		t.Fatal(err)
	}
	if again := r.list(path, r.tenant.Key).Items[0]; again["completed"] != false || again["passed_date"] != "0001-01-01T00:00:00Z" || again["order"] != 1.0 {
		t.Errorf("due again: %v", again)
	}
	for offset := range 8 {
		p := r.list(fmt.Sprintf("%s?limit=2&offset=%d", path, offset), r.tenant.Key)
		want := min(2, max(0, 6-offset))
		if len(p.Items) != want || p.Total != 6 || want > 0 && p.Items[0]["order"] != float64(offset+1) {
			t.Errorf("offset %d: %+v", offset, p)
		}
	}
	if p := r.list(path+"?limit=1000", r.tenant.Key); p.Limit != 50 {
		t.Errorf("limit %d", p.Limit)
	}
}

// TestTrainingOfFrameworks: the courses that a framework asks for are a user's as
// all others are.
func TestTrainingOfFrameworks(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	r.Exec("DELETE FROM assignments")
	r.Exec("UPDATE users SET next_due_on = NULL, next_course_id = NULL")
	user := func() map[string]any {
		return r.list("/v1/clients/"+r.number(r.client)+"/users", r.tenant.Key).Items[0]
	}
	if u := user(); u["next_course"] != "" || u["courses_behind"] != 0.0 {
		t.Fatalf("without courses: %v", u)
	}
	frameworks := "/v2/clients/" + r.client.String() + "/frameworks"
	made := r.Do("POST", frameworks, r.tenant.Key, `{"framework_id":"gdpr"}`).Want(http.StatusCreated)
	if u := user(); u["next_course"] != "Privacy and personal data" || u["courses_behind"] != 0.0 {
		t.Errorf("with a framework: %v", u)
	}
	r.Clock.Advance(31 * 24 * time.Hour)
	if u := user(); u["courses_behind"] != 1.0 {
		t.Errorf("when it is overdue: %v", u)
	}
	r.Do("DELETE", frameworks+"/"+made.Field("assignment.id").(string), r.tenant.Key, nil).Want(http.StatusNoContent)
	if u := user(); u["next_course"] != "" || u["courses_behind"] != 0.0 {
		t.Errorf("without the framework: %v", u)
	}
}

// TestUserReadsRefuse: the ways in which v1's reads of a user's results fail.
func TestUserReadsRefuse(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	stranger := r.Tenant("Stranger")
	writeOnly := r.NewKey(r.tenant, []domain.Scope{domain.Write}, nil)
	for _, read := range []string{"/training", "/phishing"} {
		path := "/v1/users/" + r.user.ID.UUID() + read
		r.Get(path, "").Want(http.StatusUnauthorized)
		r.Get(path, writeOnly).Want(http.StatusForbidden)
		beyond := r.Get(path, stranger.Key).Want(http.StatusNotFound)
		for _, unusedID := range []string{"00000000-0000-0000-0000-000000000000", "0197f2c4-7bc0-7000-8000-000000000001", "x", r.user.ID.String()} {
			if got := r.Get("/v1/users/"+unusedID+read, r.tenant.Key).Want(http.StatusNotFound); got.Field("message") != beyond.Field("message") {
				t.Errorf("%s: %s, but %s", unusedID, got.Body, beyond.Body)
			}
		}
		for _, bad := range []string{"limit=x", "offset=-1", "offset=x"} {
			r.Get(path+"?"+bad, r.tenant.Key).Want(http.StatusBadRequest)
		}
	}
}

// TestUserReadsStatements: no more for a page of many rows than for one, and at
// most three more than v2. One that shows all rows needs no count of them.
func TestUserReadsStatements(t *testing.T) {
	r := newReader(t, setup{})
	for i := range 60 {
		r.mail(r.user, domain.PhishingMail, noon.Add(-time.Duration(i)*time.Minute))
		r.simulated(r.user, domain.ResultSent, noon.Add(-time.Duration(i)*time.Minute))
	}
	user, body := r.user.ID.UUID(), `{"user_infima_id":"`+r.user.ID.UUID()+`"}`
	for _, c := range []struct{ method, path, body, v2 string }{
		{"GET", "/v1/users/" + user + "/training", "", "/v2/users/" + r.user.ID.String() + "/training"},
		{"GET", "/v1/users/" + user + "/phishing", "", "/v2/clients/" + r.client.String() + "/phishing/results"},
		{"POST", "/v1/sentemails", body, "/v2/users/" + r.user.ID.String() + "/emails"},
	} {
		r.Get(c.v2, r.tenant.Key).Want(200)
		count := func(limit int) int {
			return r.Statements.During(func() {
				r.Do(c.method, fmt.Sprintf("%s?limit=%d", c.path, limit), r.tenant.Key, c.body).Want(200)
			})
		}
		one, many, base := count(1), count(50), r.Statements.During(func() { r.Get(c.v2+"?limit=50", r.tenant.Key).Want(200) })
		if many > one || one > base+3 {
			t.Errorf("%s: %d statements for one row, %d for 50, %d in v2", c.path, one, many, base)
		}
	}
}
