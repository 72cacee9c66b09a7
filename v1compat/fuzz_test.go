package v1compat

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// FuzzRequests: whatever a path, a query and a body hold, no route panics or
// answers 500, and an error is one of those that it documents.
func FuzzRequests(f *testing.F) {
	s, tenant := newFuzzed(f)
	for _, path := range []string{"1", "007", "2147483648", "%00", "usr_x", "01980000-0000-7000-8000-000000000000", "..", "a%2Fb", ""} {
		f.Add(path, "limit=5&offset=1&status=all&ids=1,2", `{"email":"a@example.com","collection_id":1}`)
	}
	for _, query := range []string{"ids=1&ids=x", "ids=%2C%2C", "limit=-99999999999999999999", "offset=9223372036854775807", "status=%ff", "a=%zz;b", "limit=%D9%A1", "ids=+1,-0"} {
		f.Add("1", query, `{"company_name":"x"}`)
	}
	for _, body := range []string{
		``, `{`, `null`, `[1]`, `{"email":null,"collection_id":null}`, `{"email":"\u0000"}`, "{\"email\":\"\xff\"}", `{"collection_id":1e400}`,
		`{"collection_id":-0}`, `{"collection_id":[[{}]]}`, `{"status":"active","status":"x"}`, `{"email":"\ud800"}`, strings.Repeat(`{"a":`, 11000),
		`{"role":{"":{}}}`, `{"company_name":"` + strings.Repeat("ß", 201) + `"}`, `{"email":"a@example.com","first_name":"\\u0000"}`,
	} {
		f.Add("1", "", body)
	}
	f.Fuzz(func(t *testing.T, path, query, body string) {
		for _, r := range s.facade.routes {
			target := &url.URL{Path: "/v1" + strings.NewReplacer(":client_id", path, ":user_id", path).Replace(r.Path), RawQuery: query}
			if unescaped, err := url.PathUnescape(target.Path); err == nil && unescaped != target.Path {
				target.Path, target.RawPath = unescaped, target.Path
			}
			req := &http.Request{Method: r.Method, URL: target, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), RemoteAddr: "127.0.0.1:1"}
			req.Header.Set("X-API-Key", tenant.Key)
			recorder := httptest.NewRecorder()
			s.Engine.ServeHTTP(recorder, req.WithContext(t.Context()))
			if recorder.Code >= http.StatusInternalServerError || recorder.Code == 0 {
				t.Errorf("%s %s: %d %s", r.Method, target, recorder.Code, recorder.Body)
			}
			if recorder.Code >= 400 && !bytes.Contains(recorder.Body.Bytes(), []byte(`"request_id"`)) {
				t.Errorf("%s %s: %d %s", r.Method, target, recorder.Code, recorder.Body)
			}
		}
	})
}

// exchangeAnswer is the body of an exchange's answer, ids as they are written.
type exchangeAnswer struct {
	Items []struct {
		V1 jsontext.Value `json:"v1"`
		V2 jsontext.Value `json:"v2"`
	} `json:"items"`
	Invalid []jsontext.Value `json:"invalid"`
}

// FuzzExchange: a body is refused, or all of what it gives is in the answer: an
// object by one of its ids, once, or a value as it was given, once.
func FuzzExchange(f *testing.F) {
	s, tenant := newFuzzed(f)
	client := s.AddClient(tenant, "Third").ID
	for _, kind := range append(api.ReachableKind("").Values(), "webhook", "") {
		f.Add(kind, strings.Join(noIDs, ","))
		f.Add(kind, `1,"`+client.String()+`",2,3,3,`+strings.ToUpper(`"`+unusedID+`"`))
	}
	f.Add("client", `1e400,-1e-400,"\ud83d\ude00", [ 1 , { "a" : "b c" } ],[1,{"a":"b c"}], {"a":1,"a":2}`)
	f.Add("report", `"\u0031",1,"1",01,"`+strings.Repeat("\\u0041", 2000)+`"`)
	f.Add("user", strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	f.Fuzz(func(t *testing.T, kind, ids string) {
		name, _ := json.Marshal(kind)
		body := `{"kind":` + string(name) + `,"ids":[` + ids + `]}`
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/ids/exchange", strings.NewReader(body))
		req.Header.Set("X-API-Key", tenant.Key)
		recorder := httptest.NewRecorder()
		s.Engine.ServeHTTP(recorder, req)
		if recorder.Code != http.StatusOK {
			if recorder.Code >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", body, recorder.Code, recorder.Body)
			}
			return
		}

		lenient := jsontext.AllowDuplicateNames(true)
		var a exchangeAnswer
		var asked struct {
			IDs []jsontext.Value `json:"ids"`
		}
		if err := errors.Join(json.Unmarshal(recorder.Body.Bytes(), &a, lenient), json.Unmarshal([]byte(body), &asked, lenient)); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		known := map[string]bool{}
		for _, item := range a.Items {
			known[string(item.V1)], known[string(item.V2)] = true, true
		}
		for _, value := range a.Invalid {
			if known[string(value)] {
				t.Errorf("%s: %s is there twice", body, value)
			}
			known[string(value)] = true
		}
		for _, value := range asked.IDs {
			if err := value.Compact(); err != nil {
				t.Fatal(err)
			}
			if !known[string(value)] && !known[sameID(value)] {
				t.Errorf("%s: %s is missing from %s", body, value, recorder.Body)
			}
		}
		if len(known) > 2*len(asked.IDs) {
			t.Errorf("%s: %s", body, recorder.Body)
		}
	})
}

// sameID is the plainest way to write an id: UUIDs are given in any case, reports
// by integers, and texts with escapes.
func sameID(value jsontext.Value) string {
	text := string(value)
	if plain, err := jsontext.AppendUnquote(nil, value); err == nil {
		text = string(plain)
	}
	if len(text) == 36 {
		text = strings.ToLower(text)
	}
	return strconv.Quote(text)
}

// FuzzIntegers: a number of a query is taken when it is one, of whatever size.
func FuzzIntegers(f *testing.F) {
	for _, text := range []string{"0", "-1", "+5", "99999999999999999999", "-99999999999999999999x", "9223372036854775807", "", "1_0", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n integer
		var list refList[domain.ClientKind]
		err := n.UnmarshalText([]byte(text))
		digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
		isNumber := digits != "" && strings.Trim(digits, "0123456789") == "" && len(text)-len(digits) <= 1
		if (err == nil) != isNumber {
			t.Errorf("%q: %v", text, err)
		}
		if isNumber && (n < 0) != (strings.HasPrefix(text, "-") && strings.Trim(digits, "0") != "") {
			t.Errorf("%q is %d", text, n)
		}
		canonical := isNumber && n >= 1 && n <= idmap.MaxNumber && strconv.Itoa(int(n)) == text
		if listErr := list.UnmarshalText([]byte(text)); canonical != (listErr == nil && len(list.Refs) == 1) && !strings.Contains(text, ",") {
			t.Errorf("%q: %v, %v", text, listErr, list.Refs)
		}
	})
}

// newFuzzed is a service with a tenant of two clients.
func newFuzzed(f *testing.F) (*service, v2test.Partner) {
	s := start(f, setup{})
	tenant := s.AddPartner("Partner")
	s.AddClient(tenant, "Client")
	s.AddClient(tenant, "Second")
	return s, tenant
}
