package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
	refused(t, 2, []string{"parity", "--url=" + s.address, key, "--writes=zebra"}, `--writes: the key reaches no client "zebra"`)
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
				Field  string `json:"field"`
				Object struct {
					Kind string `json:"kind"`
					V1   string `json:"v1"`
					V2   string `json:"v2"`
				} `json:"object"`
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
		if o := d.Object; o.Kind != "client" || o.V1 != "1" || !strings.HasPrefix(o.V2, "cli_") {
			t.Errorf("%+v", o)
		}
		if d.Field != "client_name" || d.V1 != "Another" || d.V2 != "Hollowbrook Manufacturing" || len(lines) != 2 ||
			!strings.HasPrefix(lines[0], `curl -s -H "X-API-Key: $KEY" 'http://`) || !strings.Contains(lines[1], "/v2/clients?") {
			t.Errorf("%+v", d)
		}
	}
}

// TestParityOfTraffic: the requests of a file are compared. The exit status is 2 where a
// line cannot be read, or nothing was compared.
func TestParityOfTraffic(t *testing.T) {
	t.Parallel()
	s := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	replay := func(content, at string) []string {
		file := filepath.Join(t.TempDir(), "requests")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"parity", "replay", file, "--url=" + at, "--key=pk_demo_all"}
	}
	const good = "GET /v1/clients?limit=5\n/v1/partner\n\n"
	if out := must(t, append(replay(good, s.address), "--json")...); !strings.Contains(out, `"operation": "GET /v1/clients"`) {
		t.Errorf("nothing was compared: %s", out)
	}
	const har = `{"log": {"entries": [{"request": {"method": "GET", "url": "https://x.example/api/v1/clients?limit=5"}}, {"request": {"method": "GET", "url": "https://x.example/"}}]}}`
	must(t, replay(har, s.address)...)
	refused(t, 1, replay(good, lying(t, s.address)), "values that differ: 1")
	for content, says := range map[string]string{
		"":                                "nothing was compared",
		`{"log": {"entries": []}}`:        "nothing was compared",
		"nonsense\n":                      ":1: not of the form",
		good + "POST /v1/clients\n":       ":4: not of the form",
		good + "GET /v1/nothing\n":        ":4: no request of v1 that only reads",
		good + "/v2/clients\n":            ":4: not of the form",
		`{"log": {"entries": [{}]}}`:      ":1: the entry has no request",
		`{"log": {"entries": [{"reques`:   "neither a HAR file",
		"127.0.0.1 - - [x] \"GET /v1/a\"": ":1: not of the form",
	} {
		refused(t, 2, replay(content, s.address), says)
	}
}

// TestTrafficOfLogs: the commands of the guide make lines for replay of logs.
func TestTrafficOfLogs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	text, err := os.ReadFile("../../docs/operate/parity.md")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(text), "of this service (`--log-format json`):\n\n```sh\n")
	commands, _, _ = strings.Cut(commands, "```")
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"access.log": `192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/clients?limit=5 HTTP/1.1" 200 812 "-" "curl/8.5"
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/usage HTTP/1.1" 200 812
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "GET /v1/nothing HTTP/1.1" 404 81
192.0.2.1 - - [15/Jun/2026:12:00:00 +0000] "POST /v1/clients HTTP/1.1" 200 81
`,
		"caddy.log": `{"msg":"handled request","request":{"method":"GET","uri":"/v1/clients?limit=6","headers":{}},"status":200}
{"msg":"handled request","request":{"method":"GET","uri":"/v2/clients","headers":{}},"status":200}
`,
		"partnerapi.log": `{"msg":"request","method":"GET","path":"/v1/clients","status":200,"query":"limit=7"}
{"msg":"request","method":"GET","path":"/v1/partner","status":200}
{"msg":"serving"}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.CommandContext(t.Context(), "sh", "-ec", commands)
	sh.Dir = dir
	out, err := sh.CombinedOutput()
	want := "/v1/clients?limit=5\n/v1/clients?limit=6\n/v1/clients?limit=7\n/v1/partner?\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
}
