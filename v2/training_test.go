package v2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// course is the id of a course of the catalogue by its number there.
func course(n byte) domain.CourseID {
	return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, n}
}

// trainee is a staff whose users are given courses.
type trainee struct{ *staff }

func newTrainee(t *testing.T, users int) *trainee { return &trainee{newStaff(t, users)} }

// training reads all of a user's courses, by their titles.
func (w *trainee) training(user api.User) []map[string]any {
	w.T.Helper()
	return rows(w.Get("/v2/users/"+user.ID.String()+"/training", w.tenant.Key).Want(200))
}

func rows(r v2test.Response) []map[string]any {
	var page struct {
		Data []map[string]any `json:"data"`
	}
	r.Into(&page)
	return page.Data
}

func (w *trainee) assign(body string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", "/v2/clients/"+w.client.ID.String()+"/training/assignments", w.tenant.Key, body)
}

// completions is how many events say that the user completed a course.
func (w *trainee) completions(user api.User) int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM events WHERE type = 'training.assignment.completed' AND user_id = $1 AND object_id IS NOT NULL", user.ID)
}

// complete completes a course, and wants an event of it or none.
func (w *trainee) complete(user api.User, n byte, at time.Time, want bool) {
	w.T.Helper()
	before := w.completions(user)
	w.Signal(domain.Signal{Type: domain.CourseCompleted, User: user.ID, Course: course(n), At: at})
	if after := w.completions(user); after-before != map[bool]int{true: 1}[want] {
		w.T.Fatalf("completing course %d: %d events after %d", n, after, before)
	}
}

func TestTrainingOfAUser(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 1)
	user := w.users[0]
	list := w.training(user)
	if len(list) != 6 {
		t.Fatalf("a new user has %d courses", len(list))
	}
	for i, c := range list {
		if c["order"] != float64(i+1) || c["status"] != "assigned" || c["completed_at"] != nil || c["course_id"] != course(byte(i+1)).String() {
			t.Errorf("course %d is %v", i+1, c)
		}
	}
	if late := rows(w.Get("/v2/clients/"+w.client.ID.String()+"/users?overdue=true", w.tenant.Key)); len(late) != 0 {
		t.Errorf("overdue from the start: %v", late)
	}
	if list[0]["due_on"] != "2026-06-29" {
		t.Errorf("the first course is due on %v", list[0]["due_on"])
	}
	w.complete(user, 2, w.Clock.Now(), true)
	w.Clock.Set(time.Date(2026, 6, 29, 23, 59, 59, 0, time.UTC)) // the day it is due is not late
	if list = w.training(user); list[0]["status"] != "assigned" || list[1]["status"] != "completed" || list[1]["completed_at"] != "2026-06-15T12:00:00.000000Z" {
		t.Errorf("on the day: %v", list)
	}
	w.Clock.Advance(time.Second)
	if list = w.training(user); list[0]["status"] != "overdue" {
		t.Errorf("a day late: %v", list)
	}
	users := "/v2/clients/" + w.client.ID.String() + "/users?overdue="
	late, onTime := rows(w.Get(users+"true", w.tenant.Key)), rows(w.Get(users+"false", w.tenant.Key))
	if len(late) != 1 || late[0]["id"] != user.ID.String() || len(onTime) != 0 {
		t.Errorf("overdue users: %v, others: %v", late, onTime)
	}
	w.Get(users+"perhaps", w.tenant.Key).Want(400)
	path := "/v2/users/" + user.ID.String() + "/training?updated_since="
	if changed := rows(w.Get(path+"2026-06-30T00:00:00Z", w.tenant.Key)); len(changed) != 1 || changed[0]["order"] != 1.0 {
		t.Errorf("what became overdue is %v", changed)
	}
	if changed := rows(w.Get(path+"2026-06-30T00:00:01Z", w.tenant.Key)); len(changed) != 0 {
		t.Errorf("changed since are %v", changed)
	}
	if walked := w.All("/v2/users/"+user.ID.String()+"/training?limit=4", w.tenant.Key); len(walked) != 6 || walked[4]["order"] != 5.0 {
		t.Errorf("walked %v", walked)
	}
}

