package v2_test

import (
	"fmt"
	"net/url"
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

func (w *world) usersPath() string { return "/v2/clients/" + w.client.ID.String() + "/users" }
func (w *world) userPath() string  { return "/v2/users/" + w.user.ID.String() }

// overrides are the fields of a user that were set by hand, without those of furnish.
func (w *world) overrides(id string) string {
	w.T.Helper()
	return w.Text("SELECT array_to_string(ARRAY(SELECT o FROM unnest(overrides) AS o WHERE o NOT LIKE 'sample%' ORDER BY 1), ' ') FROM users WHERE id = $1",
		idOf[domain.UserKind](w.T, id))
}

func TestNewUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	u := w.Do("POST", w.usersPath(), w.tenant.Key, `{"email":"New.User@Example.COM","first_name":" New ","last_name":"\t","manager_email":"Boss@Example.Com","department":null}`).Want(201)
	today := domain.DateOf(w.Clock.Now())
	for path, want := range map[string]any{
		"client_id": w.client.ID.String(), "email": "new.user@example.com", "manager_email": "boss@example.com",
		"first_name": "New", "last_name": "", "department": nil, "job_title": nil, "status": "active", "role": "standard",
		"preferred_language": "en", "source": "api", "group.name": "Manual", "risk.score": 750.0, "risk.grade": "B",
		"training.on_track": true, "training.overdue_count": 0.0, "training.next_course.due_on": today.AddDays(14).String(),
		"created_at": "2026-06-15T12:00:00.000000Z", "updated_at": "2026-06-15T12:00:00.000000Z",
	} {
		if got := u.Field(path); got != want {
			t.Errorf("%s is %v, not %v", path, got, want)
		}
	}
	if n := w.Number("SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id WHERE u.email = 'new.user@example.com'"); n != 6 {
		t.Errorf("enrolled in %d courses", n)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests"); n != 0 {
		t.Errorf("%d mails without send_welcome_email", n)
	}
	if got := w.overrides(u.Field("id").(string)); got != "" {
		t.Errorf("a classifyRole role is an override: %v", got)
	}
	// The same email, in any case, clashes in this client and in no other.
	checkError(t, w.Do("POST", w.usersPath(), w.tenant.Key, `{"email":"NEW.user@EXAMPLE.com"}`), domain.Conflict)
	w.AddUser(w.tenant, w.AddClient(w.tenant, "Other").ID, "new.user@example.com")
}

// TestDepartmentsAreTrimmed verifies that departments and job titles are stored without white space around them, that
// blank ones are null, and that another spelling of the same one changes nothing.
func TestDepartmentsAreTrimmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, field := range []string{"department", "job_title"} {
		for sent, want := range map[string]any{
			"Sales": "Sales", " \u00a0Sales\t\r\n": "Sales", "Field  Sales": "Field  Sales", "": nil, " \u00a0\u3000\t": nil,
			" a\u0007b ": "a\u0007b", "\u200b": "\u200b", strings.Repeat(" ", 500) + "x": "x",
		} {
			email := fmt.Sprintf("new%d@example.com", w.sampled.Add(1))
			created := w.Do("POST", w.usersPath(), w.tenant.Key, map[string]any{"email": email, field: sent}).Want(201)
			if got := created.Field(field); got != want {
				t.Errorf("POST: %s %q became %v, want %v", field, sent, got, want)
			}
			w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: "Another"}).Want(200)
			if got := w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: sent}).Want(200).Field(field); got != want {
				t.Errorf("PATCH: %s %q became %v, want %v", field, sent, got, want)
			}
		}
		w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: "Sales"}).Want(200)
		before := w.contents()
		w.Clock.Advance(time.Minute)
		w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: " Sales\u00a0"}).Want(200)
		if w.contents() != before {
			t.Errorf("white space around the %s changed something", field)
		}
		checkInvalid(t, w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: strings.Repeat("é", 501) + " "}), field, "500 characters")
	}
}

