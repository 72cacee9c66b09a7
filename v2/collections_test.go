package v2_test

import (
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestCollectionLife: a collection takes members once, however often it is asked to, and
// its end leaves the users, frees the name, and empties the audiences that
// were its members'.
func TestCollectionLife(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 3)
	path := "/v2/clients/" + s.client.ID.String() + "/collections"
	made := s.Do("POST", path, s.tenant.Key, `{"name":"Sales","description":null}`).Want(http.StatusCreated)
	id := idOf[domain.CollectionKind](t, made.Header.Get("Location"))
	one := path + "/" + id.String()
	p := s.policy(domain.CollectionScope, id.UUID(), true)
	add := func(added, members float64, users ...int) {
		t.Helper()
		ids := make([]string, len(users))
		for i, n := range users {
			ids[i] = s.users[n].ID.String()
		}
		got := s.Do("POST", one+"/members", s.tenant.Key, map[string]any{"user_ids": ids}).Want(http.StatusOK)
		if got.Field("added_count") != added || got.Field("member_count") != members {
			t.Errorf("adding %v: %s", users, got.Body)
		}
	}
	s.Clock.Advance(1e9)
	since := s.Clock.Now()
	add(2, 2, 0, 1)
	if got := s.policies("?updated_since=" + since.Format(time.RFC3339)); len(got) != 1 || got[0]["id"] != p.String() {
		t.Errorf("updated since the members came: %v", got)
	}
	add(1, 3, 1, 2, 2) // one is in already, one is named twice
	add(0, 3, 0)
	if got := s.counts(p); got != "3 0 0" {
		t.Errorf("audience %s", got)
	}
	s.Do("DELETE", one+"/members/"+s.users[0].ID.String(), s.tenant.Key, nil).Want(http.StatusNoContent)
	if got := s.Do("DELETE", one+"/members/"+s.users[0].ID.String(), s.tenant.Key, nil).Want(http.StatusNotFound); got.Field("error.message") != "the user is not a member of this collection" {
		t.Errorf("leaving twice: %s", got.Body)
	}
	if got := s.Get(one, s.tenant.Key).Want(http.StatusOK); got.Field("member_count") != 2.0 {
		t.Errorf("after one left: %s", got.Body)
	}
	s.Do("POST", path, s.tenant.Key, `{"name":"SALES"}`).Want(http.StatusConflict)

	before := s.Get("/v2/users/"+s.users[1].ID.String(), s.tenant.Key).Field("updated_at")
	s.Clock.Advance(1e9)
	s.Do("DELETE", one, s.tenant.Key, nil).Want(http.StatusNoContent)
	user := s.Get("/v2/users/"+s.users[1].ID.String(), s.tenant.Key).Want(http.StatusOK)
	if user.Field("status") != "active" || len(user.Field("collections").([]any)) != 0 || user.Field("updated_at") == before {
		t.Errorf("a member of what was deleted: %s", user.Body)
	}
	for _, gone := range []string{one, one + "/members"} {
		s.Get(gone, s.tenant.Key).Want(http.StatusNotFound)
	}
	s.Do("DELETE", one, s.tenant.Key, nil).Want(http.StatusNotFound)
	if got := s.counts(p); got != "0 0 0" {
		t.Errorf("the audience of what was deleted: %s", got)
	}
	if policy := s.policies("")[0]; policy["scope_id"] != id.String() {
		t.Errorf("the policy lost its scope: %v", policy)
	}
	s.Do("POST", path, s.tenant.Key, `{"name":"sales"}`).Want(http.StatusCreated)
}

// TestUpdateCollection verifies that a collection takes a new name and description, that the records of its members move
// with its name only, that a change to the same values changes nothing, and that members and assignments stay.
func TestUpdateCollection(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 3)
	path := "/v2/clients/" + s.client.ID.String() + "/collections"
	one := path + "/" + s.AddCollection(s.client.ID, "Sales").String()
	s.AddCollection(s.client.ID, "Support")
	s.Do("POST", one+"/members", s.tenant.Key, map[string]any{"user_ids": []string{s.users[0].ID.String(), s.users[1].ID.String()}}).Want(http.StatusOK)
	updated := func(n int) any {
		return s.Get("/v2/users/"+s.users[n].ID.String(), s.tenant.Key).Want(http.StatusOK).Field("updated_at")
	}
	member, other := updated(0), updated(2)
	patch := func(body string) v2test.Response {
		t.Helper()
		s.Clock.Advance(time.Second)
		return s.Do("PATCH", one, s.tenant.Key, body).Want(http.StatusOK)
	}

	described := patch(`{"description":"Those who sell"}`)
	if described.Field("name") != "Sales" || described.Field("description") != "Those who sell" || described.Field("updated_at") != v2Time(s.Clock.Now()) ||
		updated(0) != member {
		t.Errorf("described: %s", described.Body)
	}
	for _, body := range []string{`{"description":"Those who sell"}`, `{"name":"Sales"}`, `{"name":" Sales ","description":"Those who sell"}`} {
		if got := patch(body); got.Field("updated_at") != described.Field("updated_at") || updated(0) != member {
			t.Errorf("%s changes %s", body, got.Body)
		}
	}
	renamed := patch(`{"name":"sales","description":null}`) // its own name, in another spelling
	if renamed.Field("name") != "sales" || renamed.Field("description") != nil || renamed.Field("member_count") != 2.0 ||
		renamed.Field("updated_at") != v2Time(s.Clock.Now()) || renamed.Field("created_at") != described.Field("created_at") {
		t.Errorf("renamed: %s", renamed.Body)
	}
	user := s.Get("/v2/users/"+s.users[0].ID.String(), s.tenant.Key)
	if user.Field("updated_at") != v2Time(s.Clock.Now()) || user.Field("collections").([]any)[0].(map[string]any)["name"] != "sales" ||
		updated(1) == member || updated(2) != other {
		t.Errorf("a member: %s", user.Body)
	}
	if got := string(s.Get(one, s.tenant.Key).Body); got != string(renamed.Body) {
		t.Errorf("the collection is %s, not %s", got, renamed.Body)
	}
	clash := s.Do("PATCH", one, s.tenant.Key, `{"name":"SUPPORT"}`).Want(http.StatusConflict)
	if clash.Field("error.fields").([]any)[0].(map[string]any)["field"] != "name" {
		t.Errorf("the name of another: %s", clash.Body)
	}
	checkInvalid(t, s.Do("PATCH", one, s.tenant.Key, `{"name":null}`), "name", "")
	checkInvalid(t, s.Do("PATCH", one, s.tenant.Key, `{"name":" "}`), "name", "")
}

// v2Time is a time as v2 shows it.
func v2Time(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
