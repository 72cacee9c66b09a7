package parity

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/v1test"
	v2 "partnerapi/v2"
	"partnerapi/v2/v2test"
)

// world is a service with a small tenant.
type world struct {
	*v1test.Service
	tenant v2test.Tenant
	client v2.Client
}

func small(t *testing.T) *world {
	t.Helper()
	s := v1test.Start(t, v2test.Options{})
	w := &world{Service: s, tenant: s.Tenant("Northlight")}
	w.client = s.Client(w.tenant, "Hollowbrook")
	s.Client(w.tenant, "Fernhill")
	crew := s.Collection(w.client.ID, "Crew")
	s.Collection(w.client.ID, "Staff")
	for i := range 3 {
		u := s.User(w.tenant, w.client.ID, v2test.Email(i))
		w.post("/v2/clients/"+w.client.ID.String()+"/collections/"+crew.String()+"/members", `{"user_ids":["`+u.ID.String()+`"]}`)
	}
	for i := range 3 {
		s.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
			SELECT client_id, id, $2, $3, 'a@example.com', $4, 'smtp', 'phishing' FROM users WHERE email = $1`,
			v2test.Email(0), db.NewID[domain.MessageKind](), s.Clock.Now().Add(-time.Duration(i+1)*time.Hour), fmt.Sprint("Mail ", i))
	}
	inactive := s.User(w.tenant, w.client.ID, v2test.Email(3))
	s.Do("PATCH", "/v2/users/"+inactive.ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(200)
	return w
}

func (w *world) post(path, body string) {
	w.T.Helper()
	if r := w.Do("POST", path, w.tenant.Key, body); r.Status >= 300 {
		w.T.Fatalf("%s: %d %s", path, r.Status, r.Body)
	}
}

// answered is an answer on its way through a proxy.
type answered struct {
	status int
	header http.Header
	body   string
}

// change replaces the first occurrence of a text.
func change(old, new string) func(*answered) {
	return func(a *answered) { a.body = strings.Replace(a.body, old, new, 1) }
}

// proxy stands before a service, and changes answers. The change is told the method and
// the path with the query.
func proxy(t *testing.T, to string, meddle func(request string, a *answered)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header.Clone()
		out.Header.Del("Accept-Encoding")
		got, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			if r.Context().Err() == nil {
				t.Error(err)
			}
			return
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		a := &answered{got.StatusCode, got.Header.Clone(), string(body)}
		a.header.Del("Content-Length")
		meddle(r.Method+" "+r.URL.RequestURI(), a)
		for name, values := range a.header {
			w.Header()[name] = values
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const (
	users, clients = "GET /v1/clients/{client_id}/users", "GET /v1/clients"
	collections    = "GET /v1/clients/{client_id}/collections"
	mails          = "POST /v1/sentemails"
)

// plants are differences: what changes the answers to the requests that hold a text, and
// what is to be found.
var plants = []struct {
	name, at         string
	meddle           func(*answered)
	operation, field string
	v1, v2           string
}{
	{"a value of v1", "GET /v1/clients?", change(`"client_name":"Fernhill"`, `"client_name":"Fernhil"`), clients, "client_name", `"Fernhil"`, `"Fernhill"`},
	{"a value of v2", "/v2/clients?", change(`"on_track_rate":100`, `"on_track_rate":99.9`), clients, "training_on_track_rate", "100", "99.9"},
	{"a number", "GET /v1/clients?", change(`"user_count":3`, `"user_count":4`), clients, "user_count", "4", "3"},
	{"a missing field of v1", "/users?", func(a *answered) { a.body = strings.Replace(a.body, `"department":""`, `"x":1`, 1) }, users, "department", "", `""`},
	{"a missing field of v2", "/v2/clients?", change(`"name":"Fernhill",`, ""), clients, "name", "", `"is missing"`},
	{"a field too many", "GET /v1/clients?", change(`"user_count":3`, `"user_count":3,"plan":"gold"`), clients, "plan", `"gold"`, ""},
	{"a missing object of v1", "/collections?", func(a *answered) { a.body = dropFirst(a.body, "items") }, collections, "missing row", "", "Crew"},
	{"a missing object of v2", "/collections?", func(a *answered) { a.body = dropFirst(a.body, "data") }, collections, "surplus row", "Crew", ""},
	{"an object twice", "/collections?", func(a *answered) { a.body = repeatFirst(a.body, "items") }, collections, "surplus row", "Crew", ""},
	{"a missing mail of v1", mails, func(a *answered) {
		a.body = strings.Replace(dropFirst(a.body, "items"), `"total":3`, `"total":2`, 1)
	}, mails, "missing row", "", "Mail 0"},
	{"a missing mail of v2", "/emails?", func(a *answered) { a.body = dropFirst(a.body, "data") }, mails, "surplus row", "Mail 0", ""},
	{"another order", "/collections?", func(a *answered) { a.body = turn(a.body, "data") }, collections, "order", "before", "before"},
	{"v1's order", "/collections?", func(a *answered) {
		a.body = strings.Replace(a.body, `"created_date":"2026-06-15T12:00:00Z"`, `"created_date":"2027-06-15T12:00:00Z"`, 1)
	}, collections, "order", "after", ""},
	{"a type of v1", "GET /v1/clients?", change(`"user_count":3`, `"user_count":"3"`), clients, "user_count", `"3"`, "3"},
	{"a type of a field that was given up", "GET /v1/clients?", change(`"phishing_click_rate_total":0`, `"phishing_click_rate_total":"0"`), clients, "phishing_click_rate_total", `"0"`, "0"},
	{"a type of v2", "/v2/clients?", change(`"active":3`, `"active":"3"`), clients, "users.active", "", "cannot be read"},
	{"a total", "/collections?", func(a *answered) { a.body = strings.Replace(a.body, `"total":2`, `"total":3`, 1) }, collections, "total", "3", "2"},
	{"a limit", "GET /v1/clients?", change(`"limit":50`, `"limit":20`), clients, "limit", "20", "50"},
	{"an offset", "GET /v1/clients?", change(`"offset":0`, `"offset":1`), clients, "offset", "1", "0"},
	{"a status of v1", "GET /v1/clients/", func(a *answered) {
		if strings.Contains(a.body, `"description"`) || strings.Contains(a.body, "Crew") {
			a.status = 500
		}
	}, collections, "status", "500", "200"},
	{"a status of v2", "GET /v2/clients/", func(a *answered) {
		if strings.Contains(a.body, "Crew") {
			a.status = 500
		}
	}, collections, "status", "200", "500"},
	{"a status of an error", "/v1/clients?limit=x", func(a *answered) { a.status = 422 }, clients, "status", "422", "400"},
	{"an error's code", "/v1/clients?limit=x", change("invalid_request", "bad_request"), clients, "error", "bad_request", "invalid_request"},
	{"a header of v1", "GET /v1/clients?", func(a *answered) { a.header.Del("X-RateLimit-Reset") }, clients, "X-RateLimit-Reset", `""`, "a number"},
	{"a header of v2", "GET /v2/clients?", func(a *answered) { a.header.Set("X-Request-Id", "another") }, clients, "X-Request-Id", "parity-", "another"},
}

// TestPlanted: a difference of each kind is found, and named by operation, field and
// request.
func TestPlanted(t *testing.T) {
	t.Parallel()
	w := small(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			at := proxy(t, w.URL, func(request string, a *answered) {
				if strings.Contains(request, p.at) && (a.status == 200 || a.status == 400) {
					p.meddle(a)
				}
			})
			r, err := Compare(t.Context(), config(at, w.tenant.Key, w.Clock.Now()))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Operations, func(o *Operation) bool {
				return o.Operation == p.operation && slices.ContainsFunc(o.Differences, func(d Difference) bool {
					return d.Field == p.field && (p.v1 == "") == (d.V1 == nil) && (p.v2 == "") == (d.V2 == nil) && strings.Contains(string(d.V1), p.v1) && strings.Contains(string(d.V2), p.v2) &&
						strings.Contains(d.Request, at) && strings.Contains(d.Request, "$KEY") && !strings.Contains(d.Request, w.tenant.Key)
				})
			}) {
				var b strings.Builder
				_ = r.WriteText(&b)
				t.Errorf("%s of %s is not found:\n%s", p.field, p.operation, b.String())
			}
			rows := 0
			for _, o := range r.Operations {
				for _, d := range o.Differences {
					if strings.HasSuffix(d.Field, " row") {
						rows++
					}
				}
			}
			if p.operation == mails && rows != 1 {
				t.Errorf("%d rows are missing or surplus", rows)
			}
			if o := r.Operations[0]; o.Operation != p.operation && o.Different > 0 {
				t.Errorf("%s differs too: %v", o.Operation, o.Differences)
			}
		})
	}
}
