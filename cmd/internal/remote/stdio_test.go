package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/cmd/internal/cli"
)

// echo is an MCP server that answers each request with its method, and refuses the method refused as /mcp does.
func echo(t *testing.T) string {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.DecodeMessage(body)
		call, ok := m.(*jsonrpc.Request)
		if err != nil || !ok || !call.IsCall() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := fmt.Sprintf(`"result":{"method":%q}`, call.Method)
		if call.Method == "refused" {
			w.WriteHeader(http.StatusBadRequest)
			answer = `"error":{"code":-32600,"message":"refused","data":{"why":1}}`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%v,%s}`, call.ID.Raw(), answer)
	}))
	t.Cleanup(service.Close)
	return service.URL
}

// TestLines verifies that the bridge returns IDs exactly as the agent sent them, answers a line that is no message, and
// continues after it.
func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"a"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{"method":"a"}}`},
		{`{"jsonrpc":"2.0","id":9223372036854775807,"method":"a"}`, `{"jsonrpc":"2.0","id":9223372036854775807,"result":{"method":"a"}}`},
		{`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}`, `{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{"method":"a"}}`},
		{` {"jsonrpc":"2.0","method":"a","id":"<1>"} ` + "\r", `{"jsonrpc":"2.0","id":"<1>","result":{"method":"a"}}`},
		{"\ufeff" + `{"jsonrpc":"2.0","id":8,"method":"a"}`, `{"jsonrpc":"2.0","id":8,"result":{"method":"a"}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"refused"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"refused","data":{"why":1}}}`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"a"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id must be a string or an integer; omit it in a notification"}}`},
		{`{"jsonrpc":"1.0","id":3,"method":"a"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"jsonrpc must be \"2.0\""}}`},
		{`not JSON`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0",`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"\xff", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`[{"jsonrpc":"2.0","id":4,"method":"a"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted`},
		{`{"jsonrpc":"2.0","id":5,"method":"` + strings.Repeat("x", maxLine) + `"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is too long`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{"", ""},
	} {
		var out, errs bytes.Buffer
		in := c.line + "\n" + `{"jsonrpc":"2.0","id":"last","method":"b"}` // without a newline at the end
		env := cli.Env{In: strings.NewReader(in), Out: &out, Err: &errs}
		if err := (MCP{URL: echo(t), KeyFlag: KeyFlag{Key: "key"}}).Run(context.Background(), env); err != nil || errs.Len() > 0 {
			t.Errorf("%.60s: %v %s", c.line, err, &errs)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		const last = `{"jsonrpc":"2.0","id":"last","result":{"method":"b"}}`
		got := ""
		for _, line := range lines {
			if line != last {
				got += line
			}
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || !strings.Contains(out.String(), last) {
			t.Errorf("%.60s: got\n%swant\n%s", c.line, &out, c.want)
		}
	}
}
