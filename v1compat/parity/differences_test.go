package parity

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestNamed: a difference names its object by both ids, tells absent from null, and calls
// two services by their addresses.
func TestNamed(t *testing.T) {
	t.Parallel()
	w := small(t)
	id := w.client.ID.String()
	name := fmt.Sprintf("client %d (%s)", w.NumberIn(idmap.Client, idmap.UUID(w.client.ID)), id)
	at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		switch {
		case strings.HasPrefix(request, "GET /v1/clients?"):
			replace(`"client_name":"Hollowbrook"`, `"client_name":null`)(a)
		case strings.Contains(request, "/v1/clients/") && strings.Contains(request, "/users?"):
			replace(`"department":"",`, "")(a)
		case strings.Contains(request, "/collections?"):
			dropFirst("items")(a)
		}
	})
	c := w.compare(at)
	_, said := compared(t, c)
	lacks(t, said, "GET /v1/clients: client_name, "+name+"\n  v1: null\n  v2: \"Hollowbrook\"\n",
		"/users: department, user 0", "\n  v1: absent\n  v2: \"\"\n", "/collections: missing row, collection ")

	c.URL, c.OldURL = w.URL, at
	r, said := compared(t, c)
	lacks(t, said, "client_name, "+name+"\n  "+at+": null\n  "+w.URL+": \"Hollowbrook\"\n")
	if !slices.Equal(r.Between, []string{at, w.URL}) {
		t.Errorf("between %v", r.Between)
	}
}

// TestAdminIsNamed: a difference in an admin is named by both ids of that admin, also of one
// that only one side has.
func TestAdminIsNamed(t *testing.T) {
	t.Parallel()
	w := small(t)
	id := db.NewID[domain.AdminKind]()
	w.Exec("INSERT INTO admins (id, partner_id, email, name, role, created_at) VALUES ($1, $2, 'ada@example.com', 'Ada Byron', 'admin', $3)",
		id, w.tenant.ID, w.Clock.Now())
	for what, change := range map[string]func(*v1test.Answer){
		"admins[0].role, ": replace(`"role":"Administrator"`, `"role":"User"`),
		"admins[0], ": func(a *v1test.Answer) {
			a.Body = regexp.MustCompile(`"admins":\[.*?\]`).ReplaceAllString(a.Body, `"admins":[]`)
		},
	} {
		at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
			if request == "GET /v1/partner" {
				change(a)
			}
		})
		_, said := compared(t, w.compare(at))
		lacks(t, said, "GET /v1/partner: "+what+"admin "+id.UUID()+" ("+id.String()+")\n")
	}
}

// TestMissingOfSample: where a sample is compared, the row that one side lacks is named,
// and not the rows behind it.
func TestMissingOfSample(t *testing.T) {
	t.Parallel()
	w := small(t)
	at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		if strings.HasPrefix(request, "GET /v2/") && strings.Contains(request, "/users?") && strings.Contains(request, "status=active") {
			dropFirst("data")(a)
		}
	})
	c := w.compare(at)
	c.Sample = 2
	r, said := compared(t, c)
	rows, totals := differences(r, users, "surplus row"), differences(r, users, "total")
	if len(rows) != 1 || len(totals) != 1 || r.Different() != 2 {
		t.Errorf("not a surplus row and a total alone:\n%s", said)
	}
}

// TestChanging: a value or a status that changes with each reading is a difference, and is
// shown. A status that was wrong once is none, and the list is compared.
func TestChanging(t *testing.T) {
	t.Parallel()
	w := small(t)
	rename := func(a *v1test.Answer, to any) {
		replace(`"client_name":"Fernhill"`, fmt.Sprintf(`"client_name":"Fern %v"`, to))(a)
	}
	fail := func(a *v1test.Answer, ok bool) {
		if !ok {
			a.Status = 500
		}
	}
	for what, tt := range map[string]struct {
		change      func(reading int64, a *v1test.Answer)
		differences int
		says        []string
	}{
		"a value":             {func(n int64, a *v1test.Answer) { rename(a, n) }, 1, []string{"still changing", `v1: "Fern `}},
		"a status":            {func(n int64, a *v1test.Answer) { fail(a, n%2 == 0) }, 1, []string{"still changing", "v1: 500"}},
		"a status at first":   {func(n int64, a *v1test.Answer) { fail(a, n != 1) }, 0, nil},
		"a status in between": {func(n int64, a *v1test.Answer) { rename(a, "x"); fail(a, n != 4) }, 1, []string{`v1: "Fern x"`}},
	} {
		var n atomic.Int64
		at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
			if strings.HasPrefix(request, "GET /v1/clients?limit=500") {
				tt.change(n.Add(1), a)
			}
		})
		r, said := compared(t, w.compare(at))
		if r.Different() != tt.differences || what != "a status" && count(r, users) == 0 {
			t.Errorf("%s: %d differences:\n%s", what, r.Different(), said)
		}
		lacks(t, said, tt.says...)
	}
}

