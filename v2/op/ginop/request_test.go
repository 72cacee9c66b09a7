package ginop_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

type posted struct {
	Body struct {
		Text string `json:"text"`
	}
}

// posting is an edge with an operation that takes a body.
func posting(t *testing.T, run func(context.Context, *posted) (*answer, error)) *edge {
	operations := &op.Set{}
	op.Add(operations, op.Meta{
		ID: "post", Method: "POST", Path: "/post", Scope: domain.Write, Since: op.V2_0, Status: 200, Summary: "s",
	}, run)
	return newEdgeOf(t, func(*ginop.Config) {}, operations)
}

// slowBody is a body that stops in the middle, or ends after a while.
type slowBody struct {
	io.Reader
	end func() error
}

// Read reads what there is.
func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.end()
	}
	return n, err
}

// TestSlowUpload: a body that does not arrive in time is the caller's fault.
func TestSlowUpload(t *testing.T) {
	e := posting(t, func(context.Context, *posted) (*answer, error) { return &answer{}, nil })
	server := httptest.NewUnstartedServer(e.engine)
	server.Config.ReadHeaderTimeout = time.Minute
	server.Config.ReadTimeout = 50 * time.Millisecond // of headers and body
	server.Start()
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const begun = "POST /v2/post HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\nContent-Length: 20\r\n\r\n{\"text\":"
	if _, err := io.WriteString(conn, begun); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408 ") ||
		!strings.Contains(string(text), `{"error":{"code":"request_timeout",`) ||
		!strings.Contains(string(text), "X-RateLimit-Remaining: 599") {
		t.Errorf("answers %s (%v)", text, err)
	}
	if strings.Contains(e.log.String(), "level=ERROR") || !strings.Contains(e.log.String(), "status=408") {
		t.Errorf("logs %s", e.log)
	}
}

// TestTimeBeginsAfterBody: how long a body takes is not charged to the work.
func TestTimeBeginsAfterBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := posting(t, func(ctx context.Context, _ *posted) (*answer, error) {
			begun := time.Now()
			<-ctx.Done()
			if took := time.Since(begun); took != 20*time.Second {
				t.Errorf("the work has %v", took)
			}
			return nil, &domain.Error{Code: domain.Unavailable, Message: "m"}
		})
		body := &slowBody{Reader: strings.NewReader(`{"text":"x"}`), end: func() error {
			time.Sleep(50 * time.Second)
			return io.EOF
		}}
		r := httptest.NewRequest("POST", "/v2/post", body)
		w := e.serve(r, "pk_demo_good")
		if w.Code != 503 {
			t.Errorf("answers %d %s", w.Code, w.Body)
		}
	})
}

// TestBrokenUpload: a body that breaks off is invalid, however long it took.
func TestBrokenUpload(t *testing.T) {
	e := posting(t, func(context.Context, *posted) (*answer, error) { return &answer{}, nil })
	for _, test := range []struct {
		err    error
		status int
	}{{io.ErrUnexpectedEOF, 400}, {os.ErrDeadlineExceeded, 408}} {
		body := &slowBody{Reader: strings.NewReader(`{"te`), end: func() error { return test.err }}
		r := httptest.NewRequest("POST", "/v2/post", body)
		w := e.serve(r, "pk_demo_good")
		if w.Code != test.status {
			t.Errorf("%v answers %d %s", test.err, w.Code, w.Body)
		}
	}
}

// TestEveryAnswer carries what keeps it out of caches and browsers' guesses.
func TestEveryAnswer(t *testing.T) {
	e := newEdge(t, nil, nil)
	for _, request := range [][3]string{
		{"GET", "/v2/fine", "pk_demo_good"}, {"GET", "/v2/fine", ""}, {"GET", "/v2/unknown", "pk_demo_good"}, {"GET", "/v2/panics", "pk_demo_good"},
		{"DELETE", "/v2/gone", "pk_demo_good"}, {"GET", "/v2/document", ""},
	} {
		h := e.do(request[0], request[1], request[2]).Header()
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v carries %v", request, h)
		}
	}
}

// TestHead works wherever GET does, and answers the same without the body.
func TestHead(t *testing.T) {
	e := newEdge(t, nil, nil)
	server := httptest.NewServer(e.engine)
	defer server.Close()
	send := func(method, path string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-API-Key", "pk_demo_good")
		r.Header.Set("Accept-Encoding", "identity")
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	for _, path := range []string{"/v2/fine", "/v2/document", "/v2/wrapped", "/v2/unknown"} {
		get, _ := send("GET", path)
		head, body := send("HEAD", path)
		if head.StatusCode != get.StatusCode || body != "" || head.ContentLength != get.ContentLength ||
			head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD is %d %q %v, GET %d %v", path, head.StatusCode, body, head.Header, get.StatusCode, get.Header)
		}
	}
	if head, _ := send("HEAD", "/v2/gone"); head.StatusCode != 404 {
		t.Errorf("HEAD of what cannot be read is %d", head.StatusCode)
	}
}

// TestRequestLine: the log says who asked, and with what.
func TestRequestLine(t *testing.T) {
	e := newEdge(t, nil, nil)
	e.do("GET", "/v2/fine", "pk_demo_good", "User-Agent", "client/1.2 "+strings.Repeat("x", 188)+"é and more")
	line := e.log.String()
	agent := `user_agent="client/1.2 ` + strings.Repeat("x", 188) + `"`
	for _, word := range []string{"key=pk_good", "address=192.0.2.1", agent} {
		if !strings.Contains(line, word) {
			t.Errorf("the line has no %s: %s", word, line)
		}
	}
}

// TestRequestLineHasNoSecrets: of a query is logged which rows were asked for, and neither
// keys nor names of people.
func TestRequestLineHasNoSecrets(t *testing.T) {
	e := newEdge(t, nil, nil)
	e.do("GET", "/v2/fine?limit=5&ids=1,2&q=ada@example.com&cursor=secret&api_key=secret&key=secret&%zz", "pk_demo_good")
	if line := e.log.String(); !strings.Contains(line, ` query="ids=1%2C2&limit=5"`) || strings.Contains(line, "secret") ||
		strings.Contains(line, "ada") {
		t.Errorf("the line is %s", line)
	}
}
