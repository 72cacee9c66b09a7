package v1compat

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi/openapitest"
	"partnerapi/v2/v2test"
)

// TestExamples holds the files in examples to what the routes answer on the
// demonstration. A route without an example fails it: add a line to the list below.
func TestExamples(t *testing.T) {
	t.Parallel()
	recordExamples(t, start(t, setup{Options: v2test.Options{Demo: true}, cached: 1000}))
}

// recordExamples makes a call of every route.
func recordExamples(t *testing.T, s *service) *v2test.Examples {
	t.Helper()
	e := v2test.NewExamples(s.Harness, "examples", *update)
	routes := map[string]Meta{}
	for meta := range s.facade.Routes() {
		routes[meta.ID] = meta
	}
	for _, call := range s.exampleCalls(e) {
		meta, ok := routes[call.ID]
		if !ok {
			t.Fatalf("there is no route %s", call.ID)
		}
		delete(routes, call.ID)
		e.Record(t, meta.Method, "/v1"+op.Braced(meta.Path), meta.Status, call)
	}
	for id := range routes {
		t.Errorf("%s has no example", id)
	}
	e.Finish(t)
	return e
}

// exampleCalls are in an order in which each can succeed.
func (s *service) exampleCalls(e *v2test.Examples) []v2test.Call {
	client := s.number(e.Client)
	v2Path := "/v2/clients/" + e.Client.String()
	user := s.uuidAt(e, v2Path+"/users?status=active&role=finance&sort=email", 0)
	second := s.uuidAt(e, v2Path+"/users?status=active&role=finance&sort=email", 1)
	collection := s.numberAt(e, idmap.Collection, v2Path+"/collections", 0)
	leadership := s.numberAt(e, idmap.Collection, v2Path+"/collections", 1)
	policy := s.numberAt(e, idmap.Policy, v2Path+"/policies", 0)
	report := s.numberAt(e, idmap.Report, v2Path+"/reports?status=pending", 0)
	template := s.numberAt(e, idmap.Template, "/v2/phishing/templates", 0)
	s.finish(e, v2Path+"/reports?status=pending")
	s.called(e, usage.ParityAgent+"2.4", "/v1/clients?limit=1")
	s.called(e, "acme-sync/2.4", "/v1/clients?limit=1", "/v1/clients?limit=1", "/v1/clients/"+client+"/users?limit=1")

	of := func(pairs ...string) map[string]string {
		out := map[string]string{"client_id": client}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	one := map[string]string{"user_id": user}
	return []v2test.Call{
		{ID: "partner"},
		{ID: "usage"},
		{ID: "clients", Query: "limit=2"},
		{ID: "users", Path: of(), Query: "limit=2"},
		{ID: "training", Path: one, Query: "limit=3"},
		{ID: "phishing", Path: one, Query: "limit=3"},
		{ID: "collections", Path: of(), Query: "limit=2"},
		{ID: "collection-members", Path: of("collection_id", collection), Query: "limit=2"},
		{ID: "policies", Path: of(), Query: "limit=2"},
		{ID: "policy-users", Path: of("policy_id", policy), Query: "limit=2&status=signed"},
		{ID: "exposures", Path: of(), Query: "limit=2&start=2026-01-01"},
		{ID: "reports", Path: of(), Query: "limit=2"},
		{ID: "download-report", Path: of("report_id", report)},
		{ID: "sentemails", Query: "limit=2", Body: `{"user_infima_id": "` + user + `", "message_types": ["phishing", "certificate"], "start_time": "2026-04-15T00:00:00Z"}`},
		{ID: "create-client", Body: `{"company_name": "Harbour Dental Group"}`},
		{ID: "create-user", Path: of(), Body: `{"email": "maria.keller@example.com", "first_name": "Maria", "last_name": "Keller", "job_title": "Accountant", "collection_id": ` + collection + `}`},
		{ID: "update-user", Path: one, Body: `{"preferred_language": "fr-ca"}`},
		{ID: "create-collection", Path: of(), Body: `{"name": "Night shift", "description": "Everyone who works at night"}`},
		{ID: "add-collection-member", Path: of("collection_id", leadership), Body: `{"user_infima_id": "` + second + `"}`},
		{ID: "remove-collection-member", Path: of("collection_id", leadership, "user_id", second)},
		{ID: "sendphishing", Body: `{"user_id": "` + user + `", "phishing_template": ` + template + `, "send_time": "2026-06-16T09:00:00Z"}`},
		{ID: "exchange-ids", Body: `{"kind": "collection", "ids": [` + collection + `, "` + s.idAt(e, v2Path+"/collections", 1) + `", 2147483647]}`},
		{ID: "start-rehearsal", Body: `{"minutes": 10}`},
		{ID: "end-rehearsal"},
	}
}

// idAt is the id of an item of a list of version 2.
func (s *service) idAt(e *v2test.Examples, path string, i int) string {
	s.T.Helper()
	items := e.Items(path)
	if len(items) <= i {
		s.T.Fatalf("the demonstration has %d items in %s", len(items), path)
	}
	return fmt.Sprint(items[i]["id"])
}

func (s *service) uuidAt(e *v2test.Examples, path string, i int) string {
	s.T.Helper()
	id, err := domain.ParseID[domain.UserKind](s.idAt(e, path, i))
	if err != nil {
		s.T.Fatal(err)
	}
	return id.UUID()
}

// numberAt is the number of an item of a list of version 2.
func (s *service) numberAt(e *v2test.Examples, kind idmap.Kind, path string, i int) string {
	s.T.Helper()
	_, text, _ := strings.Cut(s.idAt(e, path, i), "_")
	id, err := domain.ParseID[domain.UserKind]("usr_" + text)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.numberOf(kind, idmap.UUID(id))
}

// finish makes the first report of the list ready.
func (s *service) finish(e *v2test.Examples, path string) {
	s.T.Helper()
	report, err := domain.ParseID[domain.ReportKind](s.idAt(e, path, 0))
	if err != nil {
		s.T.Fatal(err)
	}
	if _, err := reports.FinishReport(s.T.Context(), s.DB, reports.ReportLease{Client: e.Client, Report: report}, domain.ReportReady); err != nil {
		s.T.Fatal(err)
	}
}

// called makes requests with a user agent, and has them be counted.
func (s *service) called(e *v2test.Examples, agent string, paths ...string) {
	s.T.Helper()
	for _, path := range paths {
		s.Do("GET", path, e.Key, nil, "User-Agent", agent).Want(200)
	}
	if err := s.usage.Flush(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

// TestDescribed holds the document to its descriptions and examples.
func TestDescribed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	for _, announced := range []bool{false, true} {
		document, err := s.facade.document(announced)
		if err != nil {
			t.Fatal(err)
		}
		openapitest.CheckDescribed(t, document)
	}
}