// TestOverdueUsers: a walk finds each user with something overdue, or none, whether they
// are few or many.
func TestOverdueUsers(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 0)
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, next_due_on, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'u' || n || '@example.com', 'U', '', 'u', 'active', 'standard', 'en', 'api', n % 7, CASE WHEN n % 100 < 3 THEN '2026-06-14' WHEN n % 2 = 0 THEN '2026-06-15' END::date, $2, $2 FROM generate_series(1, 2100) AS n`,
		w.client.ID, w.Clock.Now())
	for range 2 {
		for overdue, condition := range map[string]string{"true": "next_due_on < '2026-06-15'", "false": "coalesce(next_due_on >= '2026-06-15', true)"} {
			found := map[any]bool{}
			for _, sort := range []string{"created_at", "-risk_score"} {
				list := w.All("/v2/clients/"+w.client.ID.String()+"/users?limit=500&sort="+sort+"&overdue="+overdue, w.tenant.Key)
				for _, user := range list {
					found[user["id"]] = true
				}
				if want := w.Number("SELECT count(*) FROM users WHERE client_id = $1 AND "+condition, w.client.ID); len(list) != want || len(found) != want {
					t.Errorf("overdue=%s by %s: %d users, %d others, of %d", overdue, sort, len(list), len(found), want)
				}
			}
		}
		w.Exec("UPDATE users SET next_due_on = CASE next_due_on WHEN '2026-06-14' THEN NULL ELSE '2026-06-14'::date END WHERE client_id = $1", w.client.ID)
	}
}

// saysAssigned reports whether an answer has these counts, and so many skipped users.
func saysAssigned(r v2test.Response, assigned, notified, open, skipped float64) bool {
	return r.Field("assigned_count") == assigned && r.Field("notified_count") == notified &&
		r.Field("already_open_count") == open && float64(len(r.Field("skipped").([]any))) == skipped
}

func TestAssignTraining(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 6)
	stranger := w.Tenant("Stranger") // whose users have the course open, and count nowhere
	w.User(stranger, w.Client(stranger, "Elsewhere").ID, "open@example.org")
	w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on) SELECT client_id, id, $1, 1000, $2, '2026-06-20' FROM users WHERE email = 'open@example.org'", course(7), w.Clock.Now())
	open, done, lapsed, idle := w.users[1], w.users[2], w.users[3], w.users[4]
	inactive := w.users[5]
	w.Do("PATCH", "/v2/users/"+inactive.ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(200)
	year := w.Clock.Now().AddDate(-1, 0, 0)
	w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on) VALUES ($1, $2, $3, 1000, $4, '2026-06-20')", w.client.ID, open.ID, course(7), year)
	for user, at := range map[domain.UserID]time.Time{done.ID: year.AddDate(0, 0, 1), lapsed.ID: year} {
		w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on, completed_at) VALUES ($1, $2, $3, 1000, $4, $4::timestamptz::date, $4)", w.client.ID, user, course(7), at)
	}
	w.Exec("DELETE FROM assignments WHERE user_id = $1", idle.ID)
	w.Exec("UPDATE users SET next_due_on = NULL, next_course_id = NULL, created_at = created_at - interval '61 days' WHERE id = $1", idle.ID)
	body := fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(7))
	r := w.assign(body).Want(200)
	skipped := r.Field("skipped").([]any)
	if r.Field("course_id") != course(7).String() || !saysAssigned(r, 3, 3, 1, 2) {
		t.Fatalf("assigned %s", r.Body)
	}
	reasons := map[any]any{}
	for _, s := range skipped {
		reasons[s.(map[string]any)["user_id"]] = s.(map[string]any)["reason"]
	}
	if reasons[done.ID.String()] != "already_completed" || reasons[inactive.ID.String()] != "inactive" {
		t.Errorf("skipped %v", reasons)
	}
	if list := w.training(w.users[0]); len(list) != 7 || list[6]["order"] != 7.0 || list[6]["due_on"] != "2026-07-15" {
		t.Errorf("the new course is %v", list)
	}
	if list := w.training(open); list[6]["due_on"] != "2026-06-20" {
		t.Errorf("an open course was moved: %v", list)
	}
	if list := w.training(lapsed); len(list) != 7 || list[6]["status"] != "assigned" || w.Number("SELECT max(round) FROM assignments WHERE user_id = $1", lapsed.ID) != 2 {
		t.Errorf("a lapsed course is %v", list)
	}
	detail := w.Get("/v2/users/"+idle.ID.String(), w.tenant.Key).Want(200)
	if detail.Field("training.next_course.course_id") != course(7).String() || detail.Field("risk.score") != 675.0 {
		t.Errorf("a user who was idle is now %s", detail.Body)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-invite' AND course_id = $1", course(7)); n != 3 {
		t.Errorf("%d mails are asked for", n)
	}
	if again := w.assign(body).Want(200); !saysAssigned(again, 0, 0, 4, 2) {
		t.Errorf("again: %s", again.Body)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-invite'"); n != 3 {
		t.Errorf("%d mails are asked for after a repetition", n)
	}
}

func TestAssignTrainingAudiences(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 3)
	collection := w.Collection(w.client.ID, "Some")
	w.Exec("INSERT INTO collection_members (client_id, collection_id, user_id, added_at) VALUES ($1, $2, $3, $4)", w.client.ID, collection, w.users[1].ID, w.Clock.Now())
	r := w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"collection","collection_id":%q},"due_on":"2026-06-01","notify":false}`, course(8), collection)).Want(200)
	if !saysAssigned(r, 1, 0, 0, 0) || w.Number("SELECT count(*) FROM mail_requests") != 0 {
		t.Errorf("a collection, without mails: %s", r.Body)
	}
	if list := w.training(w.users[1]); list[6]["status"] != "overdue" || list[6]["due_on"] != "2026-06-01" {
		t.Errorf("a date in the past: %v", list)
	}
	r = w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users","user_ids":[%q,%q,%[2]q]}}`, course(8), w.users[0].ID, w.users[1].ID)).Want(200)
	if !saysAssigned(r, 1, 1, 1, 0) {
		t.Errorf("named users, one twice and one who has it: %s", r.Body)
	}
}

