package v2_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

func (w *staff) frameworksPath() string {
	return "/v2/clients/" + w.client.ID.String() + "/frameworks"
}

func (w *staff) follow(body string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", w.frameworksPath(), w.tenant.Key, body)
}

// has reports whether the user's list of courses has one.
func (w *staff) has(user api.User, n byte) bool {
	w.T.Helper()
	return slices.ContainsFunc(w.training(user), func(c map[string]any) bool { return c["course_id"] == course(n).String() })
}

// TestFrameworkCatalogue: the catalogue has the measures and courses of decisions
// 7.7, and pages.
func TestFrameworkCatalogue(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 1)
	all := rows(w.Get("/v2/frameworks", w.tenant.Key).Want(200))
	if len(all) != 11 || !slices.IsSortedFunc(all, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) }) {
		t.Fatalf("%d frameworks", len(all))
	}
	for _, f := range all {
		measures, courses := f["measures"].([]any), f["courses"].([]any)
		roles, byRole := 0, slices.ContainsFunc(measures, func(m any) bool { return m.(map[string]any)["key"] == "T3" })
		for _, c := range courses {
			if c.(map[string]any)["role"] != nil {
				roles++
			}
		}
		if len(measures) < 3 || len(courses) == roles || byRole != (roles == 4) {
			t.Errorf("%s has %d measures and %d courses, %d of them of roles", f["id"], len(measures), len(courses), roles)
		}
	}
	first := all[slices.IndexFunc(all, func(f map[string]any) bool { return f["id"] == "nydfs" })]["measures"].([]any)[2].(map[string]any)
	if first["key"] != "P2" || first["module"] != "phishing" || first["target"] != 5.0 || first["name"] == "" {
		t.Errorf("a measure is %v", first)
	}
	for limit := 1; limit < 13; limit++ {
		if walked := w.All(fmt.Sprintf("/v2/frameworks?limit=%d", limit), w.tenant.Key); !reflect.DeepEqual(walked, all) {
			t.Errorf("pages of %d: %v", limit, walked)
		}
	}
	in := api.ListFrameworks.New().(*api.ListFrameworksInput)
	in.Query.Rows, in.Query.Skip, in.Query.Total = 3, 9, true
	if page, err := op.Call(w.tenant.Ctx, &w.API.Set, api.ListFrameworks, in); err != nil || len(page.Data) != 2 || page.Total != 11 || page.Page.HasMore {
		t.Errorf("after a jump: %+v, %v", page, err)
	}
}

// TestAssignFramework: users get the courses, and the client shows the framework.
func TestAssignFramework(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 4)
	finance, inactive, done := w.users[1], w.users[2], w.users[3]
	w.Exec("UPDATE users SET role = 'finance' WHERE id = $1", finance.ID)
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive.ID)
	w.complete(done, 1, w.Clock.Now(), true)
	updated := w.Get("/v2/clients/"+w.client.ID.String(), w.tenant.Key).Want(200).Field("updated_at")
	w.Clock.Advance(time.Second)

	r := w.follow(`{"framework_id":"nist_csf","modules":{"policies":true}}`).Want(201)
	got := w.Get(r.Header.Get("Location"), w.tenant.Key).Want(200)
	if !strings.Contains(string(r.Body), strings.TrimSpace(string(got.Body))) {
		t.Errorf("there is %s", got.Body)
	}
	a := r.Field("assignment").(map[string]any)
	if fmt.Sprint(r.Field("courses_to_schedule")) != fmt.Sprintf("[map[course_id:%s title:Wire fraud and payment approval user_count:1]]", course(10)) ||
		fmt.Sprint(a["framework"]) != "map[category:Information security id:nist_csf name:NIST Cybersecurity Framework]" ||
		fmt.Sprint(a["audience"]) != "map[id:<nil> name:<nil> type:all]" ||
		fmt.Sprint(a["modules"]) != "map[phishing:true policies:true reporting:true training:true]" ||
		r.Field("assignment.evaluation.evaluated_at") != a["created_at"] {
		t.Errorf("assigned %s", r.Body)
	}
	if list := w.training(finance); len(list) != 7 || list[6]["due_on"] != "2026-07-15" || w.has(w.users[0], 10) {
		t.Errorf("the role's course is %v", list)
	}
	if n := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1 AND cardinality(frameworks) = 1 AND from_program", course(1)); n != 3 {
		t.Errorf("%d have the program's course for the framework too", n)
	}
	client := w.Get("/v2/clients/"+w.client.ID.String(), w.tenant.Key).Want(200)
	if fmt.Sprint(client.Field("frameworks")) != "[nist_csf]" || client.Field("updated_at") == updated {
		t.Errorf("the client is %s", client.Body)
	}
	for _, body := range []string{`{"framework_id":"nist_csf"}`, `{"framework_id":"nist_csf","dry_run":true}`} {
		w.follow(body).Want(409)
	}
}

