package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/v1test"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// world is a service with a small tenant.
type world struct {
	*v1test.Service
	tenant v2test.Partner
	client api.Client
}

func small(t *testing.T) *world {
	t.Helper()
	s := v1test.Start(t, v2test.Options{})
	w := &world{Service: s, tenant: s.AddPartner("Northlight")}
	w.client = s.AddClient(w.tenant, "Hollowbrook")
	s.AddClient(w.tenant, "Fernhill")
	crew := s.AddCollection(w.client.ID, "Crew")
	s.AddCollection(w.client.ID, "Staff")
	members := "/v2/clients/" + w.client.ID.String() + "/collections/" + crew.String() + "/members"
	for i := range 3 {
		u := s.AddUser(w.tenant, w.client.ID, v2test.Email(i))
		if r := w.Do("POST", members, w.tenant.Key, `{"user_ids":["`+u.ID.String()+`"]}`); r.Status >= 300 {
			t.Fatalf("%s: %d %s", members, r.Status, r.Body)
		}
	}
	for i := range 3 {
		s.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
			SELECT client_id, id, $2, $3, 'a@example.com', $4, 'smtp', 'phishing' FROM users WHERE email = $1`,
			v2test.Email(0), db.NewID[domain.MessageKind](), s.Clock.Now().Add(-time.Duration(i+1)*time.Hour), fmt.Sprint("Mail ", i))
	}
	inactive := s.AddUser(w.tenant, w.client.ID, v2test.Email(3))
	s.Do("PATCH", "/v2/users/"+inactive.ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(200)
	return w
}

// compare is a Config that compares the world's service at an address.
func (w *world) compare(url string) Config { return config(url, w.tenant.Key, w.Clock.Now()) }

// edit returns a change of the array that a body has under a name, if it has two or more
// elements.
func edit(name string, change func([]jsontext.Value) []jsontext.Value) func(*v1test.Answer) {
	return func(a *v1test.Answer) {
		var all map[string]jsontext.Value
		var list []jsontext.Value
		if json.Unmarshal([]byte(a.Body), &all) != nil || json.Unmarshal(all[name], &list) != nil || len(list) < 2 {
			return
		}
		all[name] = valueOf(change(list))
		a.Body = string(valueOf(all))
	}
}

func dropFirst(name string) func(*v1test.Answer) {
	return edit(name, func(l []jsontext.Value) []jsontext.Value { return l[1:] })
}

// status returns a change of the status of answers with a text.
func status(code int, part string) func(*v1test.Answer) {
	return func(a *v1test.Answer) {
		if strings.Contains(a.Body, part) {
			a.Status = code
		}
	}
}

const (
	users, clients = "GET /v1/clients/{client_id}/users", "GET /v1/clients"
	collections    = "GET /v1/clients/{client_id}/collections"
	mails          = "POST /v1/sentemails"
)

// replace is v1test.Replace.
var replace = v1test.Replace

// plants are changes of the answers to requests with a text, and the differences that
// must be found.
var plants = []struct {
	name, at         string
	change           func(*v1test.Answer)
	operation, field string
	v1, v2           string
}{
	{"a value of v1", "GET /v1/clients?", replace(`"client_name":"Fernhill"`, `"client_name":"Fernhil"`), clients, "client_name", `"Fernhil"`, `"Fernhill"`},
	{"a value of v2", "/v2/clients?", replace(`"on_track_rate":100`, `"on_track_rate":99.9`), clients, "training_on_track_rate", "100", "99.9"},
	{"a number", "GET /v1/clients?", replace(`"user_count":3`, `"user_count":4`), clients, "user_count", "4", "3"},
	{"a missing field of v1", "/users?", replace(`"department":""`, `"x":1`), users, "department", "", `""`},
	{"a missing field of v2", "/v2/clients?", replace(`"name":"Fernhill",`, ""), clients, "name", "", `"is missing"`},
	{"a field too many", "GET /v1/clients?", replace(`"user_count":3`, `"user_count":3,"plan":"gold"`), clients, "plan", `"gold"`, ""},
	{"a missing object of v1", "/collections?", dropFirst("items"), collections, "missing row", "", "Crew"},
	{"a missing object of v2", "/collections?", dropFirst("data"), collections, "surplus row", "Crew", ""},
	{"an object twice", "/collections?", edit("items", func(l []jsontext.Value) []jsontext.Value { return append(l, l[0]) }), collections, "surplus row", "Crew", ""},
	{"a missing mail of v1", mails, func(a *v1test.Answer) {
		dropFirst("items")(a)
		replace(`"total":3`, `"total":2`)(a)
	}, mails, "missing row", "", "Mail 0"},
	{"a missing mail of v2", "/emails?", dropFirst("data"), mails, "surplus row", "Mail 0", ""},
	{"another order", "/collections?", edit("data", func(l []jsontext.Value) []jsontext.Value {
		slices.Reverse(l)
		return l
	}), collections, "order", "before", "before"},
	{"v1's order", "/collections?", replace(`"created_date":"2026-06-15T12:00:00Z"`, `"created_date":"2027-06-15T12:00:00Z"`), collections, "order", "after", ""},
	{"a type of v1", "GET /v1/clients?", replace(`"user_count":3`, `"user_count":"3"`), clients, "user_count", `"3"`, "3"},
	{"a type of a field that was given up", "GET /v1/clients?", replace(`"phishing_click_rate_total":0`, `"phishing_click_rate_total":"0"`), clients, "phishing_click_rate_total", `"0"`, "0"},
	{"a type of v2", "/v2/clients?", replace(`"active":3`, `"active":"3"`), clients, "users.active", "", "cannot be read"},
	{"a total", "/collections?", replace(`"total":2`, `"total":3`), collections, "total", "3", "2"},
	{"a limit", "GET /v1/clients?", replace(`"limit":50`, `"limit":20`), clients, "limit", "20", "50"},
	{"an offset", "GET /v1/clients?", replace(`"offset":0`, `"offset":1`), clients, "offset", "1", "0"},
	{"a status of v1", "GET /v1/clients/", status(500, "Crew"), collections, "status", "500", "200"},
	{"a status of v2", "GET /v2/clients/", status(500, "Crew"), collections, "status", "200", "500"},
	{"a status of an error", "/v1/clients?limit=x", status(422, ""), clients, "status", "422", "400"},
	{"an error's code", "/v1/clients?limit=x", replace("invalid_request", "bad_request"), clients, "error", "bad_request", "invalid_request"},
	{"an error's form", "/v1/clients?limit=x", replace(`"status":400`, `"status":401`), clients, "body.status", "401", "400"},
	{"a header of v1", "GET /v1/clients?", func(a *v1test.Answer) { a.Header.Del("X-RateLimit-Reset") }, clients, "X-RateLimit-Reset", `""`, "a number"},
	{"a header of v2", "GET /v2/clients?", func(a *v1test.Answer) { a.Header.Set("X-Request-Id", "another") }, clients, "X-Request-Id", "parity-", "another"},
}

// TestPlanted: a difference of each kind is found, and named by operation, field and
// request.
func TestPlanted(t *testing.T) {
	t.Parallel()
	w := small(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
				if strings.Contains(request, p.at) && (a.Status == 200 || a.Status == 400) {
					p.change(a)
				}
			})
			r, said := compared(t, w.compare(at))
			if !slices.ContainsFunc(differences(r, p.operation, p.field), func(d Difference) bool {
				return (p.v1 == "") == (d.V1 == nil) && (p.v2 == "") == (d.V2 == nil) &&
					strings.Contains(string(d.V1), p.v1) && strings.Contains(string(d.V2), p.v2) &&
					strings.Contains(d.Request, at) && strings.Contains(d.Request, "$KEY") && !strings.Contains(d.Request, w.tenant.Key)
			}) {
				t.Errorf("%s of %s is not found:\n%s", p.field, p.operation, said)
			}
			rows := len(differences(r, mails, "missing row")) + len(differences(r, mails, "surplus row"))
			if p.operation == mails && rows != 1 {
				t.Errorf("%d rows are missing or surplus", rows)
			}
			if o := r.Operations[0]; o.Operation != p.operation && o.Different > 0 {
				t.Errorf("%s differs too: %v", o.Operation, o.Differences)
			}
		})
	}
}

// TestOld: two services' v1 are compared by every byte of their items, except what may
// differ.
func TestOld(t *testing.T) {
	t.Parallel()
	w := small(t)
	c := w.compare(w.URL)
	c.OldURL = w.URL
	same(t, c)
	replaceAll := func(old, new string) func(*v1test.Answer) {
		return func(a *v1test.Answer) { a.Body = strings.ReplaceAll(a.Body, old, new) }
	}
	for _, p := range []struct {
		name, at         string
		change           func(*v1test.Answer)
		operation, field string
		tolerate         string
	}{
		{"a value", "/v1/clients?", replaceAll(`"client_name":"Fernhill"`, `"client_name":"Fern"`), clients, "client_name", "client_name"},
		{"a date's precision", "/v1/clients?", replaceAll(`"created_date":"2026-06-15T12:00:00Z"`, `"created_date":"2026-06-15T12:00:00.1Z"`), clients, "created_date", "created_date"},
		{"a number's form", "/v1/clients?", replaceAll(`"phishing_click_rate_total":0`, `"phishing_click_rate_total":0.0`), clients, "phishing_click_rate_total", "phishing_click_rate_total"},
		{"a field less", "/users?", replaceAll(`"department":"",`, ``), users, "department", "department"},
		{"a total", "/collections?", replaceAll(`"total":2`, `"total":5`), collections, "total", ""},
		{"an error", "/v1/clients?limit=x", replaceAll(`"error":"invalid_request"`, `"error":"bad"`), clients, "error", "error"},
		{"a header", "/v1/partner", func(a *v1test.Answer) { a.Header.Set("Content-Type", "text/json") }, "GET /v1/partner", "Content-Type", "content-type"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := c
			c.OldURL = v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
				if strings.Contains(request, p.at) {
					p.change(a)
				}
			})
			r, said := compared(t, c)
			if found := differences(r, p.operation, p.field); len(found) == 0 ||
				!strings.Contains(found[0].Request, "$V1_KEY") || !strings.Contains(found[0].Request, c.OldURL) {
				t.Errorf("%s of %s is not found:\n%s", p.field, p.operation, said)
			}
			if p.tolerate != "" {
				c.Tolerate = []string{p.tolerate}
				same(t, c)
			}
		})
	}
}