// refusesLargeAudiences holds that audiences beyond the bound are refused, by the
// counters of the client and the collection.
func (w *trainee) refusesLargeAudiences(course string) {
	w.T.Helper()
	collection := w.Collection(w.client.ID, "Large")
	w.Exec("UPDATE collections SET member_count = 200001 WHERE id = $1", collection)
	w.Exec("UPDATE clients SET users_inactive = users_inactive + 200000 WHERE id = $1", w.client.ID)
	one := fmt.Sprintf("%q", w.users[0].ID)
	many := strings.Repeat(one+",", 10_000) + one
	for body, field := range map[string]string{
		`{"type":"all"}`: "audience",
		fmt.Sprintf(`{"type":"collection","collection_id":%q}`, collection): "audience",
		`{"type":"users","user_ids":[` + many + `]}`:                        "audience.user_ids",
	} {
		r := w.assign(fmt.Sprintf(`{"course_id":%q,"audience":%s}`, course, body)).Want(400)
		if fields := r.Field("error.fields").([]any); fields[0].(map[string]any)["field"] != field {
			w.T.Errorf("%.80s: %.300s", body, r.Body)
		}
	}
}

func TestAssignTrainingRefuses(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 1)
	other := w.Client(w.tenant, "Other")
	foreignUser, foreignCollection := w.User(w.tenant, other.ID, "x@example.com"), w.Collection(other.ID, "Foreign")
	own, good := w.users[0].ID.String(), course(8).String()
	for _, c := range []struct{ body, field string }{
		{`{"audience":{"type":"all"}}`, "course_id"},
		{fmt.Sprintf(`{"course_id":%q}`, good), "audience"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{}}`, good), "audience.type"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"some"}}`, good), "audience.type"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all","extra":1}}`, good), "audience.extra"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"},"due_on":"soon"}`, good), "due_on"},
		{`{"course_id":"crs_x","audience":{"type":"all"}}`, "course_id"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(99)), "course_id"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"collection"}}`, good), "audience.collection_id"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"collection","collection_id":%q}}`, good, foreignCollection), "audience.collection_id"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all","user_ids":[%q]}}`, good, own), "audience.user_ids"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users","collection_id":%q,"user_ids":[%q]}}`, good, foreignCollection, own), "audience.collection_id"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users"}}`, good), "audience.user_ids"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users","user_ids":[]}}`, good), "audience.user_ids"},
		{fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users","user_ids":[%q,%q]}}`, good, own, foreignUser.ID), "audience.user_ids[1]"},
	} {
		r := w.assign(c.body).Want(400)
		fields, _ := r.Field("error.fields").([]any)
		if len(fields) == 0 || fields[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s: %s", c.body, r.Body)
		}
	}
	w.refusesLargeAudiences(good)
	if n := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1", course(8)); n != 0 {
		t.Errorf("%d assignments were made nevertheless", n)
	}
}

