package v1compat

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// TestStatements: a list of v1 takes no more statements for a page of 50 than for one of 1, and
// at most three more than what its link leads to, when the registry remembers nothing. With a
// warm one, one to count the rows that follow, or to look up numbers in ids.
func TestStatements(t *testing.T) {
	for _, cached := range []int{0, 10_000} {
		t.Run(fmt.Sprintf("cached=%d", cached), func(t *testing.T) {
			s := newScene(t, setup{cached: cached})
			s.furnish()
			if cached > 0 {
				s.watch(s.client)
			}
			for _, r := range s.facade.routes {
				if r.operation.Meta().Scope != domain.Read || r.Additive {
					continue
				}
				s.statementsOf(t, r, "", cached > 0)
			}
			s.statementsOf(t, s.route("clients"), "&ids="+s.clientNo, cached > 0)
		})
	}
}

func (s *scene) statementsOf(t *testing.T, r *route, filter string, warm bool) {
	t.Helper()
	good := s.good(r)
	var target string
	count := func(limit int) int {
		path := fmt.Sprintf("%s?limit=%d%s", good.path, limit, filter)
		target = successorOf(t, s.Do(r.Method, path, s.Key, good.body).Want(200)) // makes summaries and counts fresh
		return s.Statements.During(func() { s.Do(r.Method, path, s.Key, good.body).Want(200) })
	}
	one, many := count(1), count(50)
	s.Get(target, s.Key).Want(200)
	v2, most := s.Statements.During(func() { s.Get(target, s.Key).Want(200) }), 3
	if _, list := r.operation.Output().FieldByName("Page"); list {
		v2-- // the horizon, which version 1 does not show
	}
	if warm {
		most = map[string]int{"clients": 1, "collections": 1}[r.ID]
	}
	if many > one || many < v2 || many > v2+most {
		t.Errorf("%s%s: %d statements for one row, %d for 50, %d in v2", r.ID, filter, one, many, v2)
	}
}

// TestStatementsOfAWalk: a page costs as many statements at the end of a walk as
// after its start, and a cold jump no more than the first.
func TestStatementsOfAWalk(t *testing.T) {
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
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
	stranger := s.service.AddPartner("Stranger")
	own := s.number(s.AddClient(stranger, "Own").ID)
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
}