// TestAssignFrameworkToUsers: named users become a collection, whose name is free.
func TestAssignFrameworkToUsers(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	w.AddCollection(w.client.ID, "soc 2")
	named := fmt.Sprintf(`{"framework_id":"soc2","audience":{"type":"users","user_ids":[%q,%q]}`, w.users[0].ID, w.users[1].ID)
	for i, want := range []string{"SOC 2 (2)", "SOC 2 (3)"} {
		dry := w.follow(named + `,"dry_run":true}`).Want(201)
		r := w.follow(named + "}").Want(201)
		if dry.Field("assignment.audience.name") != want || r.Field("assignment.audience.name") != want || r.Field("assignment.audience.type") != "collection" {
			t.Errorf("the audience is %s", r.Body)
		}
		k := w.Get("/v2/clients/"+w.client.ID.String()+"/collections/"+r.Field("assignment.audience.id").(string), w.tenant.Key).Want(200)
		if k.Field("member_count") != 2.0 || k.Field("created_by") != "api" {
			t.Errorf("the collection is %s", k.Body)
		}
		if n := len(r.Field("courses_to_schedule").([]any)); n != 1-i {
			t.Errorf("%d courses are scheduled", n)
		}
	}
	if !w.has(w.users[0], 9) || w.has(w.users[2], 9) {
		t.Error("others have the course")
	}
}

// TestAssignFrameworkTwiceAtOnce: of two requests for the same one succeeds.
func TestAssignFrameworkTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	for _, f := range domain.Frameworks {
		statuses := v2test.AtOnce(2, func(int) int { return w.follow(fmt.Sprintf(`{"framework_id":%q}`, f.ID)).Status })
		if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 1 {
			t.Errorf("%s: %v", f.ID, statuses)
		}
	}
	if n := w.Number("SELECT cardinality(framework_ids) FROM clients"); n != len(domain.Frameworks) {
		t.Errorf("the client has %d", n)
	}
}

// TestFrameworkMeetsEntries: while a framework is assigned, users are created and
// become active: none misses its course.
func TestFrameworkMeetsEntries(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 6)
	var all sync.WaitGroup
	all.Go(func() { w.follow(`{"framework_id":"gdpr"}`).Want(201) })
	for i, u := range w.users {
		all.Go(func() {
			w.AddUser(w.tenant, w.client.ID, fmt.Sprintf("new%d@example.com", i))
			for _, status := range []string{"inactive", "active"} {
				w.Do("PATCH", "/v2/users/"+u.ID.String(), w.tenant.Key, `{"status":"`+status+`"}`).Want(200)
			}
		})
	}
	all.Wait()
	if n := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1 AND cardinality(frameworks) = 1", course(9)); n != 12 {
		t.Errorf("%d of 12 have the course", n)
	}
}

// shownTime is a time as v2 writes it.
func shownTime(at time.Time) string {
	text, _ := domain.At(at).MarshalText()
	return string(text)
}

