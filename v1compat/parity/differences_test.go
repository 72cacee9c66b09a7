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
)

// compared compares through a proxy, and wants the comparison to come to its end.
func compared(t *testing.T, c Config) (*Report, string) {
	t.Helper()
	r, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// TestNamed: a difference names its object by both ids, tells absent from null, and calls
// two services by their addresses.
func TestNamed(t *testing.T) {
	t.Parallel()
	w := small(t)
	id := w.client.ID.String()
	name := fmt.Sprintf("client %d (%s)", w.NumberIn(idmap.Client, idmap.UUID(w.client.ID)), id)
	at := proxy(t, w.URL, func(request string, a *answered) {
		switch {
		case strings.HasPrefix(request, "GET /v1/clients?"):
			change(`"client_name":"Hollowbrook"`, `"client_name":null`)(a)
		case strings.Contains(request, "/v1/clients/") && strings.Contains(request, "/users?"):
			change(`"department":"",`, "")(a)
		case strings.Contains(request, "/collections?"):
			a.body = dropFirst(a.body, "items")
		}
	})
	c := config(at, w.tenant.Key, w.Clock.Now())
	_, said := compared(t, c)
	for _, want := range []string{
		"GET /v1/clients: client_name, " + name + "\n  v1: null\n  v2: \"Hollowbrook\"\n",
		"/users: department, user 0", "\n  v1: absent\n  v2: \"\"\n", "/collections: missing row, collection ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("lacks %q:\n%s", want, said)
		}
	}

	c.URL, c.OldURL = w.URL, at
	r, said := compared(t, c)
	if want := "client_name, " + name + "\n  " + at + ": null\n  " + w.URL + ": \"Hollowbrook\"\n"; !strings.Contains(said, want) {
		t.Errorf("lacks %q:\n%s", want, said)
	}
	if !slices.Equal(r.Between, []string{at, w.URL}) {
		t.Errorf("between %v", r.Between)
	}
}

// TestMissingOfSample: where a sample is compared, the row that one side lacks is named,
// and not the rows behind it.
func TestMissingOfSample(t *testing.T) {
	t.Parallel()
	w := small(t)
	at := proxy(t, w.URL, func(request string, a *answered) {
		if strings.HasPrefix(request, "GET /v2/") && strings.Contains(request, "/users?") && strings.Contains(request, "status=active") {
			a.body = dropFirst(a.body, "data")
		}
	})
	c := config(at, w.tenant.Key, w.Clock.Now())
	c.Sample = 2
	r, said := compared(t, c)
	i := slices.IndexFunc(r.Operations, func(o *Operation) bool { return o.Operation == users })
	if fields := fieldsOf(r.Operations[i]); !slices.Equal(fields, []string{"surplus row", "total"}) {
		t.Errorf("%v:\n%s", fields, said)
	}
}

func fieldsOf(o *Operation) (fields []string) {
	for _, d := range o.Differences {
		fields = append(fields, d.Field)
	}
	slices.Sort(fields)
	return fields
}

// TestNeverSettled: a value that is another one each time is a difference, and is shown.
func TestNeverSettled(t *testing.T) {
	t.Parallel()
	w := small(t)
	var n atomic.Int64
	at := proxy(t, w.URL, func(request string, a *answered) {
		if strings.HasPrefix(request, "GET /v1/clients?") {
			change(`"client_name":"Fernhill"`, fmt.Sprintf(`"client_name":"Fern %d"`, n.Add(1)))(a)
		}
	})
	r, said := compared(t, config(at, w.tenant.Key, w.Clock.Now()))
	if r.Different() != 1 || !strings.Contains(said, "still changing") || !strings.Contains(said, `"Fern `) {
		t.Errorf("%d differences:\n%s", r.Different(), said)
	}
}

