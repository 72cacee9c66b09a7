package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lying stands before a service, and changes what v1 says of clients.
func lying(t *testing.T, to string) string {
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
			t.Error(err)
			return
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		got.Header.Del("Content-Length")
		for name, values := range got.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(got.StatusCode)
		if strings.HasPrefix(r.URL.Path, "/v1/clients") {
			body = []byte(strings.Replace(string(body), `"client_name":"Hollowbrook Manufacturing"`, `"client_name":"Another"`, 1))
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestParity: parity ends with 0 where both versions say the same, with 1 and what
// differs where they do not, and with 2 where nothing could be compared.
func TestParity(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	key := "--key=pk_demo_all"
	must(t, "parity", "--url="+s.address, key, "--sample=1")
	if out := must(t, "parity", "compare", "--url="+s.address, key, "--sample=1", "--v1-url="+s.address); !strings.Contains(out, "GET /v1/clients ") {
		t.Errorf("the table lacks GET /v1/clients:\n%s", out)
	}
	if out := must(t, "parity", "--url="+s.address, key, "--writes=1", "--json"); !strings.Contains(out, `"POST /v1/users/{user_id}"`) {
		t.Errorf("nothing was updated:\n%s", out)
	}

	at := lying(t, s.address)
	refused(t, 1, []string{"parity", "--url=" + at, key, "--sample=1"}, "values that differ: 1")
	r := command(t, "parity", "--url="+at, key, "--sample=1", "--json")
	shape(t, r.out)

	refused(t, 2, []string{"parity", "--url=" + s.address, "--key=pk_nobody"}, "does not take the key")
	refused(t, 2, []string{"parity", "--url=nowhere", key}, "no address of a service")
	refused(t, 2, []string{"parity", "--url=" + s.address + "/docs", key}, "404")
	refused(t, 2, []string{"parity", "--url=" + s.address}, "no API key")
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--sample=0"}, "--all")
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--sample=3", "--all"}, "--all")
	// --all alone is taken: what is refused is the rest.
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--all", "--writes=1", "--v1-url=" + s.address}, "leave --v1-url out")
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--writes=999999"}, "reaches no client 999999")
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--tolerate=email"}, "--v1-url")
}

// shape wants the report's JSON, with one difference, to be as documented.
func shape(t *testing.T, text string) {
	t.Helper()
	var report struct {
		Operations []jsontext.Value `json:"operations"`
	}
	if err := json.Unmarshal([]byte(text), &report, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, value := range report.Operations {
		var o struct {
			Operation   string `json:"operation"`
			Compared    int    `json:"compared"`
			Equal       int    `json:"equal"`
			Explained   int    `json:"explained"`
			Different   int    `json:"different"`
			Differences []struct {
				Field   string `json:"field"`
				V1      string `json:"v1"`
				V2      string `json:"v2"`
				Request string `json:"request"`
			} `json:"differences"`
		}
		if err := json.Unmarshal(value, &o, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%v: %s", err, value)
		}
		if o.Compared != o.Equal+o.Explained+o.Different || len(o.Differences) != o.Different {
			t.Errorf("the counts do not add up: %+v", o)
		}
		if o.Operation != "GET /v1/clients" {
			continue
		}
		if len(o.Differences) != 1 {
			t.Fatalf("%+v", o)
		}
		d := o.Differences[0]
		lines := strings.Split(d.Request, "\n")
		if d.Field != "client_name" || d.V1 != "Another" || d.V2 != "Hollowbrook Manufacturing" || len(lines) != 2 ||
			!strings.HasPrefix(lines[0], `curl -s -H "X-API-Key: $KEY" 'http://`) || !strings.Contains(lines[1], "/v2/clients?") {
			t.Errorf("%+v", d)
		}
	}
}

// TestParityOfTraffic: the requests of a log are recorded and compared.
func TestParityOfTraffic(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	dir := t.TempDir()
	log, requests := filepath.Join(dir, "access.log"), filepath.Join(dir, "requests")
	lines := `192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/clients?limit=5 HTTP/1.1" 200 812
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/partner HTTP/1.1" 200 812
nonsense
`
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	r := command(t, "parity", "record", log, "-o", requests)
	if r.code != 0 || !strings.Contains(r.err, log+": 3: ") || !strings.Contains(r.err, "2 requests, 2 of them reads of v1, 2 recorded") {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	out := must(t, "parity", "replay", requests, "--url="+s.address, "--key=pk_demo_subset", "--json")
	if !strings.Contains(out, `"operation": "GET /v1/clients"`) {
		t.Errorf("nothing was compared: %s", out)
	}
	refused(t, 1, []string{"parity", "replay", requests, "--url=" + lying(t, s.address), "--key=pk_demo_all"}, "values that differ: 1")
	refused(t, 2, []string{"parity", "replay", requests, "--url=" + s.address, "--key=pk_nobody"}, "does not take the key")
}
