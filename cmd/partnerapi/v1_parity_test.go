package main

import (
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/v1compat/v1test"
)

// lying is the address of a proxy that changes what v1 says of a client.
func lying(t *testing.T, to string) string {
	t.Helper()
	change := v1test.Replace(`"client_name":"Hollowbrook Manufacturing"`, `"client_name":"Another"`)
	return v1test.Proxy(t, to, func(request string, a *v1test.Answer) {
		if strings.HasPrefix(request, "GET /v1/clients") {
			change(a)
		}
	})
}

// TestTrafficOfLogs: the commands of the guide make lines for replay of logs.
func TestTrafficOfLogs(t *testing.T) {
	t.Parallel()
	_, commands, _ := strings.Cut(fileText(t, "docs/operate/parity.md"), "of this service (`--log-format json`):\n\n```sh\n")
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
		writeFile(t, filepath.Join(dir, name), lines)
	}
	s, err := newShell(dir, guideBase)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.run(commands)
	want := "/v1/clients?limit=5\n/v1/clients?limit=6\n/v1/clients?limit=7\n/v1/partner?\n"
	if err != nil || out != want {
		t.Errorf("%v: %s", err, out)
	}
}