// TestAssignTrainingStatements: as many for hundreds of users as for one.
func TestAssignTrainingStatements(t *testing.T) {
	w := newTrainee(t, 1)
	count := func(n byte) int {
		return w.Statements.During(func() {
			w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(n))).Want(200)
		})
	}
	w.training(w.users[0]) // the key is known
	few := count(8)
	w.more(500)
	if many := count(9); many > few+3 { // the scores of those who had nothing to do
		t.Errorf("%d statements for one user, %d for 501", few, many)
	}
	if n := w.Number("SELECT count(*) FROM users WHERE score = 675"); n != 500 {
		t.Errorf("%d users became dormant", n)
	}
}

func TestCompleteCourse(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 2)
	user, now := w.users[0], w.Clock.Now()
	w.complete(user, 1, now, true)
	w.complete(user, 1, now, false)
	w.complete(user, 1, now.Add(-time.Hour), false)
	detail := w.Get("/v2/users/"+user.ID.String(), w.tenant.Key).Want(200)
	if detail.Field("training.next_course.course_id") != course(2).String() || detail.Field("risk.score") != 762.0 {
		t.Errorf("the user is %s", detail.Body)
	}
	w.complete(user, 9, now, true) // never given
	w.complete(user, 9, now, false)
	if list := w.training(user); len(list) != 7 || list[6]["status"] != "completed" || list[6]["course_id"] != course(9).String() {
		t.Errorf("a course that was never given: %v", list)
	}
	if n := w.completions(user); n != 2 {
		t.Errorf("%d events", n)
	}
	// A year later it is due again, and those events were published; a late signal
	// of the year before is not the new round's.
	w.Publish()
	w.Clock.Set(now.AddDate(1, 0, 0))
	if _, err := w.DB.DailyRefresh(t.Context(), domain.DateOf(w.Clock.Now()), nil); err != nil {
		t.Fatal(err)
	}
	if list := w.training(user); list[0]["status"] != "assigned" || list[0]["completed_at"] != nil || list[0]["order"] != 1.0 {
		t.Errorf("due again: %v", list[0])
	}
	w.complete(user, 1, now.AddDate(0, 1, 0), false)
	w.complete(user, 1, w.Clock.Now(), true)
	for what, signal := range map[string]domain.Signal{
		"user":   {Type: domain.CourseCompleted, User: domain.UserID{15: 1}, Course: course(1), At: now},
		"course": {Type: domain.CourseCompleted, User: user.ID, Course: course(99), At: now},
	} {
		if refusal := w.Ingest(signal); refusal != domain.NoSuchObject(what) {
			t.Errorf("a %s of nobody: %s", what, refusal)
		}
	}
	if n := w.completions(user); n != 1 {
		t.Errorf("%d events a year later", n)
	}
}