// TestRemoveFramework: what was not started is withdrawn, with what follows from
// it; a collection that is deleted withdraws too, and the assignment stays.
func TestRemoveFramework(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	started, done, idle := w.users[0], w.users[1], w.users[2]
	collection := w.AddCollection(w.client.ID, "Some")
	w.Exec("INSERT INTO collection_members (client_id, collection_id, user_id, added_at) SELECT client_id, $1, id, $2 FROM users", collection, w.Clock.Now())
	w.Exec("DELETE FROM assignments")
	w.Exec("UPDATE users SET next_due_on = NULL, next_course_id = NULL, created_at = created_at - interval '100 days'")
	some := fmt.Sprintf(`{"type":"collection","collection_id":%q}`, collection)
	one := w.follow(`{"framework_id":"iso_27001"}`).Want(201)
	two := w.follow(`{"framework_id":"gdpr","audience":` + some + `}`).Want(201)
	w.Signal(domain.Signal{Type: domain.CourseStarted, User: started.ID, Course: course(9), At: w.Clock.Now()})
	w.complete(done, 9, w.Clock.Now(), true)

	path := w.frameworksPath() + "/" + one.Field("assignment.id").(string)
	w.Do("DELETE", path, w.tenant.Key, nil).Want(204)
	w.Do("DELETE", path, w.tenant.Key, nil).Want(404)
	for _, u := range w.users {
		if !w.has(u, 9) {
			t.Errorf("%s lost a course that another framework asks for", u.ID)
		}
	}
	w.Clock.Advance(40 * 24 * time.Hour)
	since := w.Clock.Now()
	w.Do("DELETE", "/v2/clients/"+w.client.ID.String()+"/collections/"+collection.String(), w.tenant.Key, nil).Want(204)
	if !w.has(started, 9) || !w.has(done, 9) || w.has(idle, 9) {
		t.Errorf("after the collection is deleted: %v, %v, %v", w.has(started, 9), w.has(done, 9), w.has(idle, 9))
	}
	detail := w.Get("/v2/users/"+idle.ID.String(), w.tenant.Key).Want(200)
	if detail.Field("training.next_course") != nil || detail.Field("training.overdue_count") != 0.0 ||
		detail.Field("risk.score") != 750.0 || detail.Field("updated_at") != shownTime(since) {
		t.Errorf("the user is %s", detail.Body)
	}
	list := rows(w.Get(w.frameworksPath(), w.tenant.Key).Want(200))
	if len(list) != 1 || list[0]["id"] != two.Field("assignment.id") || list[0]["evaluation"].(map[string]any)["evaluated_at"] != shownTime(since) ||
		fmt.Sprint(list[0]["audience"]) != fmt.Sprintf("map[id:%s name:<nil> type:collection]", collection) {
		t.Errorf("the list is %v", list)
	}
	w.Do("DELETE", w.frameworksPath()+"/"+list[0]["id"].(string), w.tenant.Key, nil).Want(204)
	if client := w.Get("/v2/clients/"+w.client.ID.String(), w.tenant.Key).Want(200); fmt.Sprint(client.Field("frameworks")) != "[]" {
		t.Errorf("the client is %s", client.Body)
	}
}

// TestAssignFrameworkLarge: a large audience is answered at once, and removing the framework
// meanwhile drops what waits for it.
func TestAssignFrameworkLarge(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 4)
	w.Exec("UPDATE clients SET users_active = $2 WHERE id = $1", w.client.ID, domain.AssignAtOnce+1)
	hipaa := w.follow(`{"framework_id":"hipaa"}`).Want(201)
	dry := w.follow(`{"framework_id":"gdpr","dry_run":true}`).Want(201)
	if courses := hipaa.Field("courses_to_schedule").([]any); len(courses) != 2 || courses[0].(map[string]any)["user_count"] != 4.0 {
		t.Errorf("assigned %s", hipaa.Body)
	}
	if n := w.Number("SELECT count(*) FROM waiting_assignments"); n != 8 || len(dry.Field("courses_to_schedule").([]any)) != 1 {
		t.Fatalf("%d wait; a dry run: %s", n, dry.Body)
	}
	r := w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"},"due_on":"2026-07-01"}`, course(7))).Want(200)
	if r.Field("assigned_count") != 0.0 {
		t.Errorf("who waits for a course is to get it twice: %s", r.Body)
	}
	w.Do("DELETE", w.frameworksPath()+"/"+hipaa.Field("assignment.id").(string), w.tenant.Key, nil).Want(204)
	if n := w.Number("SELECT count(*) FROM waiting_assignments WHERE direct AND frameworks = '{}' AND course_id = $1", course(7)); n != 4 || w.Number("SELECT count(*) FROM waiting_assignments") != 4 {
		t.Fatalf("%d wait for the course that was asked for directly", n)
	}
	w.follow(`{"framework_id":"hipaa"}`).Want(201)
	for _, want := range []int{8, 0} {
		if n, err := w.DB.AssignWaiting(t.Context()); n != want || err != nil {
			t.Errorf("a batch of %d, %v", n, err)
		}
	}
	if n := w.Number("SELECT count(*) FROM assignments WHERE cardinality(frameworks) = 1 AND direct = (course_id = $1)", course(7)); n != 8 {
		t.Errorf("%d are given courses", n)
	}
}
