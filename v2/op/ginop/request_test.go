package ginop_test

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
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
	add(operations, "post", "POST", "/post", 200, run)
	return newEdgeOf(t, func(*ginop.Config) {}, operations)
}

// TestSlowUpload: a body that does not arrive in time is the caller's fault.
func TestSlowUpload(t *testing.T) {
	e := posting(t, func(context.Context, *posted) (*answer, error) { return &answer{}, nil })
	server := httptest.NewUnstartedServer(e.engine)
	server.Config.ReadHeaderTimeout = time.Minute
	server.Config.ReadTimeout = 50 * time.Millisecond // of headers and body
	server.Start()
	defer server.Close()

	const begun = "POST /v2/post HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\nContent-Length: 20\r\n\r\n{\"text\":"
	text := exchange(t, server, begun)
	for _, part := range []string{"HTTP/1.1 408 ", `{"error":{"code":"request_timeout",`, "X-RateLimit-Remaining: 599"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
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
		end := pause(func() error { time.Sleep(50 * time.Second); return io.EOF })
		r := httptest.NewRequest("POST", "/v2/post", io.MultiReader(strings.NewReader(`{"text":"x"}`), end))
		wantStatus(t, e.serve(r, "pk_demo_good"), 503)
	})
}

// TestBrokenUpload: a body that breaks off is invalid, however long it took.
func TestBrokenUpload(t *testing.T) {
	e := posting(t, func(context.Context, *posted) (*answer, error) { return &answer{}, nil })
	for err, status := range map[error]int{io.ErrUnexpectedEOF: 400, os.ErrDeadlineExceeded: 408} {
		body := io.MultiReader(strings.NewReader(`{"te`), iotest.ErrReader(err))
		wantStatus(t, e.serve(httptest.NewRequest("POST", "/v2/post", body), "pk_demo_good"), status)
	}
}

// TestContentEncoding verifies that a body is refused if the header names a coding, whatever the case and in any place,
// and that other values and the header of a request without a body are ignored.
func TestContentEncoding(t *testing.T) {
	e := posting(t, func(context.Context, *posted) (*answer, error) { return &answer{Text: "ok"}, nil })
	for value, status := range map[string]int{
		"gzip": 415, "X-GZIP": 415, "deflate": 415, "br": 415, "zstd": 415, "compress": 415, "identity, gzip": 415, " gzip ": 415, "br,gzip": 415,
		"identity": 200, "utf-8": 200, "": 200, "aws-chunked": 200, "none": 200, "gzipped": 200,
	} {
		r := httptest.NewRequest("POST", "/v2/post", strings.NewReader(`{"text":"x"}`))
		r.Header.Set("Content-Encoding", value)
		w := e.serve(r, "pk_demo_good")
		if wantStatus(t, w, status); status == 415 {
			wantError(t, w, domain.UnsupportedEncoding)
			if !strings.Contains(w.Body.String(), `"fields":[{"field":"Content-Encoding","message":"must not be `) {
				t.Errorf("%q: got %s", value, w.Body)
			}
		}
	}
	r := httptest.NewRequest("POST", "/v2/post", strings.NewReader(`{"text":"x"}`))
	r.Header["Content-Encoding"] = []string{"identity", "gzip"}
	wantStatus(t, e.serve(r, "pk_demo_good"), 415)
	wantStatus(t, e.do("POST", "/v2/post", "pk_demo_good", "Content-Encoding", "gzip"), 400) // it has no body
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
	for _, path := range []string{"/v2/fine", "/v2/document", "/v2/wrapped", "/v2/unknown"} {
		get, _ := fetch(t, server, "GET", path, "")
		head, body := fetch(t, server, "HEAD", path, "")
		if head.StatusCode != get.StatusCode || body != "" || head.ContentLength != get.ContentLength ||
			head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD is %d %q %v, GET %d %v", path, head.StatusCode, body, head.Header, get.StatusCode, get.Header)
		}
	}
	wantStatus(t, e.do("HEAD", "/v2/gone", "pk_demo_good"), 405) // which cannot be read
}

// TestRequestLine: the log says who asked, with what, and for which rows; of a query it has neither
// keys nor names of people.
func TestRequestLine(t *testing.T) {
	e := newEdge(t, nil, nil)
	agent := "client/1.2 " + strings.Repeat("x", 188)
	e.do("GET", "/v2/fine?limit=5&ids=1,2&q=ada@example.com&cursor=secret&api_key=secret&key=secret&%zz", "pk_demo_good",
		"User-Agent", agent+"é and more")
	line := e.log.String()
	for _, word := range []string{
		"key=pk_good", "address=192.0.2.1", `user_agent="` + agent + `"`, ` query="ids=1%2C2&limit=5"`,
	} {
		if !strings.Contains(line, word) {
			t.Errorf("the line has no %s: %s", word, line)
		}
	}
	if strings.Contains(line, "secret") || strings.Contains(line, "ada") {
		t.Errorf("the line is %s", line)
	}

	e = newEdge(t, nil, nil)
	e.do("GET", "/v2/"+strings.Repeat("%01", 100_000), "pk_demo_good")
	if n := len(e.log.String()); n == 0 || n > 3000 {
		t.Errorf("got a line of %d bytes for a path of 100,000 control characters", n)
	}
}
