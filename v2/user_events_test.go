package v2_test

import (
	"net/http"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestUserUpdatedIsOfTheRecord: a change of the user's own fields is one event, whatever
// they are; what moves the score, the training, the exposures or the collections of a
// user is none, nor is a change that changes nothing.
func TestUserUpdatedIsOfTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	path := "/v2/users/" + w.user.ID.String()
	collection := w.AddCollection(w.client.ID, "Collection")
	members := "/v2/clients/" + w.client.ID.String() + "/collections/" + collection.String() + "/members"
	patch := func(body string) func() {
		return func() { w.Do("PATCH", path, w.tenant.Key, body).Want(http.StatusOK) }
	}
	signal := func(s domain.Signal) func() {
		return func() {
			s.User, s.At = w.user.ID, w.Clock.Now()
			w.Signal(s)
		}
	}
	for _, c := range []struct {
		what string
		do   func()
		kind domain.EventType // empty for no event of users
	}{
		{"first name", patch(`{"first_name":"Grace"}`), domain.UserUpdated},
		{"the same again", patch(`{"first_name":"Grace"}`), ""},
		{"last name", patch(`{"last_name":"Hopper"}`), domain.UserUpdated},
		{"department", patch(`{"department":"Navy"}`), domain.UserUpdated},
		{"no department", patch(`{"department":null}`), domain.UserUpdated},
		{"title", patch(`{"job_title":"Admiral"}`), domain.UserUpdated},
		{"manager", patch(`{"manager_email":"boss@example.com"}`), domain.UserUpdated},
		{"role", patch(`{"role":"finance"}`), domain.UserUpdated},
		{"language", patch(`{"preferred_language":"es"}`), domain.UserUpdated},
		{"two at once", patch(`{"first_name":"Ada","last_name":"Byron"}`), domain.UserUpdated},
		{"inactive", patch(`{"status":"inactive","department":"None"}`), domain.UserDeactivated},
		{"active again", patch(`{"status":"active"}`), domain.UserUpdated},
		{"a collection", func() {
			w.Do("POST", members, w.tenant.Key, map[string]any{"user_ids": []string{w.user.ID.String()}}).Want(http.StatusOK)
			w.Do("DELETE", members+"/"+w.user.ID.String(), w.tenant.Key, nil).Want(http.StatusNoContent)
		}, ""},
		{"a course", signal(domain.Signal{Type: domain.CourseCompleted, Course: w.firstCourse()}), ""},
		{"a report of mail", signal(domain.Signal{Type: domain.EmailReported, Message: "a@x", Sender: "s"}), ""},
		{"an exposure", func() {
			w.Exec("DELETE FROM exposures")
			signal(domain.Signal{Type: domain.ExposureFound, Breach: breach})()
		}, ""},
		{"its end", func() {
			w.Do("POST", path+"/exposures/"+breach+"/resolve", w.tenant.Key, nil).Want(http.StatusOK)
		}, ""},
	} {
		w.Exec("DELETE FROM events")
		c.do()
		of := w.Number("SELECT count(*) FROM events WHERE type = $1 AND user_id = $2", c.kind, w.user.ID)
		all := w.Number("SELECT count(*) FROM events WHERE type LIKE 'user.%'")
		if want := min(len(c.kind), 1); of != want || all != want {
			t.Errorf("%s: %d events %q, %d of users", c.what, of, c.kind, all)
		}
	}
}
