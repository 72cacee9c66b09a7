package directory_test

import (
	"testing"

	"partnerapi/domain"
)

// TestFrameworkCourses: whom a sync makes, activates or gives another role gets the
// courses of the frameworks that ask for them then.
func TestFrameworkCourses(t *testing.T) {
	w := newWorld(t)
	s := newScripted(false, state{"a": account{email: "a@example.com", title: "Clerk"}})
	w.connect(w.client, s)
	w.Do("POST", "/v2/clients/"+w.client.String()+"/frameworks", w.tenant.Key, map[string]any{"framework_id": "cis_v8"}).Want(201)
	given := func(email string) int {
		return w.Number(`SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id
			WHERE u.email = $1 AND a.frameworks <> '{}'`, email)
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1})
	before := given("a@example.com")

	s.change(map[string]*account{"a": {email: "a@example.com", title: "Accountant"}, "b": {email: "b@example.com", title: "Accountant"}})
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
	if before == 0 || given("a@example.com") != before+1 || given("b@example.com") != before+1 {
		t.Errorf("the clerk has %d courses of the framework, the accountant %d, and the new one %d",
			before, given("a@example.com"), given("b@example.com"))
	}
}
