package v2_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// hasDelta reports whether a list has the filter updated_since.
func hasDelta(o op.Declaration) bool {
	return slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == "updated_since" })
}

// TestUpdatedAtIsThePosition verifies for each list with updated_since that items show the time that the filter compares:
// a read since the greatest time seen, or any other, returns the items that show that time or a later one, and no other.
// A change of an item moves its time past the greatest one.
func TestUpdatedAtIsThePosition(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "api/examples", false)
	d := newDemo(t, h, e)
	h.Clock.Advance(24 * time.Hour) // courses become overdue, signatures expire
	at := ids(d.of("user_id", d.user, "collection_id", d.collections[0], "policy_id", d.policy))
	moves := d.moves(t, h, e)
	for _, o := range h.API.Set.All() {
		if !hasDelta(o) {
			continue
		}
		t.Run(o.Meta().ID, func(t *testing.T) {
			path := pathOf(t, o, at)
			since := func(text string) []map[string]any {
				return h.All(path+"?updated_since="+url.QueryEscape(text), e.Key)
			}
			items := since("1970-01-01T00:00:00Z") // refreshes what is stale
			times := updatedAt(t, items)
			if len(times) == 0 {
				t.Fatalf("the demonstration has nothing in %s", path)
			}
			for _, from := range []string{times[0], times[len(times)/2], times[len(times)-1]} {
				got, want := updatedAt(t, since(from)), times[slices.Index(times, from):]
				if !slices.Equal(got, want) {
					t.Errorf("since %s there are %d items, of %v; %d show such a time, of %v", from, len(got), got, len(want), want)
				}
			}

			greatest := times[len(times)-1]
			move := moves[o.Meta().ID]
			if move == nil {
				t.Fatal("nothing changes an item of this list: add a line to moves")
			}
			h.Clock.Advance(time.Minute)
			move()
			if moved := updatedAt(t, since(greatest)); len(moved) == 0 || moved[len(moved)-1] <= greatest {
				t.Errorf("after a change, the greatest time since %s is %v", greatest, moved)
			}
		})
	}
}

// updatedAt returns the times of change of items, sorted.
func updatedAt(t *testing.T, items []map[string]any) (times []string) {
	t.Helper()
	for _, item := range items {
		text, ok := item["updated_at"].(string)
		if !ok {
			t.Fatalf("an item shows no updated_at: %v", item)
		}
		times = append(times, text)
	}
	slices.Sort(times)
	return times
}

// moves maps each list with updated_since to a change of one of its items.
func (d demo) moves(t *testing.T, h *v2test.Harness, e *v2test.Examples) map[string]func() {
	do := func(method, path, body string, status int) func() {
		return func() { h.Do(method, "/v2"+path, e.Key, body).Want(status) }
	}
	signal := func(s domain.Signal) func() {
		return func() {
			s.At = h.Clock.Now()
			h.Signal(s)
		}
	}
	of := "/clients/" + d.client
	member := fmt.Sprint(e.Items("/v2" + of + "/collections/" + d.collections[0] + "/members")[0]["user_id"])
	published := signal(domain.Signal{Type: domain.PolicyPublished, Policy: idOf[domain.PolicyKind](t, d.policy)})
	complete := func() {
		for _, course := range e.Items("/v2/users/" + d.user + "/training") {
			if course["status"] == "completed" {
				continue
			}
			signal(domain.Signal{
				Type: domain.CourseCompleted, User: idOf[domain.UserKind](t, d.user),
				Course: idOf[domain.CourseKind](t, fmt.Sprint(course["course_id"])),
			})()
			return
		}
		t.Fatal("the user has no open course")
	}
	return map[string]func(){
		"clients.list":              do("PATCH", of, `{"industry": "mining"}`, http.StatusOK),
		"users.list":                do("PATCH", "/users/"+d.user, `{"department": "Mining"}`, http.StatusOK),
		"collections.list":          do("POST", of+"/collections", `{"name": "Miners"}`, http.StatusCreated),
		"collections.members.list":  do("PATCH", "/users/"+member, `{"job_title": "Miner"}`, http.StatusOK),
		"policies.list":             published,
		"policies.users.list":       published,
		"dark_web.exposures.list":   do("POST", "/users/"+d.exposed+"/exposures/"+url.PathEscape(d.breach)+"/resolve", "", http.StatusOK),
		"dark_web.users.list":       do("PATCH", "/users/"+d.exposed, `{"department": "Quarry"}`, http.StatusOK),
		"users.training":            complete,
		"training.assignments.list": complete,
		"clients.frameworks":        do("POST", of+"/frameworks", `{"framework_id": "gdpr", "audience": {"type": "users", "user_ids": ["`+d.user+`"]}}`, http.StatusCreated),
		"phishing.results.list":     do("DELETE", of+"/phishing/sends/"+d.scheduled[0], "", http.StatusNoContent),
		"phishing.templates.list": func() {
			h.Exec("UPDATE phishing_templates SET changed_at = $2 WHERE id = $1", idOf[domain.TemplateKind](t, d.template), h.Clock.Now())
		},
		"phishing.reported.list": signal(domain.Signal{
			Type: domain.EmailClassified, Class: domain.SentClass(domain.ClassSpam),
			Message: h.Text("SELECT message_id FROM reported_emails WHERE client_id = $1 AND classification = 'pending' LIMIT 1", e.Client),
		}),
		"sync.runs.list": do("POST", of+"/sync/runs", "", http.StatusAccepted),
		"reports.list":   do("POST", of+"/reports", `{"type": "executive_summary", "format": "pdf", "period": {"start_on": "2026-03-01", "end_on": "2026-05-31"}}`, http.StatusCreated),
	}
}
