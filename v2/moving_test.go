//go:build slow

package v2_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// notMoved are the reads that an export does not carry, with the reason.
var notMoved = map[string]string{
	"key.get":                  "keys do not move",
	"events.list":              "the feed begins anew",
	"webhooks.list":            "webhooks end with their keys",
	"webhooks.get":             "webhooks end with their keys",
	"webhooks.deliveries.list": "webhooks end with their keys",
	"sync.runs.list":           "directory connections do not move",
	"reports.list":             "reports do not move",
	"reports.get":              "reports do not move",
	"usage.list":               "the days begin with the import",
	"users.find":               "it needs an address, and shows what users.list does",
}

// TestMovedReads verifies that a client's objects are the same after an export and an import into an empty database,
// for a small partner of the demonstration that was used.
func TestMovedReads(t *testing.T) {
	t.Parallel()
	checkMoved(t, seed.OtherDemoPartner, "pk_demo_other")
}

// checkMoved uses the demonstration, moves it to an empty database, and compares all reads of a partner.
func checkMoved(t *testing.T, partner, key string) {
	t.Helper()
	from, to := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited}), v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	if _, err := seed.Demo(t.Context(), from.DB); err != nil {
		t.Fatal(err)
	}
	use(from, key)
	v2test.Move(from, to, domain.PartnerID{})

	got := v2test.Differences(from.Reads(key, notMoved), to.Reads(key, notMoved))
	for _, at := range slices.Sorted(maps.Keys(got)) {
		if why := explained(at); why == "" {
			t.Errorf("%s: %s", at, got[at])
		}
	}
}

// differs are the members that differ after a move, with the reason. The guide names them.
var differs = map[string]string{
	"updated_at":                         "it is the time of the import",
	"computed_at":                        "it is the time of the import",
	"evaluated_at":                       "it is the time of the import",
	"directory_sync":                     "directory connections do not move",
	"phishing.reported.list[].id":        "a signal that is ingested makes a new reported email",
	"clients.risk.body.history[] length": "the history begins with the import",
}

// explained returns why a difference is none; empty for one that is not expected.
func explained(at string) string {
	if why := differs[at]; why != "" {
		return why
	}
	return differs[at[strings.LastIndexByte(at, '.')+1:]]
}