// TestNewUserInCollections: all or nothing, the places of the wrong ones named.
func TestNewUserInCollections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	a, b := w.AddCollection(w.client.ID, "A"), w.AddCollection(w.client.ID, "B")
	foreign := w.AddCollection(w.AddClient(w.tenant, "Other").ID, "A")
	before := w.contents()
	body := map[string]any{"email": "c@example.com", "send_welcome_email": true, "collection_ids": []string{a.String(), foreign.String(), b.String(), "col_01h455vb4pex5vsknk084sn02q"}}
	r := checkError(t, w.Do("POST", w.usersPath(), w.tenant.Key, body), domain.InvalidRequest)
	var named []string
	for _, f := range r.Field("error.fields").([]any) {
		named = append(named, f.(map[string]any)["field"].(string))
	}
	if strings.Join(named, " ") != "collection_ids[1] collection_ids[3]" {
		t.Errorf("names %v", named)
	}
	body["collection_ids"] = []string{a.String(), w.user.ID.String()}
	checkInvalid(t, w.Do("POST", w.usersPath(), w.tenant.Key, body), "collection_ids[1]")
	body["collection_ids"] = slices.Repeat([]string{a.String()}, 501)
	checkInvalid(t, w.Do("POST", w.usersPath(), w.tenant.Key, body), "collection_ids", "500")
	if w.contents() != before {
		t.Error("a refused user left something")
	}
	body["collection_ids"] = []string{b.String(), a.String(), b.String()}
	u := w.Do("POST", w.usersPath(), w.tenant.Key, body).Want(201)
	detail := w.Get("/v2/users/"+u.Field("id").(string), w.tenant.Key).Want(200)
	if got := fmt.Sprint(detail.Field("collections")); got != fmt.Sprintf("[map[id:%s name:A] map[id:%s name:B]]", a, b) {
		t.Errorf("is in %s", got)
	}
	if n := w.Number("SELECT sum(member_count) FROM collections WHERE id IN ($1, $2)", a, b); n != 2 {
		t.Errorf("the collections count %d members", n)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'welcome' AND user_id IS NOT NULL"); n != 1 {
		t.Errorf("%d welcome mails", n)
	}
}

// TestClassification: a role that was not set by hand follows title and department;
// one that was stays.
func TestClassification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	steps := []struct{ body, role, overrides string }{
		{`{"job_title":"Payroll Clerk"}`, "finance", "job_title"},
		{`{"job_title":null}`, "standard", "job_title"},
		{`{"department":"IT"}`, "admin", "department job_title"},
		{`{"first_name":"Eve"}`, "admin", "department first_name job_title"},
		{`{"job_title":"Recruiter"}`, "hr", "department first_name job_title"},
		{`{"role":"executive","job_title":"Accountant"}`, "executive", "department first_name job_title role"},
		{`{"job_title":"Sysadmin","department":null}`, "executive", "department first_name job_title role"},
		{`{"role":"standard"}`, "standard", "department first_name job_title role"},
	}
	for _, s := range steps {
		u := w.Do("PATCH", w.userPath(), w.tenant.Key, s.body).Want(200)
		if u.Field("role") != s.role || u.Field("risk.role") != s.role {
			t.Errorf("after %s the role is %v", s.body, u.Field("role"))
		}
		if want := float64(domain.Role(s.role).Baseline()); u.Field("risk.baseline") != want || u.Field("risk.score") != want {
			t.Errorf("after %s the score is %v from %v, not %v", s.body, u.Field("risk.score"), u.Field("risk.baseline"), want)
		}
		if got := w.overrides(w.user.ID.String()); got != s.overrides {
			t.Errorf("after %s the overrides are %s", s.body, got)
		}
	}
	u := w.Do("POST", w.usersPath(), w.tenant.Key, `{"email":"r@example.com","role":"hr","job_title":"CFO"}`).Want(201)
	if u.Field("role") != "hr" || w.overrides(u.Field("id").(string)) != "role" {
		t.Errorf("a role that was sent is %v with overrides %v", u.Field("role"), w.overrides(u.Field("id").(string)))
	}
	u = w.Do("PATCH", "/v2/users/"+u.Field("id").(string), w.tenant.Key, `{"job_title":"Accountant"}`).Want(200)
	if u.Field("role") != "hr" {
		t.Errorf("a role sent at creation became %v", u.Field("role"))
	}
}

