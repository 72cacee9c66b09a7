package openapitest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
	"partnerapi/v2/op/openapi/openapitest"
)

type failure struct {
	Message string `json:"message"`
}

type thing struct {
	ID    domain.ClientID `json:"id"`
	At    domain.Time     `json:"at"`
	Day   *domain.Date    `json:"day"`
	Email string          `json:"email" format:"email"`
	Grade domain.Grade    `json:"grade"`
	Part  *failure        `json:"part"`
}

type getThing struct {
	Path struct {
		ID string `path:"id"`
	}
}

func validator(t *testing.T) *openapitest.Validator {
	t.Helper()
	common := []int{401, 404, 429, 500, 503}
	doc, err := openapi.Build(openapi.Document{
		Title: "test", Version: "1", Prefix: "/v0", Error: reflect.TypeFor[failure](),
		Operations: []openapi.Operation{
			{
				Meta:  op.Meta{ID: "get", Method: "GET", Path: "/things/:id", Status: 200},
				Input: op.Describe(reflect.TypeFor[getThing]()), Output: reflect.TypeFor[thing](), Errors: append(common, 409),
			},
			{
				Meta:  op.Meta{ID: "delete", Method: "DELETE", Path: "/things/:id", Status: 204},
				Input: op.Describe(reflect.TypeFor[getThing]()), Errors: common,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return openapitest.New(t, doc)
}

const (
	good  = `{"id":"cli_01jhz5q7rgec7t3vfd9w8x2k4m","at":"2026-01-31T08:00:00.000000Z","day":"2026-01-31","email":"a@example.com","grade":"A","part":{"message":"x"}}`
	wrong = `{"message":"x"}`
)

// headers are those that every response has, with the changes: a name that
// begins with a minus sign is taken away.
func headers(changes ...string) http.Header {
	h := http.Header{}
	for _, line := range append([]string{
		"Content-Type: application/json; charset=utf-8", "X-Request-Id: req_1",
		"X-RateLimit-Limit: 600", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1769846400",
	}, changes...) {
		name, value, _ := strings.Cut(line, ": ")
		if gone, ok := strings.CutPrefix(name, "-"); ok {
			h.Del(gone)
			continue
		}
		h.Set(name, value)
	}
	return h
}

func swap(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }

func TestViolation(t *testing.T) {
	v := validator(t)
	const path = "/v0/things/anything"
	for _, c := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body               string
		want               string // part of the violation; empty for none
	}{
		{"as documented", "GET", path, 200, headers(), good, ""},
		{"nulls where allowed", "GET", path, 200, headers(), strings.NewReplacer(`"2026-01-31"`, `null`, `{"message":"x"}`, `null`).Replace(good), ""},
		{"an escaped path", "GET", "/v0/things/a%2Fb", 200, headers(), good, ""},
		{"an error", "GET", path, 404, headers(), wrong, ""},
		{"no content", "DELETE", path, 204, headers("-Content-Type"), "", ""},
		{"an unknown path", "GET", "/v0/nothing", 404, headers(), wrong, ""},
		{"an unknown method", "PUT", path, 404, headers(), wrong, ""},
		{"a method that is not allowed", "PUT", path, 405, headers(), wrong, ""},
		{"the prefix alone", "GET", "/v0", 401, headers(), wrong, ""},
		{"another version", "GET", "/v00/things/1", 200, nil, "hello", ""},
		{"the document", "GET", "/v0/openapi.yaml", 200, nil, "openapi: 3.0.3", ""},
		{"a wait", "GET", path, 429, headers("Retry-After: 1"), wrong, ""},
		{"a conflict that lasts", "GET", path, 409, headers(), wrong, ""},

		{"another success", "GET", path, 201, headers(), good, "status 201"},
		{"another error", "GET", path, 403, headers(), wrong, "status 403"},
		{"success of nothing", "GET", "/v0/nothing", 200, headers(), good, "status 200"},
		{"no request id", "GET", path, 200, headers("-X-Request-Id"), good, `"X-Request-Id" missing`},
		{"a bad request id", "GET", path, 200, headers("X-Request-Id: a b"), good, `"X-Request-Id" doesn't match`},
		{"no budget in an error", "GET", path, 404, headers("-X-RateLimit-Reset"), wrong, `"X-RateLimit-Reset" missing`},
		{"no budget on an unknown path", "GET", "/v0/nothing", 404, headers("-X-RateLimit-Limit"), wrong, `"X-RateLimit-Limit" missing`},
		{"a budget that is no number", "GET", path, 200, headers("X-RateLimit-Limit: many"), good, "X-RateLimit-Limit"},
		{"less than nothing left", "GET", path, 200, headers("X-RateLimit-Remaining: -1"), good, `"X-RateLimit-Remaining" doesn't match`},
		{"no wait", "GET", path, 429, headers(), wrong, `"Retry-After" missing`},
		{"a wait of nothing", "GET", path, 503, headers("Retry-After: 0"), wrong, `"Retry-After" doesn't match`},
		{"another content type", "GET", path, 200, headers("Content-Type: text/plain"), good, "Content-Type"},
		{"content where none is", "DELETE", path, 204, headers(), wrong, "but none is documented"},
		{"no JSON", "GET", path, 200, headers(), good + "}", "not one JSON value"},
		{"another error body", "GET", path, 404, headers(), `{"msg":"x"}`, "msg"},
		{"another error body on an unknown path", "GET", "/v0/nothing", 404, headers(), `{}`, "message"},
		{"an undocumented member", "GET", path, 200, headers(), swap(`{`, `{"more":1,`), `property "more" is unsupported`},
		{"a missing member", "GET", path, 200, headers(), swap(`"grade":"A",`, ``), `property "grade" is missing`},
		{"a null", "GET", path, 200, headers(), swap(`"A"`, `null`), "grade"},
		{"a new value of an open enum", "GET", path, 200, headers(), swap(`"A"`, `"E"`), ""},
		{"no time of day", "GET", path, 200, headers(), swap(`T08`, `T28`), "date-time"},
		{"no date", "GET", path, 200, headers(), swap(`"2026-01-31"`, `"2026-13-31"`), "date"},
		{"no email", "GET", path, 200, headers(), swap(`a@example.com`, `nobody`), "email"},
		{"a member of a part", "GET", path, 200, headers(), swap(`"message":"x"`, `"message":1`), "message"},
	} {
		err := v.Violation(httptest.NewRequest(c.method, "http://anywhere"+c.path, nil), c.status, c.header, []byte(c.body))
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: violation is %v, want %s", c.name, err, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range headers() {
			w.Header()[name] = values
		}
		io.WriteString(w, swap("a@example.com", r.URL.Query().Get("email")))
	}))
	defer server.Close()
	told := &openapitest.Witness{TB: t}
	client := &http.Client{Transport: validator(t).Wrap(told, server.Client().Transport)}
	for _, email := range []string{"b@example.com", "nobody", "nobody"} { // a difference is reported once
		resp, err := client.Get(server.URL + "/v0/things/1?email=" + email)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != swap("a@example.com", email) {
			t.Errorf("the test reads %s, %v", body, err)
		}
	}
	if len(told.Errors) != 1 || !strings.HasPrefix(told.Errors[0],
		`GET /v0/things/1: the response with status 200 differs from the document test 1: email: `) {
		t.Errorf("the test is told %q", told.Errors)
	}
}