// use changes a partner's objects for some months, in all ways that the API and signals have.
func use(h *v2test.Harness, key string) {
	h.T.Helper()
	client := h.All("/v2/clients", key)[0]["id"].(string)
	of := "/v2/clients/" + client
	var users []string
	for _, u := range h.All(of+"/users?status=active", key) {
		users = append(users, u["id"].(string))
	}
	quoted := func(ids []string) string { return `["` + strings.Join(ids, `","`) + `"]` }
	do := func(method, path, body string) map[string]any {
		h.T.Helper()
		r := h.Do(method, path, key, body)
		if r.Status >= 300 {
			h.T.Fatalf("%s %s %s: %d %s", method, path, body, r.Status, r.Body)
		}
		h.Clock.Advance(7 * time.Minute)
		if len(r.Body) == 0 {
			return nil
		}
		return r.JSON()
	}
	n := min(len(users), 12)
	courses := h.All("/v2/courses", key)
	course := func(i int) domain.CourseID {
		id, err := domain.ParseID[domain.CourseKind](courses[i]["id"].(string))
		if err != nil {
			h.T.Fatal(err)
		}
		return id
	}
	signal := func(kind domain.SignalType, user string, c domain.CourseID) {
		h.T.Helper()
		id, err := domain.ParseID[domain.UserKind](user)
		if err != nil {
			h.T.Fatal(err)
		}
		h.Clock.Advance(time.Minute)
		h.Signal(domain.Signal{Type: kind, At: h.Clock.Now(), User: id, Course: c})
	}
	refresh := func(days int) {
		h.T.Helper()
		for range days / 20 {
			h.Clock.Advance(20 * 24 * time.Hour)
			if _, err := h.DB.DailyRefresh(h.T.Context(), domain.DateOf(h.Clock.Now()), nil); err != nil {
				h.T.Fatal(err)
			}
		}
	}

	// Training that was asked for: open, begun, completed, overdue and due again.
	for i, due := range []int{10, 40, 900} {
		do("POST", of+"/training/assignments", fmt.Sprintf(`{"course_id":"%s","audience":{"type":"users","user_ids":%s},"due_on":"%s","notify":false}`,
			course(len(courses)-1-i), quoted(users[:n]), domain.DateOf(h.Clock.Now()).AddDays(due)))
	}
	for i := range n / 2 {
		signal(domain.CourseStarted, users[i], course(len(courses)-1))
		signal(domain.CourseCompleted, users[i], course(len(courses)-1-i%3))
		signal(domain.CourseCompleted, users[i], course(i%len(courses)))
	}
	// Collections, with members of several times, one for a policy, which is deleted.
	kept := do("POST", of+"/collections", `{"name":"Kept","description":"of the API"}`)["id"].(string)
	gone := do("POST", of+"/collections", `{"name":"Gone"}`)["id"].(string)
	for i := range n {
		do("POST", of+"/collections/"+[]string{kept, gone}[i%2]+"/members", `{"user_ids":["`+users[i]+`"]}`)
	}
	h.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		SELECT client_id, gen_random_uuid(), 'Scoped', 'collection', id, true, created_at, created_at, created_at
		FROM collections WHERE name IN ('Kept', 'Gone')`)
	do("POST", of+"/frameworks", `{"framework_id":"nydfs","audience":{"type":"collection","collection_id":"`+gone+`"}}`)
	do("POST", of+"/frameworks", `{"framework_id":"hipaa","audience":{"type":"users","user_ids":`+quoted(users[:n/2])+`}}`)
	refresh(20)
	removed := do("POST", of+"/frameworks", `{"framework_id":"soc2"}`)["assignment"].(map[string]any)["id"].(string)
	signal(domain.CourseStarted, users[0], course(8))
	do("DELETE", of+"/collections/"+gone, "")
	do("DELETE", of+"/frameworks/"+removed, "")
	do("DELETE", of+"/collections/"+kept+"/members/"+users[0], "")

	// Users who come, go, return, and change their role.
	fresh := do("POST", of+"/users", `{"email":"fresh@example.com","first_name":"Ana","collection_ids":["`+kept+`"]}`)["id"].(string)
	do("PATCH", "/v2/users/"+users[1], `{"role":"finance","department":"Sales"}`)
	do("PATCH", "/v2/users/"+users[2], `{"status":"inactive"}`)
	do("PATCH", "/v2/users/"+users[3], `{"status":"inactive"}`)
	refresh(40)
	do("PATCH", "/v2/users/"+users[3], `{"status":"active"}`)
	signal(domain.CourseCompleted, fresh, course(0))
	do("POST", of+"/phishing/sends", `{"user_ids":`+quoted(users[4:6])+`,"send_at":"`+h.Clock.Now().AddDate(0, 2, 0).Format(time.RFC3339)+`"}`)
	for i := range 3 {
		do("POST", of+"/frameworks", `{"framework_id":"`+[]string{"pci_dss", "iso_27001", "ftc_safeguards"}[i]+`"}`)
	}
	if exposures := h.Get(of+"/dark-web/exposures?limit=500", key); exposures.Status == http.StatusOK {
		for i, e := range rows(exposures) {
			if i%3 == 0 && e["resolved_at"] == nil {
				do("POST", "/v2/users/"+e["user_id"].(string)+"/exposures/"+e["breach_name"].(string)+"/resolve", "")
			}
		}
	}
	// No worker sends what is scheduled.
	h.Exec("UPDATE phishing_results SET send_at = $1 WHERE status = 'scheduled'", h.Clock.Now().AddDate(2, 0, 0))
	refresh(400) // courses are due again
	for i := range n {
		signal(domain.CourseCompleted, users[i], course(i%len(courses)))
	}
}
