package parity

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"partnerapi/v1compat"
	v2 "partnerapi/v2"
)

const logs = `
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/clients?limit=5&api_key=secret HTTP/1.1" 200 812
192.0.2.1 - frank [15/Jun/2026:12:00:01 +0000] "GET /v1/clients?limit=5 HTTP/2.0" 200 812 "-" "curl/8.5 \"quoted\""
192.0.2.1 - - [15/Jun/2026:12:00:01 +0000] "POST /v1/clients HTTP/1.1" 201 20
192.0.2.1 - - [15/Jun/2026:12:00:01 +0000] "GET /health HTTP/1.1" 200 2
this is no line of a log
{"level":"info","ts":1.2,"msg":"handled request","request":{"method":"GET","uri":"/v1/clients/17/users?status=all","headers":{"X-Api-Key":["secret"]}},"status":200}
{"time":"2026-06-15T12:00:00Z","level":"INFO","msg":"request","request_id":"1","method":"GET","path":"/v1/users/01980000-0000-7000-8000-000000000000/training","status":200,"key":"pk_secret"}
{"time":"2026-06-15T12:00:00Z","level":"INFO","msg":"starting"}
{"broken
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "HEAD /api/v1/clients/17/policies HTTP/1.1" 200 0
`

const har = `{
  "log": {
    "version": "1.2", "creator": {"name": "a browser", "entries": []},
    "entries": [
      {"request": {"method": "GET", "url": "https://api.example.com/v1/partner", "headers": [{"name": "X-API-Key", "value": "secret"}]}, "response": {"content": {"text": "…"}}},
      {"request": {"method": "POST", "url": "https://api.example.com/v1/sentemails?limit=7", "postData": {"text": "{\"email_address\": \"ada@example.com\", \"key\": \"secret\"}"}}},
      {"response": {}},
      {"request": {"method": "POST", "url": "https://api.example.com/v1/sendphishing", "postData": {"text": "{}"}}}
    ],
    "pages": []
  }
}`

// TestRecord: requests of v1 that read are recorded, each once, without keys; lines that
// cannot be read are told by their numbers.
func TestRecord(t *testing.T) {
	t.Parallel()
	recorder, err := NewRecorder(v1compat.New(v2.New(nil, nil), v1compat.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	var bad []int
	note := func(n int, _ string) { bad = append(bad, n) }
	for _, file := range []string{strings.TrimPrefix(logs, "\n"), har, strings.Repeat("x", maxLogged+5) + "\n"} {
		if err := recorder.Read(strings.NewReader(file), note); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{5, 9, 3, 1}; !slices.Equal(bad, want) {
		t.Errorf("unreadable: %v, not %v", bad, want)
	}
	var out bytes.Buffer
	done, err := recorder.Write(&out)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"method":"GET","path":"/v1/clients?limit=5","count":2}
{"method":"GET","path":"/v1/clients/17/users?status=all","count":1}
{"method":"GET","path":"/v1/users/01980000-0000-7000-8000-000000000000/training","count":1}
{"method":"GET","path":"/v1/clients/17/policies","count":1}
{"method":"GET","path":"/v1/partner","count":1}
{"method":"POST","path":"/v1/sentemails?limit=7","body":{"email_address":"ada@example.com"},"count":1}
`
	if out.String() != want {
		t.Errorf("recorded:\n%s\nnot\n%s", out.String(), want)
	}
	if done.Distinct != 6 || done.Kept != 7 {
		t.Errorf("%+v", done)
	}
}
