package v2_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// rawItems are the items of a page as they were sent.
func rawItems(r v2test.Response) (items []string) {
	var page struct {
		Data []json.RawMessage `json:"data"`
	}
	r.Into(&page)
	for _, item := range page.Data {
		items = append(items, string(item))
	}
	return items
}

// firstCourse is the user's first course.
func (w *world) firstCourse() domain.CourseID {
	w.T.Helper()
	return idOf[domain.CourseKind](w.T, column(w.Get(w.userPath()+"/training", w.tenant.Key), "course_id")[0])
}

// TestEventsOfOneBatch: events of several clients and users, each of them more than
// once, are rendered in a number of statements that does not grow with theirs.
func TestEventsOfOneBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	statements := func(clients, users int) int {
		w.Publish()
		for c := range clients {
			client := w.AddClient(w.tenant, fmt.Sprint("Client ", c, " of ", clients))
			for u := range users {
				user := w.AddUser(w.tenant, client.ID, v2test.Email(u))
				w.Do("PATCH", "/v2/users/"+user.ID.String(), w.tenant.Key, `{"last_name":"Changed"}`).Want(http.StatusOK)
			}
		}
		published := 0
		n := w.Statements.During(func() { published = w.Publish() })
		if want := clients * (1 + 2*users); published != want {
			t.Errorf("%d events, not %d", published, want)
		}
		return n
	}
	if few, many := statements(1, 1), statements(5, 7); few != many || many > 9 {
		t.Errorf("%d statements for a few events, %d for many", few, many)
	}
}

// TestEventsOfWhatIsGone: an event whose object or client is gone is dropped, and keeps
// no other.
func TestEventsOfWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Publish()
	before := w.Number("SELECT count(*) FROM published_events")
	gone := w.AddClient(w.tenant, "Gone")
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", gone.ID)
	w.Signal(domain.Signal{Type: domain.EmailReported, User: w.user.ID, Message: "a@x", Sender: "s", At: w.Clock.Now()})
	w.Exec("DELETE FROM reported_emails")
	w.Signal(domain.Signal{Type: domain.ExposureFound, User: w.user.ID, Breach: breach, At: w.Clock.Now()})
	w.Exec("UPDATE clients SET dark_web_monitoring = false")
	w.AddUser(w.tenant, w.client.ID, "kept@example.com")
	if n := w.Publish(); n != 1 {
		t.Errorf("%d events are published, not that of the user alone", n)
	}
	if n := w.Number("SELECT count(*) FROM published_events"); n != before+1 {
		t.Errorf("%d events, after %d", n, before)
	}
	if n := w.Number("SELECT count(*) FROM events"); n != 0 {
		t.Errorf("%d events are left in the outbox", n)
	}
}
