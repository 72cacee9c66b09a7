package v2_test

import (
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
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
