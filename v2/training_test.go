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

// training reads all of a user's courses, by their titles.
func (w *staff) training(user api.User) []map[string]any {
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

func (w *staff) assign(body string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", "/v2/clients/"+w.client.ID.String()+"/training/assignments", w.tenant.Key, body)
}

// completions is how many events say that the user completed a course.
func (w *staff) completions(user api.User) int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM events WHERE type = 'training.assignment.completed' AND user_id = $1 AND object_id IS NOT NULL", user.ID)
}

// complete completes a course, and wants an event of it or none.
func (w *staff) complete(user api.User, n byte, at time.Time, want bool) {
	w.T.Helper()
	before := w.completions(user)
	w.Signal(domain.Signal{Type: domain.CourseCompleted, User: user.ID, Course: course(n), At: at})
	if after := w.completions(user); after-before != map[bool]int{true: 1}[want] {
		w.T.Fatalf("completing course %d: %d events after %d", n, after, before)
	}
}

func TestTrainingOfAUser(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 1)
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
	path := "/v2/users/" + user.ID.String() + "/training?updated_since="
	if changed := rows(w.Get(path+"2026-06-30T00:00:00Z", w.tenant.Key)); len(changed) != 1 || changed[0]["order"] != 1.0 {
		t.Errorf("what became overdue is %v", changed)
	}
	if changed := rows(w.Get(path+"2026-06-30T00:00:01Z", w.tenant.Key)); len(changed) != 0 {
		t.Errorf("changed since are %v", changed)
	}
}

// TestOverdueUsers: a walk finds each user with something overdue, or none, whether they
// are few or many.
func TestOverdueUsers(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 0)
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
	w := newStaff(t, 5)
	stranger := w.AddPartner("Stranger") // whose users have the course open, and count nowhere
	w.AddUser(stranger, w.AddClient(stranger, "Elsewhere").ID, "open@example.org")
	w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on) SELECT client_id, id, $1, 1000, $2, '2026-06-20' FROM users WHERE email = 'open@example.org'", course(7), w.Clock.Now())
	open, done, lapsed, inactive := w.users[1], w.users[2], w.users[3], w.users[4]
	w.Do("PATCH", "/v2/users/"+inactive.ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(200)
	year := w.Clock.Now().AddDate(-1, 0, 0)
	w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on) VALUES ($1, $2, $3, 1000, $4, '2026-06-20')", w.client.ID, open.ID, course(7), year)
	for user, at := range map[domain.UserID]time.Time{done.ID: year.AddDate(0, 0, 1), lapsed.ID: year} {
		w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on, completed_at) VALUES ($1, $2, $3, 1000, $4, $4::timestamptz::date, $4)", w.client.ID, user, course(7), at)
	}
	body := fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(7))
	r := w.assign(body).Want(200)
	skipped := r.Field("skipped").([]any)
	if r.Field("course_id") != course(7).String() || !saysAssigned(r, 2, 2, 1, 2) {
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
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-invite' AND course_id = $1", course(7)); n != 2 {
		t.Errorf("%d mails are asked for", n)
	}
	if again := w.assign(body).Want(200); !saysAssigned(again, 0, 0, 3, 2) {
		t.Errorf("again: %s", again.Body)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-invite'"); n != 2 {
		t.Errorf("%d mails are asked for after a repetition", n)
	}
}

func TestAssignTrainingAudiences(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	collection := w.AddCollection(w.client.ID, "Some")
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

// TestAssignmentsAreRefused: what is wrong of a course or a framework that is assigned, or of
// its audience, is named, and nothing is assigned.
func TestAssignmentsAreRefused(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 1)
	other := w.AddClient(w.tenant, "Other")
	theirs, collection := w.AddUser(w.tenant, other.ID, "x@example.com").ID, w.AddCollection(other.ID, "Foreign")
	large := w.AddCollection(w.client.ID, "Large")
	own := fmt.Sprintf("%q", w.users[0].ID)
	refused := func(answer v2test.Response, what, field string) {
		t.Helper()
		fields, _ := answer.Want(400).Field("error.fields").([]any)
		if len(fields) == 0 || fields[0].(map[string]any)["field"] != field {
			t.Errorf("%.80s: %.300s", what, answer.Body)
		}
	}
	audience := func(text, field string) {
		t.Helper()
		refused(w.assign(fmt.Sprintf(`{"course_id":%q,"audience":%s}`, course(8), text)), text, field)
		refused(w.follow(fmt.Sprintf(`{"framework_id":"gdpr","dry_run":true,"audience":%s}`, text)), text, field)
	}
	for text, field := range map[string]string{
		`null`: "audience", `{}`: "audience.type", `{"type":"group"}`: "audience.type", `{"type":"all","extra":1}`: "audience.extra",
		`{"type":"collection"}`: "audience.collection_id", `{"type":"all","user_ids":[` + own + `]}`: "audience.user_ids",
		fmt.Sprintf(`{"type":"collection","collection_id":%q}`, collection):                 "audience.collection_id",
		fmt.Sprintf(`{"type":"users","collection_id":%q,"user_ids":[%s]}`, collection, own): "audience.collection_id",
		`{"type":"users"}`: "audience.user_ids", `{"type":"users","user_ids":[]}`: "audience.user_ids",
		fmt.Sprintf(`{"type":"users","user_ids":[%s,%q]}`, own, theirs):               "audience.user_ids[1]",
		`{"type":"users","user_ids":[` + strings.Repeat(own+",", 10_000) + own + `]}`: "audience.user_ids",
	} {
		audience(text, field)
	}
	for body, field := range map[string]string{
		`{"audience":{"type":"all"}}`: "course_id", fmt.Sprintf(`{"course_id":%q}`, course(8)): "audience",
		fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(99)): "course_id",
	} {
		refused(w.assign(body), body, field)
	}
	for body, field := range map[string]string{
		`{}`: "framework_id", `{"framework_id":"iso9001"}`: "framework_id",
		`{"framework_id":"gdpr","modules":{"training":null}}`: "modules.training",
		`{"framework_id":"gdpr","modules":{"video":true}}`:    "modules.video",
	} {
		refused(w.follow(body), body, field)
	}
	// Too large, by the counters of the collection and the client.
	w.Exec("UPDATE collections SET member_count = 200001 WHERE id = $1", large)
	w.Exec("UPDATE clients SET users_inactive = users_inactive + 200000 WHERE id = $1", w.client.ID)
	audience(`{"type":"all"}`, "audience")
	audience(fmt.Sprintf(`{"type":"collection","collection_id":%q}`, large), "audience")
	made := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1", course(8)) + w.Number("SELECT count(*) FROM framework_assignments")
	if made != 0 {
		t.Errorf("%d assignments were made nevertheless", made)
	}
}
