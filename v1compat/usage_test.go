package v1compat

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// used is what a key reads of its own use.
func (s *service) used(key string, query ...string) []map[string]any {
	s.T.Helper()
	if err := s.usage.Flush(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
	var got struct{ Items []map[string]any }
	s.Get("/v1/usage"+strings.Join(query, ""), key).Want(http.StatusOK).Into(&got)
	return got.Items
}

// brief is items as text: day, operation, calls and failures.
func brief(items []map[string]any) (lines []string) {
	for _, i := range items {
		lines = append(lines, fmt.Sprint(i["day"], " ", i["operation"], " ", i["calls"], "/", i["failures"]))
	}
	return lines
}

// TestUsage: a key reads what it called of version 1, and when, and with what.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	users := "/v1/clients/" + s.number(s.AddClient(tenant, "Client").ID) + "/users"
	if got := s.used(tenant.Key); len(got) != 0 { // it called version 2 so far
		t.Errorf("at first %v", got)
	}
	s.Do("GET", "/v1/clients", tenant.Key, nil, "User-Agent", "a/1").Want(200)
	s.Clock.Advance(time.Second)
	s.Do("HEAD", "/v1/clients?limit=1", tenant.Key, nil, "User-Agent", "b/1").Want(200)
	s.Do("GET", "/v1/clients?limit=x", tenant.Key, nil, "User-Agent", "a/1").Want(400)
	s.Get(users, tenant.Key).Want(200)
	s.Get("/v1/clients/2147483647/users", tenant.Key).Want(403)
	for _, uncounted := range []string{"/v1/nothing", "/v1/clients/", "/v1/openapi.yaml", "/v2/clients", "/v2/partner", "/v1/usage"} {
		s.Get(uncounted, tenant.Key)
	}
	s.Get("/v1/clients", "").Want(401)
	s.Get("/v1/clients", "pk_wrong").Want(401)

	items := s.used(tenant.Key)
	want := []string{"2026-06-15 GET /v1/clients 3/1", "2026-06-15 GET /v1/clients/{client_id}/users 2/1"}
	if got := brief(items); !slices.Equal(got, want) {
		t.Fatalf("used %q, not %q", got, want)
	}
	delete(items[0], "user_agents")
	if first := fmt.Sprint(items[0]); first != "map[calls:3 day:2026-06-15 failures:1 first_at:2026-06-15T12:00:00Z last_at:2026-06-15T12:00:01Z "+
		"operation:GET /v1/clients successor:GET /v2/clients]" {
		t.Errorf("the first is %s", first)
	}
	if agents := fmt.Sprint(s.used(tenant.Key)[0]["user_agents"]); agents != "[a/1 b/1]" {
		t.Errorf("agents %s", agents)
	}

	s.Clock.Advance(24 * time.Hour)
	s.Get("/v1/partner", tenant.Key).Want(200)
	today := "2026-06-16 GET /v1/partner 1/0"
	if got := brief(s.used(tenant.Key)); !slices.Equal(got, append([]string{today}, want...)) {
		t.Errorf("the next day %q", got)
	}
	if got := brief(s.used(tenant.Key, "?days=1")); !slices.Equal(got, []string{today}) {
		t.Errorf("of one day %q", got)
	}
	s.Clock.Advance(399 * 24 * time.Hour)
	if got := brief(s.used(tenant.Key)); !slices.Equal(got, []string{today}) {
		t.Errorf("after 400 days %q", got)
	}

	s.facade.Usage = nil
	if got := string(s.Get("/v1/usage", tenant.Key).Want(200).Body); got != `{"items":[],"parity":[]}` {
		t.Errorf("without a counter %s", got)
	}
}

// TestUsageByParity verifies that calls by parity are listed apart from the others.
func TestUsageByParity(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	s.Get("/v1/clients", tenant.Key).Want(200)
	for _, path := range []string{"/v1/clients", "/v1/partner", "/v2/clients"} {
		s.Do("GET", path, tenant.Key, nil, "User-Agent", usage.ParityAgent+"2.4").Want(200)
	}
	if got := brief(s.used(tenant.Key)); !slices.Equal(got, []string{"2026-06-15 GET /v1/clients 1/0"}) {
		t.Errorf("got items %q, want the first call alone", got)
	}
	var got struct{ Parity []map[string]any }
	s.Get("/v1/usage", tenant.Key).Want(200).Into(&got)
	want := []string{"2026-06-15 GET /v1/clients 1/0", "2026-06-15 GET /v1/partner 1/0"}
	if parity := brief(got.Parity); !slices.Equal(parity, want) || got.Parity[0]["successor"] != "GET /v2/clients" {
		t.Errorf("got %v by parity, want %q", got.Parity, want)
	}
}

