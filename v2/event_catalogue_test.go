package v2_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

const catalogueFile = "../docs/guide/events.md"

// catalogueEnd starts the part of the catalogue that is not generated.
const catalogueEnd = "\n## Delivery\n"

// happening is a type of event in the catalogue: what its data is, and what makes one of
// the demonstration.
type happening struct {
	kind domain.EventType
	data string
	do   func()
}

// TestEventCatalogue holds the guide to events to the types that there are, and its
// examples to what the demonstration has.
func TestEventCatalogue(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "api/examples", *update)
	d := newDemo(t, h, e)
	h.Publish()
	h.Clock.Advance(time.Minute)

	var text strings.Builder
	_, forms := api.Event{}.Forms()
	happenings := d.happenings(t, h, e)
	if len(happenings) != len(domain.EventTypes) {
		t.Errorf("%d events of %d types", len(happenings), len(domain.EventTypes))
	}
	for i, p := range happenings {
		if string(p.kind) != forms[i].Value {
			t.Fatalf("%s stands where %s does in the documents", p.kind, forms[i].Value)
		}
		var page struct {
			Data []json.RawMessage
			Page struct {
				NextCursor string `json:"next_cursor"`
			}
		}
		h.Get("/v2/events?cursor=latest&types="+string(p.kind), e.Key).Want(http.StatusOK).Into(&page)
		p.do()
		h.Publish()
		h.Get("/v2/events?cursor="+page.Page.NextCursor+"&types="+string(p.kind), e.Key).Want(http.StatusOK).Into(&page)
		if len(page.Data) == 0 {
			t.Fatalf("there is no event %s", p.kind)
		}
		p.check(t, h, e.Key, page.Data[0])
		e.RecordEvent(t, string(p.kind), page.Data[0])
		fmt.Fprintf(&text, "\n### %s\n\n%s `data` is %s.\n\n```json\n%s\n```\n", p.kind, forms[i].About, p.data, e.Shown(page.Data[0]))
	}
	h.Do("POST", "/v2/webhooks/"+d.webhook+"/test", e.Key, nil).Want(http.StatusOK)
	_, sent := h.Receivers.Seen()
	e.RecordEvent(t, api.PingType, []byte(sent[len(sent)-1].Body))
	fmt.Fprintf(&text, "\n### ping\n\nYou tested a webhook with `POST /v2/webhooks/{webhook_id}/test`. Only that webhook receives the event. "+
		"The event has no client, and `GET /v2/events` does not list it.\n\n```json\n%s\n```\n", e.Shown(sent[len(sent)-1].Body))

	read, err := os.ReadFile(catalogueFile)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(read), "\n### ")
	_, tail, ok := strings.Cut(string(read), catalogueEnd)
	want := head + text.String() + catalogueEnd + tail
	switch {
	case !ok:
		t.Errorf("%s has no heading%s", catalogueFile, catalogueEnd)
	case *update:
		if err := os.WriteFile(catalogueFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(read):
		t.Errorf("%s is stale (make examples)\n%s", catalogueFile, v2test.Diff(string(read), want))
	}
}

// namedRead is the read that the description of an event's data names.
var namedRead = regexp.MustCompile("`GET (/v2/[^`]+)`")

// check holds an event to its description: its data is to the byte what the read shows that is named there.
func (p happening) check(t *testing.T, h *v2test.Harness, key string, event json.RawMessage) {
	t.Helper()
	named := namedRead.FindStringSubmatch(p.data)
	if named == nil {
		return
	}
	var e struct {
		ClientID string `json:"client_id"`
		Data     json.RawMessage
	}
	var data struct {
		ID     string
		UserID string `json:"user_id"`
	}
	if err := errors.Join(json.Unmarshal(event, &e), json.Unmarshal(e.Data, &data)); err != nil {
		t.Fatal(err)
	}
	path := strings.NewReplacer("{client_id}", e.ClientID, "{user_id}", cmp.Or(data.UserID, data.ID)).Replace(named[1])
	want, isItem := string(e.Data), strings.HasPrefix(p.data, "an item")
	if isItem {
		path += "?limit=500&updated_since=" + h.Clock.Now().AddDate(0, 0, -1).Format(time.RFC3339)
	}
	if strings.HasSuffix(p.data, "with an added `user_id`") {
		want = strings.Replace(want, fmt.Sprintf("%q:%q,", "user_id", data.UserID), "", 1)
	}
	shown := string(h.Get(path, key).Want(http.StatusOK).Body)
	if !strings.Contains(shown, want) || !isItem && shown != want {
		t.Errorf("%s: the data is\n%s\nand %s shows\n%s", p.kind, want, path, shown)
	}
}

