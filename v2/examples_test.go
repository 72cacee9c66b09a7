package v2_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

var update = flag.Bool("update", false, "write the examples instead of comparing them")

// TestExamples holds the files in v2/api/examples to what the operations answer on the
// demonstration. An operation without an example fails it: add a line to one of the
// lists below.
func TestExamples(t *testing.T) {
	t.Parallel()
	recordExamples(t, v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited}))
}

// recordExamples makes a call of every operation.
func recordExamples(t *testing.T, h *v2test.Harness) *v2test.Examples {
	t.Helper()
	e := v2test.NewExamples(h, "api/examples", *update)
	d := newDemo(t, h, e)
	operations := map[string]op.Operation{}
	for _, o := range h.API.Set.All() {
		operations[o.Meta().ID] = o
	}
	record := func(call v2test.Call) {
		o := operations[call.ID]
		if o == nil {
			t.Fatalf("there is no operation %s", call.ID)
		}
		delete(operations, call.ID)
		e.Record(t, o.Meta().Method, "/v2"+op.Braced(o.Meta().Path), o.Meta().Status, call)
	}
	for _, call := range append(d.reads(), d.writes()...) {
		record(call)
	}
	for _, call := range d.events(h, e) {
		record(call)
	}
	for id := range operations {
		t.Errorf("%s has no example", id)
	}
	e.Finish(t)
	return e
}

// demo is what examples name of the demonstration.
type demo struct {
	client, user, email, exposed, breach, report, policy, course, template, label, webhook, paused string
	collections, users, assignments, scheduled, sent                                               []string
}

func newDemo(t *testing.T, h *v2test.Harness, e *v2test.Examples) demo {
	t.Helper()
	d := demo{client: e.Client.String()}
	err := dirsync.Connect(t.Context(), h.DB, e.Client, domain.Microsoft, json.RawMessage("{}"), []byte("sealed"))
	if err != nil {
		t.Fatal(err)
	}
	of := "/v2/clients/" + d.client
	list := func(path, member string) (values []string) {
		for _, item := range e.Items(path) {
			values = append(values, fmt.Sprint(item[member]))
		}
		if len(values) == 0 {
			t.Fatalf("the demonstration has nothing in %s", path)
		}
		return values
	}
	d.users = list(of+"/users?status=active&role=finance&sort=email", "id")
	d.user = d.users[0]
	d.email = list(of+"/users?status=active&role=finance&sort=email", "email")[0]
	collections := e.Items(of + "/collections")
	slices.SortStableFunc(collections, func(a, b map[string]any) int { // those with most members first
		return cmp.Compare(b["member_count"].(float64), a["member_count"].(float64))
	})
	for _, c := range collections {
		d.collections = append(d.collections, fmt.Sprint(c["id"]))
	}
	d.assignments = list(of+"/frameworks", "id")
	d.scheduled = list(of+"/phishing/results?status=scheduled", "result_id")
	d.sent = list(of+"/phishing/results?status=sent", "result_id")
	d.report = list(of+"/reports?status=pending", "id")[0]
	finishReport(t, h, e.Client, d.report, domain.ReportReady)
	for _, p := range e.Items(of + "/policies") {
		if p["title"] == "Acceptable use" { // which some have signed, and some not
			d.policy = fmt.Sprint(p["id"])
		}
	}
	d.course = list("/v2/courses", "id")[0]
	d.template = list("/v2/phishing/templates", "id")[0]
	d.label = list(of+"/phishing/labels", "label")[0]
	for _, x := range e.Items(of + "/dark-web/exposures") {
		if x["resolved_at"] == nil && x["severity"] == "critical" {
			d.exposed, d.breach = fmt.Sprint(x["user_id"]), fmt.Sprint(x["breach_name"])
			break
		}
	}
	d.paused = fmt.Sprint(e.Items("/v2/webhooks")[0]["id"])
	d.webhook = h.Do("POST", "/v2/webhooks", e.Key, `{"url": "https://hooks.example.com/training", "events": ["user.updated"], `+
		`"client_ids": ["`+d.client+`"], "description": "Ticket for every change of a user"}`).Want(http.StatusCreated).Field("id").(string)
	return d
}

