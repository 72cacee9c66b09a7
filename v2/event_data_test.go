package v2_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dirsync"
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

// eventData publishes, and returns the data of the one event that there is of a type.
func (w *world) eventData(t *testing.T, kind domain.EventType) string {
	t.Helper()
	w.Publish()
	items := rawItems(w.Get("/v2/events?types="+string(kind), w.tenant.Key).Want(http.StatusOK))
	if len(items) != 1 {
		t.Fatalf("%d events of the type %s", len(items), kind)
	}
	var e struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		CreatedAt string          `json:"created_at"`
		ClientID  string          `json:"client_id"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(items[0]), &e); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":%q,"type":%q,"created_at":%q,"client_id":%q,"data":%s}`, e.ID, kind, e.CreatedAt, w.client.ID, e.Data)
	if items[0] != want || !strings.HasPrefix(e.ID, "evt_") || !strings.HasPrefix(e.CreatedAt, "2026-") || !strings.HasSuffix(e.CreatedAt, "Z") {
		t.Errorf("the event is\n%s", items[0])
	}
	return string(e.Data)
}

// TestEventData: the data of each type of event is to the byte what the read of the
// object shows at that moment.
func TestEventData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Exec("DELETE FROM published_events") // those of the fixture
	w.Exec("DROP TRIGGER end_run ON sync_runs")
	client, user := "/v2/clients/"+w.client.ID.String(), "/v2/users/"+w.user.ID.String()
	one := func(path string) func() string {
		return func() string { return string(w.Get(path, w.tenant.Key).Want(http.StatusOK).Body) }
	}
	item := func(path string) func() string {
		return func() string { return rawItems(w.Get(path, w.tenant.Key).Want(http.StatusOK))[0] }
	}
	patch := func(body string) func() {
		return func() { w.Do("PATCH", user, w.tenant.Key, body).Want(http.StatusOK) }
	}
	signal := func(s domain.Signal) func() {
		return func() {
			if s.At.IsZero() {
				s.At = w.Clock.Now()
			}
			s.User = w.user.ID
			w.Signal(s)
		}
	}
	training := func() string {
		first := item(user + "/training")()
		return fmt.Sprintf(`{"user_id":%q,%s`, w.user.ID, first[1:])
	}
	w.Exec("UPDATE assignments SET due_on = '2026-06-14' WHERE user_id = $1 AND position = (SELECT min(position) FROM assignments)", w.user.ID)
	w.Exec("DELETE FROM exposures")
	for _, c := range []struct {
		kind domain.EventType
		do   func()
		read func() string
	}{
		{domain.ClientCreated, func() {}, one(client)},
		{domain.UserCreated, func() {}, one(user)},
		{domain.UserUpdated, patch(`{"first_name":"Zoë <&> \u2028","manager_email":"boss@example.com"}`), one(user)},
		{domain.CourseOverdue, func() {
			if _, _, err := w.DB.NoteOverdue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, training},
		{domain.CoursePassed, func() { signal(domain.Signal{Type: domain.CourseCompleted, Course: w.firstCourse()})() }, training},
		{domain.RealReported, signal(domain.Signal{Type: domain.EmailReported, Message: "a@x", Subject: "Invoice <b>", Sender: "Who"}),
			item(client + "/phishing/reported")},
		{domain.DataExposed, signal(domain.Signal{Type: domain.ExposureFound, Breach: breach}), item(client + "/dark-web/exposures")},
		{domain.PolicyAgreed, signal(domain.Signal{Type: domain.PolicySigned, Policy: w.parts.policies[0], Version: 1}), func() string {
			return fmt.Sprintf(`{"policy_id":%q,"user_id":%q,"version":1,"acknowledged_at":"2026-06-15T12:00:00.000000Z"}`, w.parts.policies[0], w.user.ID)
		}},
		{domain.ResultUpdated, func() {
			id := db.NewID[domain.ResultKind]()
			w.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
				VALUES ($1, $2, $3, $4, 'sent', $5, $5, $5, $5)`, w.client.ID, id, w.user.ID, w.parts.template, w.Clock.Now().Add(-time.Hour))
			w.Signal(domain.Signal{Type: domain.PhishingClicked, Result: id, At: w.Clock.Now()})
		}, item(client + "/phishing/results")},
		{domain.ReportMade, func() {
			id := w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"phishing_overview"}`).Want(http.StatusCreated).Field("id")
			w.finish(id.(string), domain.ReportReady)
		}, item(client + "/reports")},
		{domain.SyncStopped, func() {
			w.sync(t, func(l *dirsync.Lease) error { _, err := dirsync.Fail(t.Context(), w.DB, l, "why"); return err })
		},
			item(client + "/sync/runs")},
		{domain.SyncDone, func() {
			w.Clock.Advance(2 * time.Hour)
			w.sync(t, func(l *dirsync.Lease) error { _, err := dirsync.Finish(t.Context(), w.DB, l); return err })
		}, item(client + "/sync/runs")},
		{domain.UserDeactivated, patch(`{"status":"inactive"}`), one(user)},
	} {
		c.do()
		if got, want := w.eventData(t, c.kind), c.read(); got != want {
			t.Errorf("%s: the data is\n%s, not\n%s", c.kind, got, want)
		}
	}
	if n := w.Number("SELECT count(DISTINCT type) FROM published_events"); n != len(domain.EventTypes) {
		t.Errorf("%d of %d types", n, len(domain.EventTypes))
	}
	if n := w.Number("SELECT count(*) FROM events"); n != 0 {
		t.Errorf("%d events are left in the outbox", n)
	}
}

// firstCourse is the user's first course.
func (w *world) firstCourse() (id domain.CourseID) {
	w.T.Helper()
	text := rows(w.Get("/v2/users/"+w.user.ID.String()+"/training", w.tenant.Key))[0]["course_id"].(string)
	id, err := domain.ParseID[domain.CourseKind](text)
	if err != nil {
		w.T.Fatal(err)
	}
	return id
}

// sync has a run of the client asked for, begun, and ended by a function.
func (w *world) sync(t *testing.T, end func(*dirsync.Lease) error) {
	t.Helper()
	w.Do("POST", "/v2/clients/"+w.client.ID.String()+"/sync/runs", w.tenant.Key, nil).Want(http.StatusAccepted)
	lease, err := dirsync.Claim(t.Context(), w.DB, time.Minute)
	if err == nil {
		err = end(lease)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEventsOfOneBatch: events of several clients and users, each of them more than
// once, are rendered in a number of statements that does not grow with theirs.
func TestEventsOfOneBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	statements := func(clients, users int) int {
		w.Publish()
		for c := range clients {
			client := w.Client(w.tenant, fmt.Sprint("Client ", c, " of ", clients))
			for u := range users {
				user := w.User(w.tenant, client.ID, v2test.Email(u))
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
	if few, many := statements(1, 1), statements(5, 7); few != many || many > 8 {
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
	gone := w.Client(w.tenant, "Gone")
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", gone.ID)
	w.Signal(domain.Signal{Type: domain.EmailReported, User: w.user.ID, Message: "a@x", Sender: "s", At: w.Clock.Now()})
	w.Exec("DELETE FROM reported_emails")
	w.Signal(domain.Signal{Type: domain.ExposureFound, User: w.user.ID, Breach: breach, At: w.Clock.Now()})
	w.Exec("UPDATE clients SET dark_web_monitoring = false")
	w.User(w.tenant, w.client.ID, "kept@example.com")
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
