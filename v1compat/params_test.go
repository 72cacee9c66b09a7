package v1compat

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestUUIDsInAnyCase: every route that takes a UUID takes it in any case
// (decisions 1.3).
func TestUUIDsInAnyCase(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	tried := 0
	for _, r := range s.facade.routes {
		good := s.good(r)
		if path, body := uuid.ReplaceAllStringFunc(good.path, strings.ToUpper), uuid.ReplaceAllStringFunc(good.body, strings.ToUpper); path+body != good.path+good.body {
			s.Do(r.Method, path, s.Key, body).Want(r.Status)
			tried++
		}
	}
	if tried != 7 {
		t.Errorf("%d routes take a UUID", tried)
	}
}

// fill adds clients, each a minute after the one before, and returns the
// numbers, oldest first.
func fill(s *service, t v2test.Partner, n int) []string {
	numbers := make([]string, n)
	for i := range numbers {
		id := db.NewID[domain.ClientKind]()
		s.insertClient(t.ID, id, fmt.Sprintf("client %03d", n-i), v2test.Noon.AddDate(0, 0, i-n))
		numbers[i] = s.number(id)
	}
	return numbers
}

// TestIDs: a list of integers, comma-separated or repeated (decisions 5.4, 5.8).
func TestIDs(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, other := s.AddPartner("Partner"), s.AddPartner("Other")
	n := fill(s, tenant, 6)
	foreign := fill(s, other, 1)[0]
	s.Exec("UPDATE clients SET archived_at = now() WHERE name = 'client 001'") // n[5]
	s.CountClients()
	many := strings.Repeat(","+n[0], 499)[1:]
	for query, want := range map[string][]string{
		"":                                      n[:5],
		"?ids=":                                 {},
		"?ids=,":                                {},
		"?ids=" + n[2]:                          n[2:3],
		"?ids=" + n[2] + "," + n[0]:             {n[0], n[2]},
		"?ids=" + n[2] + "&ids=" + n[0]:         {n[0], n[2]},
		"?ids=" + n[2] + "&ids=" + n[0] + ",":   {n[0], n[2]},
		"?ids=" + n[1] + "," + n[1]:             n[1:2],
		"?ids=" + foreign + "," + n[5]:          {},
		"?ids=" + n[4] + ",2147483647":          n[4:5],
		"?ids=" + many + "," + n[1]:             n[:2],
		"?ids=" + n[0] + "," + n[1] + "&x=%2C1": n[:2],
		"?ids[]=" + n[2] + "&ids[]=" + n[0]:     {n[0], n[2]},
		"?ids[0]=" + n[2] + "&ids[1]=" + n[0]:   {n[0], n[2]},
		"?ids%5B%5D=" + n[2] + "&ids=" + n[0]:   {n[0], n[2]},
		"?ids[]=":                               {},
		"?ids[a]=" + n[0]:                       n[:5], // ignored, as any unknown parameter
		"?limit[]=1&offset[0]=3":                n[:5],
	} {
		p := s.list("/v1/clients"+query, tenant.Key)
		got := []string{}
		for _, item := range p.Items {
			got = append(got, fmt.Sprint(item["id"]))
		}
		if !slices.Equal(got, want) || p.Total != len(want) {
			t.Errorf("%.40s: %v of %d, not %v", query, got, p.Total, want)
		}
	}
	for _, bad := range []string{
		"x", "1.0", "1e3", "1,x", "1%3B2", "cli_01jhz5q7rgec7t3vfd9w8x2k4m", "0x1", "1%002", "%FF",
		"0", "-3", "007", "+7", "%2B7", "1,%202", "-0", "2147483648", "1,99999999999999999999", "&ids[]=x", "&ids[0]=1.0", many + "," + many, many + ",1&ids=1",
	} {
		if _, err := clientsPage("ids=" + bad); !strings.HasPrefix(fmt.Sprint(err), "invalid_request: ids ") {
			t.Errorf("ids=%.40s: %v", bad, err)
		}
	}
}

// TestIntegersWithFractions verifies that an integer of a body may have a fraction of zero, as in JSON Schema.
func TestIntegersWithFractions(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	s.Do("POST", "/v1/clients/"+s.clientNo+"/users", s.Key, `{"email":"new@example.com","collection_id":`+s.collection+`.0}`).Want(201)
	s.Do("POST", "/v1/sendphishing", s.Key, `{"user_id":"`+s.user+`","phishing_template":`+s.template+`e0}`).Want(s.route("sendphishing").Status)
	s.Do("POST", "/v1/rehearsal", s.Key, `{"minutes":1.0}`).Want(200)
}

// clientsPage is the page of clients that a query asks for.
func clientsPage(query string) (pageRequest, error) {
	input := op.Describe(reflect.TypeFor[listClients]())
	in := input.New()
	values, err := url.ParseQuery(query)
	if err == nil {
		err = input.Bind(in, op.Request{Query: values, Lenient: true})
	}
	if err != nil {
		return pageRequest{}, err
	}
	return pageOf(in)
}

// TestWindow: limit is moved to its bounds; offset is refused below 0 (decisions 5.5). The
// bounds of each list are in the guide's tables of fields.
func TestWindow(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]pageRequest{
		"":                             {20, 0},
		"limit=&offset=&status=":       {20, 0},
		"limit=1":                      {1, 0},
		"limit=50":                     {50, 0},
		"limit=51":                     {50, 0},
		"limit=99999999999999999999":   {50, 0},
		"limit=0":                      {1, 0},
		"limit=-1":                     {1, 0},
		"limit=-99999999999999999999":  {1, 0},
		"offset=2":                     {20, 2},
		"offset=1000&limit=5":          {5, 1000},
		"offset=9223372036854775807":   {20, 9223372036854775807},
		"offset=0&status=active&foo=1": {20, 0},
	} {
		if got, err := clientsPage(query); err != nil || got != want {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
	for _, bad := range []string{
		"limit=x", "limit=1.5", "limit=1e1", "limit=%00", "limit=99999999999999999999x",
		"offset=-1", "offset=x", "offset=1.0", "offset=-99999999999999999999",
	} {
		field, _, _ := strings.Cut(bad, "=")
		if _, err := clientsPage(bad); !strings.HasPrefix(fmt.Sprint(err), "invalid_request: "+field+" ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
