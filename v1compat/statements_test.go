package v1compat

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/v2test"
)

// pair is a page as the two versions are asked for it.
type pair struct{ v1, v2 string }

// pages are pairs that ask for the same rows, by how many.
func pages(n int, number string, client domain.ClientID, ids, numbers string) map[string]pair {
	return map[string]pair{
		"clients":             {fmt.Sprintf("/v1/clients?limit=%d", n), fmt.Sprintf("/v2/clients?sort=created_at&limit=%d", n)},
		"clients of a list":   {fmt.Sprintf("/v1/clients?limit=%d&ids=%s", n, numbers), fmt.Sprintf("/v2/clients?sort=created_at&limit=%d&ids=%s", n, ids)},
		"users":               {fmt.Sprintf("/v1/clients/%s/users?limit=%d", number, n), fmt.Sprintf("/v2/clients/%s/users?status=active&limit=%d", client, n)},
		"users of all states": {fmt.Sprintf("/v1/clients/%s/users?status=all&limit=%d", number, n), fmt.Sprintf("/v2/clients/%s/users?limit=%d", client, n)},
		"reports":             {fmt.Sprintf("/v1/clients/%s/reports?limit=%d", number, n), fmt.Sprintf("/v2/clients/%s/reports?limit=%d", client, n)},
		"the partner":         {"/v1/partner", "/v2/partner"},
	}
}

// TestStatements: v1 takes at most three statements more than v2 for the same
// page when the registry remembers nothing, and as many for a page of 50 as for
// one of 1; with a warm registry, only the count of clients, and the look-up of
// numbers in ids that the key was not shown before.
func TestStatements(t *testing.T) {
	for _, warm := range []bool{false, true} {
		t.Run(fmt.Sprintf("warm=%v", warm), func(t *testing.T) { statements(t, warm) })
	}
}

func statements(t *testing.T, warm bool) {
	o := setup{}
	if warm {
		o.cached = 1000
	}
	s := start(t, o)
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client").ID
	number := s.number(client)
	ids, numbers := client.String(), number
	for i := range 60 {
		id := db.NewID[domain.ClientKind]()
		s.insertClient(tenant.ID, id, fmt.Sprint("client ", i), v2test.Noon)
		ids, numbers = ids+","+id.String(), numbers+","+s.number(id)
		s.insertUser(client, db.NewID[domain.UserKind](), domain.Active, v2test.Noon)
		s.insertReport(client, db.NewID[domain.ReportKind](), v2test.Noon)
	}
	if warm {
		s.watch(client)
	}
	counts := func(path string, stale bool) int {
		t.Helper()
		if stale {
			s.Exec("UPDATE clients SET summarized_at = $1", s.Clock.Now().Add(-time.Hour))
		}
		return s.Statements.During(func() { s.Get(path, tenant.Key).Want(200) })
	}
	for name := range pages(1, number, client, ids, numbers) {
		for _, stale := range []bool{false, true} {
			var last int
			for _, n := range []int{1, 50} {
				p := pages(n, number, client, ids, numbers)[name]
				s.Get(p.v1, tenant.Key).Want(200) // looks up the key, makes the summaries fresh
				v1, v2 := counts(p.v1, stale), counts(p.v2, stale)
				allowed := 3
				if warm {
					allowed = map[string]int{"clients": 1, "clients of a list": 2, "reports": 2}[name]
				}
				if v1-v2 > allowed || v1 < v2 {
					t.Errorf("%s, %d rows, stale %v: v1 takes %d statements, v2 %d", name, n, stale, v1, v2)
				}
				if n == 50 && v1 != last {
					t.Errorf("%s, stale %v: %d statements for a page of 1, %d for 50", name, stale, last, v1)
				}
				last = v1
				t.Logf("%s, %d rows, stale %v: v1 %d, v2 %d", name, n, stale, v1, v2)
			}
		}
	}
}