// TestUsageOfOthers: no key sees what another key called, not even of the same partner;
// and reading needs the scope.
func TestUsageOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, stranger := s.AddPartner("Partner"), s.AddPartner("Stranger")
	colleague := s.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	writer := s.AddKey(tenant, []domain.Scope{domain.Write}, nil)
	s.Get("/v1/clients", tenant.Key).Want(200)
	for _, key := range []string{colleague, stranger.Key} {
		if got := s.used(key); len(got) != 0 {
			t.Errorf("sees %v", got)
		}
	}
	if got := s.used(tenant.Key); len(got) != 1 {
		t.Errorf("sees of its own %v", got)
	}
	envelope(t, "no scope", s.Get("/v1/usage", writer), 403, domain.Forbidden, "this key lacks the scope read")
	s.Get("/v1/clients", writer).Want(403) // which is a call that failed
}

// TestCounted: every operation of version 1 is counted, whatever it answers, and what
// follows it of version 2, which no key is shown; nothing else is.
func TestCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	for _, r := range s.facade.routes {
		good := s.good(r)
		s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
		s.Do(r.Method, good.path+"?x=%", s.Key, good.body).Want(400)
	}
	for _, path := range []string{"/v2/clients", "/v2/clients?limit=x", "/v2/webhooks", "/v2/nothing"} {
		s.Get(path, s.Key)
	}
	want := map[string]bool{}
	for own, next := range s.facade.Successors() {
		want[own], want[next] = true, true
	}
	for _, item := range s.used(s.Key) {
		if s.facade.Successors()[item["operation"].(string)] == "" {
			t.Errorf("shows %v", item)
		}
	}
	rows, err := usage.ReadRows(t.Context(), s.DB, domain.DateOf(s.Clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range rows {
		got[r.Operation] = true
		if r.Surface == usage.V1 && (r.Calls != 2 || r.Failures != 1 || s.facade.Successors()[r.Operation] == "") {
			t.Errorf("counted %+v", r)
		}
		if r.Operation == "GET /v2/clients" && (r.Calls != 2 || r.Failures != 1) {
			t.Errorf("counted %+v", r)
		}
		if !want[r.Operation] {
			t.Errorf("%s is counted", r.Operation)
		}
	}
	for _, operation := range append(slices.Collect(maps.Keys(s.facade.Successors())), "GET /v2/clients") {
		if !got[operation] {
			t.Errorf("%s is not counted", operation)
		}
	}
	if len(s.facade.Successors()) != 20 {
		t.Errorf("%d successors", len(s.facade.Successors()))
	}
}

// TestCountsOfRefusals: what the budget refuses is counted, and a caller who does not
// wait for the answer (499) made a call that failed.
func TestCountsOfRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Options: v2test.Options{Limits: ginop.Limits{PerKey: 2, PerAddress: 9, PerClientFactor: 1}}})
	tenant := s.AddPartner("Partner")
	for _, status := range []int{200, 200, 429} {
		s.Get("/v1/partner", tenant.Key).Want(status)
	}
	var caller domain.Caller
	caller.Key = domain.KeyID{15: 9}
	for _, status := range []int{499, 410, 302, 200} {
		s.facade.count(ginop.Answered{Surface: "v1", Operation: "partner", Caller: &caller, Status: status})
	}
	s.facade.count(ginop.Answered{Surface: "v1", Operation: "partner", Status: 200})
	if err := s.usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := usage.ReadRows(t.Context(), s.DB, domain.DateOf(s.Clock.Now()))
	var counts []string
	for _, r := range rows {
		counts = append(counts, fmt.Sprint(r.Calls, "/", r.Failures))
	}
	slices.Sort(counts)
	if err != nil || !slices.Equal(counts, []string{"3/1", "4/2"}) {
		t.Errorf("counted %v (%v)", counts, err)
	}
}

// TestStatementsOfUsage: one, and the counting takes none.
func TestStatementsOfUsage(t *testing.T) {
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	before := s.Statements.During(func() { s.Get("/v1/usage", tenant.Key).Want(200) })
	for range 3 {
		s.Get("/v1/partner", tenant.Key).Want(200)
		s.Get("/v1/clients", tenant.Key).Want(200)
	}
	if got := s.used(tenant.Key); len(got) != 2 {
		t.Fatal(got)
	}
	if n := s.Statements.During(func() { s.Get("/v1/usage", tenant.Key).Want(200) }); n != 1 || before > 2 { // with the key's
		t.Errorf("%d statements, %d at first", n, before)
	}
}