// TestWrongStatus: a wrong status of one answer is a difference, and the rest is compared;
// also if it is the first answer of either version.
func TestWrongStatus(t *testing.T) {
	t.Parallel()
	w := small(t)
	for _, tt := range []struct {
		status    int
		path, has string
	}{
		{401, "GET /v1/clients/", "/collections?"}, {410, "GET /v1/clients/", "/collections?"},
		{503, "GET /v1/clients/", "/collections?"}, {429, "GET /v2/clients/", "/collections?"}, {500, "POST /v1/ids/exchange", ""},
		{201, "GET /v1/partner", ""}, {204, "GET /v1/partner", ""}, {500, "GET /v1/partner", ""},
		{201, "GET /v2/partner", ""}, {500, "GET /v2/partner", ""},
	} {
		at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
			if strings.HasPrefix(request, tt.path) && strings.Contains(request, tt.has) && a.Status == 200 {
				a.Status = tt.status
			}
		})
		c := w.compare(at)
		c.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		old := w.compare(w.URL)
		old.OldURL = at
		for _, c := range []Config{c, old} {
			if c.OldURL != "" && tt.path != "GET /v1/partner" {
				continue
			}
			r, said := compared(t, c)
			lacks(t, said, ": status", fmt.Sprint(": ", tt.status, "\n"))
			if strings.HasSuffix(tt.path, "/partner") {
				lacks(t, said, "GET /v1/partner: status\n")
			}
			if count(r, users) == 0 {
				t.Errorf("%+v: users are not compared", tt)
			}
		}
	}
}

// TestLinks: links of two services may differ in their host, those of one service not.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := func(address string) []byte { return []byte(`{"download_link":"https://` + address + `"}`) }
	for what, p := range map[string]struct {
		two              bool
		old, now         string
		equal, explained int
	}{
		"hosts":        {true, "a/reports/1?obj=x&sig=1", "b/reports/1?obj=x&sig=1", 1, 0},
		"signatures":   {true, "a/reports/1?obj=x&sig=1", "b/reports/1?obj=x&sig=2", 0, 1},
		"paths":        {true, "a/reports/1?obj=x&sig=1", "b/reports/2?obj=x&sig=1", 0, 0},
		"one service":  {false, "a/reports/1?obj=x&sig=1", "b/reports/1?obj=x&sig=1", 0, 0},
		"no signature": {false, "a/reports/1", "a/reports/1", 1, 0},
	} {
		f := rules{twoServices: p.two}.compare(link(p.old), link(p.now))
		if f.equal != p.equal || f.explained != p.explained || len(f.mismatches) != 1-p.equal-p.explained {
			t.Errorf("%s: %+v", what, f)
		}
	}
}

// TestLaterFields verifies that a field of v1 whose field of v2 is of a later release than the one that is served is
// explained, and that no other is. A service that does not name its release is compared with the latest.
func TestLaterFields(t *testing.T) {
	t.Parallel()
	s := v1test.Start(t, v2test.Options{Demo: true, Schema: demoSchema, Release: op.V2_3})
	for version, different := range map[string]bool{"2.3": false, "": true} {
		at := v1test.Proxy(t, s.URL, func(request string, a *v1test.Answer) {
			if request == "GET /v2/openapi.json" && version != "" {
				a.Status, a.Body = 200, `{"info":{"version":"`+version+`"}}`
			}
		})
		c := config(at, "pk_demo_all", v2test.Noon)
		c.Sample = 2
		r, said := compared(t, c)
		for operation, field := range map[string]string{
			"GET /v1/clients": "phishing_click_rate_total", users: "phishing",
			"GET /v1/clients/{client_id}/reports": "updated_at",
		} {
			if got := len(differences(r, operation, field)) > 0; got != different {
				t.Errorf("with release %q %s differs in %s: %v\n%s", version, operation, field, got, said)
			}
		}
		if !different && r.Different() > 0 {
			t.Errorf("%d differences:\n%s", r.Different(), said)
		}
	}
}