// TestStatementsOfLists: no more for a page of 50 rows than for one, and at most three
// more than v2.
func TestStatementsOfLists(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client").ID
	user := s.User(tenant, client, v2test.Email(0)).ID
	policy := s.addPolicy(client, domain.TenantScope, client.UUID(), true)
	for i := range 60 {
		s.insertUser(client, db.NewID[domain.UserKind](), domain.Active, noon)
		s.insertPolicy(client, db.NewID[domain.PolicyKind](), fmt.Sprint("Policy ", i), noon)
		s.mail(client, user, domain.PhishingMail, noon.Add(-time.Duration(i)*time.Minute))
		s.simulated(client, user, domain.ResultSent, noon.Add(-time.Duration(i)*time.Minute))
	}
	its, itsV2 := "/v1/clients/"+s.number(client), "/v2/clients/"+client.String()
	of, ofV2 := "/v1/users/"+user.UUID(), "/v2/users/"+user.String()
	signed := "/policies/" + s.numberOf(idmap.Policy, idmap.UUID(policy)) + "/users"
	for _, c := range []struct{ method, path, body, v2 string }{
		{"GET", its + "/policies", "", itsV2 + "/policies"},
		{"GET", its + signed, "", itsV2 + "/policies/" + policy.String() + "/users"},
		{"GET", its + "/darkweb/exposures", "", itsV2 + "/dark-web/users"},
		{"GET", of + "/training", "", ofV2 + "/training"},
		{"GET", of + "/phishing", "", itsV2 + "/phishing/results"},
		{"POST", "/v1/sentemails", `{"user_infima_id":"` + user.UUID() + `"}`, ofV2 + "/emails"},
	} {
		s.Get(c.v2, tenant.Key).Want(200)
		count := func(method, path, body string, limit int) int {
			s.Exec("UPDATE policies SET counted_until = '-infinity'") // so that its counts are made anew
			return s.Statements.During(func() { s.Do(method, fmt.Sprintf("%s?limit=%d", path, limit), tenant.Key, body).Want(200) })
		}
		one, many, base := count(c.method, c.path, c.body, 1), count(c.method, c.path, c.body, 50), count("GET", c.v2, "", 50)
		if many > one || one > base+3 {
			t.Errorf("%s: %d statements for one row, %d for 50, %d in v2", c.path, one, many, base)
		}
	}
}

// TestStatementsOfAWalk: a page costs as many statements at the end of a walk as
// after its start, and a cold jump no more than the first.
func TestStatementsOfAWalk(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	path, _, _ := crowd(s, tenant, 30)
	first := s.Statements.During(func() { s.list(path+"?limit=5", tenant.Key) })
	first = min(first, s.Statements.During(func() { s.list(path+"?limit=5", tenant.Key) }))
	for _, offset := range []int{5, 10, 15, 20, 25, 30, 7, 99} {
		n := s.Statements.During(func() { s.list(fmt.Sprintf("%s?limit=5&offset=%d", path, offset), tenant.Key) })
		if n != first {
			t.Errorf("at %d: %d statements, not %d", offset, n, first)
		}
	}
}

// TestStatementsOfGone: a request that the key's phase refuses takes the statements
// that its link needs, and no other: none where it names no number. With numbers,
// one finds their ids, and one for each kind of them whether the key reaches them;
// two find what the operation itself would have found.
func TestStatementsOfGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	s.set(s.of(s.Key), retire.Off)
	found := map[string]int{"phishing": 2, "sendphishing": 2, "sentemails": 2}
	for _, r := range s.facade.routes {
		if r.Additive {
			continue
		}
		good := s.good(r)
		s.Do(r.Method, good.path, s.Key, good.body).Want(http.StatusGone) // looks up the key
		want := found[r.ID]
		for _, name := range []string{":client_id", ":collection_id", ":policy_id", ":report_id"} {
			want += strings.Count(r.Path, name)
		}
		if strings.Contains(r.Path, ":client_id") {
			want++
		}
		if n := s.Statements.During(func() { s.Do(r.Method, good.path, s.Key, good.body).Want(http.StatusGone) }); n != want {
			t.Errorf("%s: %d statements, not %d", r.ID, n, want)
		}
	}
}

