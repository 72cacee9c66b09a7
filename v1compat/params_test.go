package v1compat

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestPathIntegers: canonical decimals (decisions 5.4).
func TestPathIntegers(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	s.Client(tenant, "Client")
	for _, bad := range []string{
		"0", "-1", "007", "+7", "%2B7", "7.0", "1e3", "0x7", "1_0", "%207", "7%20", "seven", "2147483648", "9223372036854775808",
		"99999999999999999999", "cli_01jhz5q7rgec7t3vfd9w8x2k4m", "%00", "%FF", "1%2F2", "１",
	} {
		for _, method := range []string{"GET", "POST"} {
			r := s.Do(method, "/v1/clients/"+bad+"/users", tenant.Key, `{"email":"a@example.com"}`).Want(400)
			if message, _ := r.Field("message").(string); !strings.HasPrefix(message, "client_id ") {
				t.Errorf("%s %s: %s", method, bad, r.Body)
			}
		}
	}
	s.Get("/v1/clients/2147483647/users", tenant.Key).Want(403)
	s.Get("/v1/clients/1/users", tenant.Key).Want(200)
}

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
func fill(s *service, t v2test.Tenant, n int) []string {
	numbers := make([]string, n)
	for i := range numbers {
		id := db.NewID[domain.ClientKind]()
		s.insertClient(t.ID, id, fmt.Sprintf("client %03d", n-i), v2test.Noon.AddDate(0, 0, i-n))
		numbers[i] = s.number(id)
	}
	return numbers
}

// TestIDs: a list of integers, comma-separated or repeated (decisions 5.5, 5.8).
func TestIDs(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, other := s.Tenant("Partner"), s.Tenant("Other")
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
		"0", "-3", "007", "+7", "%2B7", "1,%202", "-0", "2147483648", "1,99999999999999999999", many + "," + many, many + ",1&ids=1",
	} {
		r := s.Get("/v1/clients?ids="+bad, tenant.Key)
		if message, _ := r.Field("message").(string); r.Status != 400 || !strings.HasPrefix(message, "ids ") {
			t.Errorf("ids=%.40s: %d %.200s", bad, r.Status, r.Body)
		}
	}
}

// TestWindow: limit is moved to its bounds; offset is refused below 0
// (decisions 5.5).
func TestWindow(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	n := fill(s, tenant, 3)
	client, err := domain.ParseID[domain.ClientKind](s.Get("/v2/clients?q=client+003", tenant.Key).JSON()["data"].([]any)[0].(map[string]any)["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for range 55 {
		s.insertUser(client, db.NewID[domain.UserKind](), domain.Active, v2test.Noon)
	}
	for _, path := range []string{"/v1/clients", "/v1/clients/" + n[0] + "/users"} {
		total := 3
		if strings.HasSuffix(path, "users") {
			total = 55
		}
		for query, want := range map[string][2]int{ // limit and offset
			"":                             {20, 0},
			"limit=&offset=":               {20, 0},
			"limit=1":                      {1, 0},
			"limit=50":                     {50, 0},
			"limit=51":                     {50, 0},
			"limit=2147483648":             {50, 0},
			"limit=99999999999999999999":   {50, 0},
			"limit=0":                      {1, 0},
			"limit=-1":                     {1, 0},
			"limit=-99999999999999999999":  {1, 0},
			"offset=2":                     {20, 2},
			"offset=55":                    {20, 55},
			"offset=1000&limit=5":          {5, 1000},
			"offset=2147483648":            {20, 2147483648},
			"offset=4294967296":            {20, 4294967296},
			"offset=9223372036854775807":   {20, 9223372036854775807},
			"offset=0&status=active&foo=1": {20, 0},
			"limit=&offset=&status=":       {20, 0},
		} {
			p := s.list(path+"?"+query, tenant.Key)
			items := max(0, min(want[0], total-want[1]))
			if p.Limit != want[0] || p.Offset != want[1] || p.Total != total || len(p.Items) != items {
				t.Errorf("%s?%s: limit %d, offset %d, total %d, %d items", path, query, p.Limit, p.Offset, p.Total, len(p.Items))
			}
		}
		for _, bad := range []string{
			"limit=x", "limit=1.5", "limit=1e1", "limit=%00", "limit=99999999999999999999x",
			"offset=-1", "offset=x", "offset=1.0", "offset=-99999999999999999999",
		} {
			field, _, _ := strings.Cut(bad, "=")
			r := s.Get(path+"?"+bad, tenant.Key)
			if message, _ := r.Field("message").(string); r.Status != 400 || !strings.HasPrefix(message, field+" ") {
				t.Errorf("%s?%s: %d %s", path, bad, r.Status, r.Body)
			}
		}
	}
}