// of are the path's parameters: the client, and pairs of name and value.
func (d demo) of(pairs ...string) map[string]string {
	out := map[string]string{"client_id": d.client}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func (d demo) reads() []v2test.Call {
	user := map[string]string{"user_id": d.user}
	return []v2test.Call{
		{ID: "partner.get"},
		{ID: "key.get"},
		{ID: "usage.list", Query: "limit=2&start_on=2026-05-01&end_on=2026-05-31"},
		{ID: "audit_log.list", Query: "limit=2&client_id=" + d.client},
		{ID: "clients.list", Query: "limit=2&sort=-risk_score"},
		{ID: "clients.get", Path: d.of()},
		{ID: "admins.list", Path: d.of(), Query: "limit=2"},
		{ID: "clients.risk", Path: d.of()},
		{ID: "users.list", Path: d.of(), Query: "limit=2&status=active"},
		{ID: "users.find", Query: "limit=2&email=" + d.email},
		{ID: "users.get", Path: user},
		{ID: "departments.list", Path: d.of(), Query: "limit=3"},
		{ID: "users.risk", Path: user},
		{ID: "users.emails", Path: user, Query: "limit=3"},
		{ID: "users.training", Path: user, Query: "limit=3"},
		{ID: "training.assignments.list", Path: d.of(), Query: "limit=2&status=overdue"},
		{ID: "courses.list", Query: "limit=2"},
		{ID: "collections.list", Path: d.of(), Query: "limit=2"},
		{ID: "collections.get", Path: d.of("collection_id", d.collections[0])},
		{ID: "collections.members.list", Path: d.of("collection_id", d.collections[0]), Query: "limit=2"},
		{ID: "policies.list", Path: d.of(), Query: "limit=2"},
		{ID: "policies.users.list", Path: d.of("policy_id", d.policy), Query: "limit=2&status=unsigned"},
		{ID: "clients.dark_web", Path: d.of()},
		{ID: "dark_web.exposures.list", Path: d.of(), Query: "limit=2&since=2026-03-15T00:00:00Z&until=2026-06-15T00:00:00Z"},
		{ID: "dark_web.users.list", Path: d.of(), Query: "limit=2"},
		{ID: "phishing.results.list", Path: d.of(), Query: "limit=2&status=clicked&since=2026-03-15T00:00:00Z&until=2026-06-15T00:00:00Z"},
		{ID: "phishing.summary", Path: d.of()},
		{ID: "phishing.labels.list", Path: d.of(), Query: "limit=2"},
		{ID: "phishing.templates.list", Query: "limit=2"},
		{ID: "phishing.reported.list", Path: d.of(), Query: "limit=2&classification=phishing"},
		{ID: "frameworks.list", Query: "limit=1"},
		{ID: "clients.frameworks", Path: d.of(), Query: "limit=1"},
		{ID: "frameworks.get", Path: d.of("assignment_id", d.assignments[0])},
		{ID: "reports.list", Path: d.of(), Query: "limit=2"},
		{ID: "reports.get", Path: d.of("report_id", d.report)},
		{ID: "sync.runs.list", Path: d.of(), Query: "limit=2"},
		{ID: "webhooks.list", Query: "limit=2"},
		{ID: "webhooks.get", Path: map[string]string{"webhook_id": d.paused}},
		{ID: "webhooks.deliveries.list", Path: map[string]string{"webhook_id": d.paused}, Query: "limit=2"},
	}
}

// writes are in an order in which each can succeed.
func (d demo) writes() []v2test.Call {
	return []v2test.Call{
		{ID: "clients.create", Body: `{"name": "Harbour Dental Group", "industry": "healthcare", "external_id": "PSA-2001"}`},
		{ID: "clients.update", Path: d.of(), Body: `{"industry": "legal", "external_id": null}`},
		{ID: "admins.invite", Path: d.of(), Body: `{"email": "it.lead@example.com", "role": "viewer"}`},
		{ID: "users.create", Path: d.of(), Body: `{"email": "maria.keller@example.com", "first_name": "Maria", "last_name": "Keller", ` +
			`"department": "Finance", "job_title": "Accountant", "preferred_language": "en", "collection_ids": ["` + d.collections[0] + `"]}`},
		{ID: "users.update", Path: map[string]string{"user_id": d.user}, Body: `{"job_title": "Head of Payroll", "manager_email": null}`},
		{ID: "overrides.remove", Path: map[string]string{"user_id": d.user, "field": "job_title"}},
		{ID: "training.assign", Path: d.of(), Body: `{"course_id": "` + d.course + `", ` +
			`"audience": {"type": "collection", "collection_id": "` + d.collections[len(d.collections)-2] + `"}, "due_on": "2026-07-31", "notify": false}`},
		{ID: "collections.create", Path: d.of(), Body: `{"name": "Night shift", "description": "Everyone who works at night"}`},
		{ID: "collections.update", Path: d.of("collection_id", d.collections[1]), Body: `{"name": "Front office", "description": null}`},
		{ID: "collections.members.add", Path: d.of("collection_id", d.collections[1]), Body: `{"user_ids": ["` + strings.Join(d.users[:2], `", "`) + `"]}`},
		{ID: "collections.members.remove", Path: d.of("collection_id", d.collections[1], "user_id", d.users[0])},
		{ID: "collections.delete", Path: d.of("collection_id", d.collections[len(d.collections)-1])},
		{ID: "frameworks.assign", Path: d.of(), Body: `{"framework_id": "soc2", "audience": {"type": "all"}, ` +
			`"modules": {"policies": true}, "dry_run": true}`},
		{ID: "frameworks.remove", Path: d.of("assignment_id", d.assignments[len(d.assignments)-1])},
		{ID: "phishing.send", Path: d.of(), Body: `{"user_ids": ["` + d.user + `"], "template_id": "` + d.template + `", "label": "Quarterly campaign", ` +
			`"send_at": "2026-06-16T09:00:00Z"}`},
		{ID: "phishing.sends.cancel", Path: d.of("result_id", d.scheduled[0])},
		{ID: "phishing.sends.cancel_many", Path: d.of(), Body: `{"result_ids": ["` + strings.Join(d.scheduled[:2], `", "`) + `", "` + d.sent[0] + `"]}`},
		{ID: "training.remind", Path: d.of(), Body: `{"user_ids": ["` + strings.Join(d.users[:2], `", "`) + `"]}`},
		{ID: "policies.remind", Path: d.of("policy_id", d.policy)},
		{ID: "exposures.resolve", Path: map[string]string{"user_id": d.exposed, "breach_name": d.breach}},
		{ID: "reports.create", Path: d.of(), Body: `{"type": "phishing_overview", "period": {"start_on": "2026-03-01", "end_on": "2026-05-31"}, "format": "pdf"}`},
		{ID: "sync.runs.create", Path: d.of()},
	}
}

// events publishes what the calls before did, and are the calls that show it.
func (d demo) events(h *v2test.Harness, e *v2test.Examples) []v2test.Call {
	h.Clock.Advance(time.Minute)
	h.Publish()
	hook := map[string]string{"webhook_id": d.webhook}
	// That of the last event: events of the demonstration that were not published before are delivered, too.
	delivery := slices.MaxFunc(e.Items("/v2/webhooks/"+d.webhook+"/deliveries"), func(a, b map[string]any) int {
		return strings.Compare(a["event_id"].(string), b["event_id"].(string))
	})["id"].(string)
	h.Exec(`UPDATE webhook_deliveries SET status = 'failed', first_try_at = $2, tries = $3 WHERE id = $1`,
		idOf[domain.DeliveryKind](h.T, delivery), h.Clock.Now(),
		`[{"at": "2026-06-15T12:01:00Z", "status_code": 503, "duration_ms": 41, "response": "try later"}]`)
	return []v2test.Call{
		{ID: "events.list", Query: "limit=2&types=user.created,user.updated&client_id=" + d.client},
		{ID: "webhooks.create", Body: `{"url": "https://hooks.example.com/reports", "events": ["report.ready", "sync.failed"], "authorization": "Bearer your-token"}`},
		{ID: "webhooks.deliveries.redeliver", Path: map[string]string{"webhook_id": d.webhook, "delivery_id": delivery}},
		{ID: "webhooks.test", Path: hook},
		{ID: "webhooks.secret", Path: hook},
		{ID: "webhooks.update", Path: hook, Body: `{"status": "paused", "description": null}`},
		{ID: "webhooks.delete", Path: hook},
	}
}