// watch lets the registry use its cache.
func (s *service) watch(client domain.ClientID) {
	go s.registry.Watch(s.T.Context(), s.Edge.Log)
	// Until the watch listens, a number that was looked up is asked for again.
	for s.Statements.During(func() { s.number(client) }) > 0 {
		runtime.Gosched()
	}
}

// TestNumbersCannotBeProbed: a request that names what is another partner's, in
// use and in the registry's cache, takes the same statements as one that names an
// unused number. Their times do not differ (decisions 5.2).
func TestNumbersCannotBeProbed(t *testing.T) {
	s := newScene(t, setup{cached: 1000})
	s.watch(s.client)
	stranger := s.service.Tenant("Stranger")
	own := s.number(s.Client(stranger, "Own").ID)
	const unused = "2147483647"

	for _, path := range []string{"/v1/clients?ids=" + s.clientNo, "/v1/clients/" + s.clientNo + "/collections", "/v1/clients/" + s.clientNo + "/policies", "/v1/clients/" + s.clientNo + "/reports"} {
		s.Get(path, s.Key).Want(200) // from now on these numbers are cached for their partner
	}
	probes := []struct{ method, path, number, body string }{
		{"GET", "/v1/clients?ids=N", s.clientNo, ""},
		{"GET", "/v1/clients?ids=" + own + ",N", s.clientNo, ""},
		{"GET", "/v1/clients?limit=1&ids=" + own + "," + own + ",N", s.clientNo, ""},
		{"GET", "/v1/clients/N/users", s.clientNo, ""},
		{"GET", "/v1/clients/N/users?status=all&offset=7", s.clientNo, ""},
		{"POST", "/v1/clients/N/users", s.clientNo, `{"email":"a@example.com"}`},
		{"GET", "/v1/clients/N/collections", s.clientNo, ""},
		{"POST", "/v1/clients/N/collections", s.clientNo, `{"name":"a"}`},
		{"GET", "/v1/clients/N/policies", s.clientNo, ""},
		{"GET", "/v1/clients/N/darkweb/exposures", s.clientNo, ""},
		{"GET", "/v1/clients/N/reports", s.clientNo, ""},
		{"GET", "/v1/clients/N/reports/" + s.report, s.clientNo, ""},
		{"GET", "/v1/clients/" + own + "/reports/N", s.report, ""},
		{"GET", "/v1/clients/" + own + "/collections/N/members", s.collection, ""},
		{"POST", "/v1/clients/" + own + "/collections/N/members", s.collection, `{"user_infima_id":"` + unusedID + `"}`},
		{"GET", "/v1/clients/" + own + "/policies/N/users", s.policy, ""},
		{"POST", "/v1/clients/" + own + "/users", s.collection, `{"email":"a@example.com","collection_id":N}`},
	}
	for _, p := range probes {
		ask := func(number string) (statements int, answer string) {
			path, body := strings.ReplaceAll(p.path, "N", number), strings.ReplaceAll(p.body, "N", number)
			statements = s.Statements.During(func() {
				got := s.Do(p.method, path, stranger.Key, body, "X-Request-Id", "same")
				answer = fmt.Sprint(got.Status, " ", string(got.Body), got.Header["Link"])
			})
			return statements, answer
		}
		ask(unused) // looks up the key
		for range 3 {
			theirs, said := ask(p.number)
			free, saidOfFree := ask(unused)
			if theirs != free || said != saidOfFree || free == 0 {
				t.Errorf("%s %s: %d statements and %s for another's number, %d and %s for an unused one", p.method, p.path, theirs, said, free, saidOfFree)
			}
		}
	}

	// Who reaches the objects is answered from the cache.
	path := "/v1/clients/" + s.clientNo + "/users"
	s.Get(path, s.Key).Want(200)
	if v1, v2 := s.Statements.During(func() { s.Get(path, s.Key) }), s.Statements.During(func() { s.Get("/v2/clients/"+s.client.String()+"/users?status=active&limit=20", s.Key) }); v1 != v2 {
		t.Errorf("v1 takes %d statements, v2 %d", v1, v2)
	}
}