// TestPatch is PATCH's table (decisions 3.13), for every field of a user.
func TestPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	nullable := map[string]any{"department": "Sales", "job_title": "Clerk", "manager_email": "Boss@Example.com"}
	firm := map[string]any{"first_name": "New", "last_name": "Name", "status": "inactive", "role": "hr", "preferred_language": "fr-ca"}
	stored := func(v any) any { return strings.Replace(v.(string), "Boss@Example", "boss@example", 1) }
	for field, value := range nullable {
		r := w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: value}).Want(200)
		if r.Field(field) != stored(value) {
			t.Errorf("%s became %v", field, r.Field(field))
		}
		if r = w.Do("PATCH", w.userPath(), w.tenant.Key, `{"last_name":"Other"}`).Want(200); r.Field(field) != stored(value) {
			t.Errorf("%s, absent, became %v", field, r.Field(field))
		}
		if r = w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: nil}).Want(200); r.Field(field) != nil {
			t.Errorf("%s, null, became %v", field, r.Field(field))
		}
	}
	for field, value := range firm {
		if r := w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{field: value}).Want(200); r.Field(field) != value {
			t.Errorf("%s became %v", field, r.Field(field))
		}
	}
	checkInvalid(t, w.Do("PATCH", w.userPath(), w.tenant.Key, `{}`), "body", "at least one")
	// An override is kept even where the value is the same, and writes no event.
	events := w.Number("SELECT count(*) FROM events")
	before := w.Get(w.userPath(), w.tenant.Key)
	w.Clock.Advance(time.Second)
	again := w.Do("PATCH", w.userPath(), w.tenant.Key, `{"role":"hr","manager_email":null}`).Want(200)
	if string(again.Body) != string(before.Body) || w.Number("SELECT count(*) FROM events") != events {
		t.Errorf("nothing changed, yet %s\nbecame %s", before.Body, again.Body)
	}
	if !strings.Contains(w.overrides(w.user.ID.String()), "manager_email") {
		t.Error("a field that was set to what it was is no override")
	}
	if _, err := op.Call(w.tenant.Ctx, &w.API.Set, api.UpdateUser, &api.UpdateUserInput{}); !domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("no change in process is %v", err)
	}
}

// TestCounters: users.active and users.inactive are current at once, and no
// number of concurrent changes loses one (decisions 3.7).
func TestCounters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			u := w.Do("POST", w.usersPath(), w.tenant.Key, map[string]any{"email": v2test.Email(i)})
			id, _ := u.Field("id").(string)
			for _, status := range []string{"inactive", "inactive", "active", "inactive"}[:1+i%4] {
				if r := w.Do("PATCH", "/v2/users/"+id, w.tenant.Key, map[string]any{"status": status}); r.Status != 200 {
					t.Errorf("answers %d %s", r.Status, r.Body)
				}
			}
		})
	}
	all.Wait()
	c := w.Get("/v2/clients/"+w.client.ID.String(), w.tenant.Key).Want(200)
	active := float64(w.Number("SELECT count(*) FROM users WHERE status = 'active'"))
	if c.Field("users.active") != active || c.Field("users.inactive") != 9-active || active != 3 {
		t.Errorf("counts %v, where %v are active", c.Field("users"), active)
	}
}

// TestFindUsers: an address is compared as it is stored, and the users of any status are found.
func TestFindUsers(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.AddPartner("Partner")
	first, second := h.AddClient(tenant, "B").ID, h.AddClient(tenant, "A").ID
	a, b := h.AddUser(tenant, first, "Ada@Bücher.example").ID.String(), h.AddUser(tenant, second, "ada@bücher.example").ID.String()
	h.AddUser(tenant, second, "ada@bucher.example")
	h.Do("PATCH", "/v2/users/"+b, tenant.Key, `{"status":"inactive"}`).Want(200)

	for email, want := range map[string][]string{
		"ADA@BÜCHER.EXAMPLE": {a, b}, "ada@xn--bcher-kva.example": {a, b}, "da@bücher.example": nil,
	} {
		if got := column(h.Get("/v2/users?email="+url.QueryEscape(email), tenant.Key).Want(200), "id"); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, not %v", email, got, want)
		}
	}
	listed := h.Get("/v2/clients/"+first.String()+"/users", tenant.Key).Want(200).Field("data").([]any)[0]
	item := h.Get("/v2/users?limit=1&email=ada@b%C3%BCcher.example", tenant.Key).Want(200).Field("data").([]any)[0]
	if !reflect.DeepEqual(item, listed) {
		t.Errorf("found %v, which is listed as %v", item, listed)
	}
	checkInvalid(t, h.Get("/v2/users?email=ada", tenant.Key), "email")
}