// TestWrongStatus: a wrong status of one answer is a difference, and the rest is compared.
func TestWrongStatus(t *testing.T) {
	t.Parallel()
	w := small(t)
	for status, path := range map[int]string{
		401: "GET /v1/clients/", 410: "GET /v1/clients/", 503: "GET /v1/clients/", 429: "GET /v2/clients/", 500: "POST /v1/ids/exchange",
	} {
		at := proxy(t, w.URL, func(request string, a *answered) {
			if strings.HasPrefix(request, path) && (strings.Contains(request, "/collections?") || status == 500) {
				a.status = status
			}
		})
		c := config(at, w.tenant.Key, w.Clock.Now())
		c.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		r, said := compared(t, c)
		if !strings.Contains(said, ": status") || !strings.Contains(said, fmt.Sprint(": ", status, "\n")) {
			t.Errorf("%d is not found:\n%s", status, said)
		}
		if !slices.ContainsFunc(r.Operations, func(o *Operation) bool { return o.Operation == users && o.Compared > 0 }) {
			t.Errorf("%d: users are not compared", status)
		}
	}
}

// TestFirstStatus: a wrong status of the first answer of either version is a difference, and
// the rest is compared.
func TestFirstStatus(t *testing.T) {
	t.Parallel()
	w := small(t)
	for _, tt := range []struct {
		path   string
		status int
	}{{"/v1/partner", 201}, {"/v1/partner", 204}, {"/v1/partner", 500}, {"/v2/partner", 201}, {"/v2/partner", 500}} {
		at := proxy(t, w.URL, func(request string, a *answered) {
			if request == "GET "+tt.path && a.status == 200 {
				a.status = tt.status
			}
		})
		one, two := config(at, w.tenant.Key, w.Clock.Now()), config(w.URL, w.tenant.Key, w.Clock.Now())
		two.OldURL = at
		for _, c := range []Config{one, two} {
			if c.OldURL != "" && tt.path == "/v2/partner" {
				continue // which is not asked for
			}
			r, said := compared(t, c)
			if !strings.Contains(said, "GET /v1/partner: status\n") {
				t.Errorf("%+v is not found:\n%s", tt, said)
			}
			if !slices.ContainsFunc(r.Operations, func(o *Operation) bool { return o.Operation == users && o.Compared > 0 }) {
				t.Errorf("%+v: users are not compared", tt)
			}
		}
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
	for what, meddle := range map[string]func(*answered){
		"admins[0].role, ": change(`"role":"Administrator"`, `"role":"User"`),
		"admins[0], ": func(a *answered) {
			a.body = regexp.MustCompile(`"admins":\[.*?\]`).ReplaceAllString(a.body, `"admins":[]`)
		},
	} {
		at := proxy(t, w.URL, func(request string, a *answered) {
			if request == "GET /v1/partner" {
				meddle(a)
			}
		})
		_, said := compared(t, config(at, w.tenant.Key, w.Clock.Now()))
		if want := "GET /v1/partner: " + what + "admin " + id.UUID() + " (" + id.String() + ")\n"; !strings.Contains(said, want) {
			t.Errorf("lacks %q:\n%s", want, said)
		}
	}
}

// TestLinks: links of two services may differ in their host, those of one service not.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := func(host, rest string) []byte { return []byte(`{"download_link":"https://` + host + rest + `"}`) }
	for what, p := range map[string]struct {
		apart            bool
		old, now         []byte
		equal, explained int
	}{
		"hosts":        {true, link("a", "/reports/1?obj=x&sig=1"), link("b", "/reports/1?obj=x&sig=1"), 1, 0},
		"signatures":   {true, link("a", "/reports/1?obj=x&sig=1"), link("b", "/reports/1?obj=x&sig=2"), 0, 1},
		"paths":        {true, link("a", "/reports/1?obj=x&sig=1"), link("b", "/reports/2?obj=x&sig=1"), 0, 0},
		"one service":  {false, link("a", "/reports/1?obj=x&sig=1"), link("b", "/reports/1?obj=x&sig=1"), 0, 0},
		"no signature": {false, link("a", "/reports/1"), link("a", "/reports/1"), 1, 0},
	} {
		v := rules{apart: p.apart}.compare(p.old, p.now)
		if v.equal != p.equal || v.explained != p.explained || len(v.faults) != 1-p.equal-p.explained {
			t.Errorf("%s: %+v", what, v)
		}
	}
}