// happenings are one of each type, in the order of the documents.
func (d demo) happenings(t *testing.T, h *v2test.Harness, e *v2test.Examples) []happening {
	of := "/v2/clients/" + d.client
	var user domain.UserID // the one whom the second event is about
	var err error
	send := func(method, path, body string) func() {
		return func() { h.Do(method, path, e.Key, body) }
	}
	signal := func(s domain.Signal) func() {
		return func() {
			s.At, s.User = h.Clock.Now(), user
			h.Signal(s)
		}
	}
	const isUser = "the user, as `GET /v2/users/{user_id}` returns it"
	const isCourse = "an item from `GET /v2/users/{user_id}/training`, with an added `user_id`"
	const isRun = "an item from `GET /v2/clients/{client_id}/sync/runs`"
	return []happening{
		{domain.ClientCreated, "the client, as `GET /v2/clients/{client_id}` returns it",
			send("POST", "/v2/clients", `{"name": "Juniper Books", "industry": "Retail", "external_id": "CRM-4711"}`)},
		{domain.UserCreated, isUser,
			func() {
				made := h.Do("POST", of+"/users", e.Key, `{"email": "amara.okafor@example.com", "first_name": "Amara", "last_name": "Okafor"}`)
				user = idOf[domain.UserKind](t, made.Field("id").(string))
			}},
		{domain.UserUpdated, isUser,
			send("PATCH", "/v2/users/"+d.user, `{"job_title": "Head of Payroll"}`)},
		{domain.UserDeactivated, isUser,
			send("PATCH", "/v2/users/"+d.users[1], `{"status": "inactive"}`)},
		{domain.ResultUpdated,
			"an item from `GET /v2/clients/{client_id}/phishing/results`", func() { d.click(t, h, user) }},
		{domain.RealReported, "an item from `GET /v2/clients/{client_id}/phishing/reported`",
			signal(domain.Signal{Type: domain.EmailReported, Message: "overdue@mail.example", Subject: "Your invoice is overdue", Sender: "billing@parcels.example"})},
		{domain.CoursePassed, isCourse, func() {
			first := e.Items("/v2/users/" + user.String() + "/training")[0]
			signal(domain.Signal{Type: domain.CourseCompleted, Course: idOf[domain.CourseKind](t, fmt.Sprint(first["course_id"]))})()
		}},
		{domain.CourseOverdue, isCourse, func() {
			h.Exec("UPDATE assignments SET due_on = '2026-06-14', overdue_noted = false WHERE user_id = $1 AND completed_at IS NULL", user)
			for more := true; more; {
				if _, more, err = h.DB.NoteOverdue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{domain.PolicyAgreed, "the signature, with the policy, its version, the user and the time", func() {
			policy := idOf[domain.PolicyKind](t, d.policy)
			version := h.Number("SELECT version FROM policies WHERE id = $1", policy)
			signal(domain.Signal{Type: domain.PolicySigned, Policy: policy, Version: version})()
		}},
		{domain.DataExposed, "an item from `GET /v2/clients/{client_id}/dark-web/exposures`",
			signal(domain.Signal{Type: domain.ExposureFound, Breach: d.breach})},
		{domain.SyncDone, isRun, func() {
			d.sync(t, h, e, func(l *dirsync.Lease) error { _, err := dirsync.Finish(t.Context(), h.DB, l); return err })
		}},
		{domain.SyncStopped, isRun, func() {
			h.Clock.Advance(2 * time.Hour)
			d.sync(t, h, e, func(l *dirsync.Lease) error {
				_, err := dirsync.Fail(t.Context(), h.DB, l, "the directory refuses the application: renew its secret")
				return err
			})
		}},
		{domain.ReportMade, "an item from `GET /v2/clients/{client_id}/reports`", func() {
			made := h.Do("POST", of+"/reports", e.Key, `{"type": "executive_summary"}`).Want(http.StatusCreated)
			finishReport(t, h, e.Client, made.Field("id").(string), domain.ReportReady)
		}},
	}
}

// click has a user click a simulated mail that was sent an hour before.
func (d demo) click(t *testing.T, h *v2test.Harness, user domain.UserID) {
	t.Helper()
	id, now := db.NewID[domain.ResultKind](), h.Clock.Now()
	h.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
		SELECT client_id, $2, id, $3, 'sent', $4, $4, $4, $4 FROM users WHERE id = $1`,
		user, id, idOf[domain.TemplateKind](t, d.template), now.Add(-time.Hour))
	h.Signal(domain.Signal{Type: domain.PhishingClicked, Result: id, At: now})
}

// sync has a run of the client asked for, begun, and ended by a function.
func (d demo) sync(t *testing.T, h *v2test.Harness, e *v2test.Examples, end func(*dirsync.Lease) error) {
	t.Helper()
	h.Do("POST", "/v2/clients/"+d.client+"/sync/runs", e.Key, nil).Want(http.StatusAccepted)
	lease, err := dirsync.Claim(t.Context(), h.DB, time.Minute)
	if err == nil {
		err = end(lease)
	}
	if err != nil {
		t.Fatal(err)
	}
}
