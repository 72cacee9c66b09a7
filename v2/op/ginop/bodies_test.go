package ginop_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// pause is the part of a body that is empty, and comes after what the function waits for; an error
// of it other than io.EOF ends the body.
type pause func() error

// Read waits.
func (p pause) Read([]byte) (int, error) { return 0, p() }

const mebibyte = 1 << 20

// hold sends a POST whose body of 1 MiB stops after the given number of bytes; declared says
// that its length is declared.
func (e *edge) hold(key string, arrived int, declared bool, release chan struct{}, answers chan<- *httptest.ResponseRecorder) {
	text := `{"text":"` + strings.Repeat("x", mebibyte-11) + `"}`
	rest := pause(func() error { <-release; return io.EOF })
	body := io.MultiReader(strings.NewReader(text[:arrived]), rest, strings.NewReader(text[arrived:]))
	r := httptest.NewRequest("POST", "/v2/post", body)
	if r.ContentLength = -1; declared {
		r.ContentLength = mebibyte
	}
	go func() { answers <- e.serve(r, key) }()
}

func short(e *edge, key string) *httptest.ResponseRecorder {
	return e.serve(httptest.NewRequest("POST", "/v2/post", strings.NewReader(`{"text":"short"}`)), key)
}

func accepting(t *testing.T) *edge {
	return posting(t, func(context.Context, *posted) (*answer, error) { return &answer{Text: "ok"}, nil })
}

// TestBodiesOfKey: 16 MiB of a key's bodies are in progress at a time, whether their
// length is declared or not; what is beyond waits up to a second. A body that has not
// arrived holds no place, and none of other keys' bytes.
func TestBodiesOfKey(t *testing.T) {
	for _, declared := range []bool{true, false} {
		t.Run(fmt.Sprint("declared ", declared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := accepting(t)
				release := make(chan struct{})
				answers := make(chan *httptest.ResponseRecorder, 20)
				for range 16 {
					e.hold("pk_demo_good", mebibyte-1, declared, release, answers)
				}
				wantWaiting(t, answers)
				wantStatus(t, e.do("GET", "/v2/post", "pk_demo_good"), 405) // without a body
				begun, limit := time.Now(), "X-RateLimit-Limit"             // as it is written, which Get is not
				w := short(e, "pk_demo_good")
				if waited := time.Since(begun); waited != time.Second || w.Header()[limit][0] != "600" {
					t.Errorf("waits %v, answers %v", waited, w.Header())
				}
				wantBusy(t, w, domain.RateLimited)
				wantStatus(t, short(e, "pk_demo_good1"), 200)
				close(release)
				wantFine(t, answers, 16)
				wantStatus(t, short(e, "pk_demo_good"), 200)
			})
		})
	}
}

// TestBodiesOfAll: 64 MiB of a partner's bodies and 128 MiB of all are in progress at
// a time, counted as they arrive: bytes that are only declared take no room.
func TestBodiesOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := accepting(t)
		release := make(chan struct{})
		answers := make(chan *httptest.ResponseRecorder, 300)
		for n := range 9 { // of one partner, then of another
			for range 16 {
				e.hold(fmt.Sprint("pk_demo_good", n/4*10+n%4), 1, true, release, answers)
			}
		}
		synctest.Wait()
		wantStatus(t, short(e, "pk_demo_good99"), 200) // beside promises
		close(release)
		wantFine(t, answers, 9*16)

		// A large one counts a quarter more: 51 of a partner's.
		release = make(chan struct{})
		fill := func(partner int) {
			for n := range 51 {
				e.hold(fmt.Sprint("pk_demo_good", partner*10+n/16), mebibyte-1, true, release, answers)
			}
			synctest.Wait()
		}
		fill(0)
		e.hold("pk_demo_good9", mebibyte-1, true, release, answers)
		wantBusy(t, <-answers, domain.RateLimited)
		wantStatus(t, short(e, "pk_demo_good99"), 200) // another partner's
		fill(1)
		e.hold("pk_demo_good98", mebibyte-1, true, release, answers) // the last that has room
		synctest.Wait()
		e.hold("pk_demo_good99", mebibyte-1, true, release, answers)
		wantBusy(t, <-answers, domain.Unavailable)
		close(release)
		wantFine(t, answers, 103)
		wantStatus(t, short(e, "pk_demo_good99"), 200)
	})
}

// TestTooLargeAtOnce: a body that says that it is too large is not waited for.
func TestTooLargeAtOnce(t *testing.T) {
	e := accepting(t)
	r := httptest.NewRequest("POST", "/v2/post", pause(func() error { select {} }))
	r.ContentLength = mebibyte + 1
	wantError(t, e.serve(r, "pk_demo_good"), domain.PayloadTooLarge)
	for length, want := range map[int]int{mebibyte: 200, mebibyte + 1: 413} {
		r := httptest.NewRequest("POST", "/v2/post", strings.NewReader(`{"text":"`+strings.Repeat("x", length-11)+`"}`))
		r.ContentLength = -1
		wantStatus(t, e.serve(r, "pk_demo_good"), want)
	}
}

// TestPlacesAfterBodies: 256 requests whose bodies do not come leave the places to
// others.
func TestPlacesAfterBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := accepting(t)
		release := make(chan struct{})
		answers := make(chan *httptest.ResponseRecorder, 256)
		for n := range 16 {
			for range 16 {
				e.hold(fmt.Sprint("pk_demo_good", n/8*10+n%8), 0, false, release, answers)
			}
		}
		synctest.Wait()
		for _, key := range []string{"pk_demo_good", "pk_demo_good0", "pk_demo_good99"} {
			wantStatus(t, short(e, key), 200)
		}
		close(release)
		wantFine(t, answers, 256)
	})
}

// TestPromisedBodies: a GET or a HEAD that promises a body is answered at once, and
// its connection is closed.
func TestPromisedBodies(t *testing.T) {
	e := newEdge(t, nil, nil)
	lenient := e.Surface(e.engine, "/old", func(c *gin.Context, err *domain.Error) error { return err })
	fine := op.Describe(reflect.TypeFor[empty]())
	lenient.Handle("GET", "/fine", "fine", func(c *gin.Context) error {
		if _, _, err := ginop.Decode(c, fine, fine.New(), true); err != nil {
			return err
		}
		return ginop.WriteJSON(c, 200, answer{strings.Repeat("long", 10_000)})
	})
	server := httptest.NewServer(e.engine)
	defer server.Close()
	var group sync.WaitGroup
	for _, promise := range []string{"Content-Length: 1", "Content-Length: 2000000", "Transfer-Encoding: chunked"} {
		for request, want := range map[string]int{
			"GET /v2/fine": 400, "HEAD /v2/fine": 400, "GET /old/fine": 200, "HEAD /old/fine": 200,
			"GET /v2/unknown": 404, "GET /v2/document": 200, "GET /elsewhere": 404,
		} {
			group.Go(func() { promised(t, server, request, promise, want) })
		}
	}
	group.Wait()
	// One that is sent with the request does not cut the answer off.
	if _, text := fetch(t, server, "GET", "/old/fine", strings.Repeat("x", 100_000)); len(text) < 40_000 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestTooLargeIsRead: a client that writes all of a body that is too large, and reads
// then, reads 413, with a length or without one.
func TestTooLargeIsRead(t *testing.T) {
	e := newEdge(t, nil, nil)
	e.Protocol(e.engine, ginop.Protocol{Path: "/protocol"})
	server := httptest.NewServer(e.engine)
	t.Cleanup(server.Close)
	body := strings.Repeat("x", 6<<20)
	for name, message := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		text := exchange(t, server, "POST /protocol HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\n"+message)
		if !strings.HasPrefix(text, "HTTP/1.1 413 ") || !strings.Contains(text, "\r\nConnection: close\r\n") {
			t.Errorf("%s: %.300s", name, text)
		}
	}
}

// promised sends a request that promises a body, and wants the answer before it
// comes.
func promised(t *testing.T, server *httptest.Server, request, promise string, want int) {
	text := exchange(t, server, request+" HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\n"+promise+"\r\n\r\n")
	if !strings.HasPrefix(text, fmt.Sprintf("HTTP/1.1 %d ", want)) || !strings.Contains(text, "\r\nConnection: close\r\n") {
		t.Errorf("%s with %s: %.300s", request, promise, text)
	}
	if want == 400 && strings.HasPrefix(request, "GET") && !strings.Contains(text, `"field":"body"`) {
		t.Errorf("%s with %s: %s", request, promise, text)
	}
}

// exchange sends the bytes of a request, and returns those of the answer, after which the
// connection is closed.
func exchange(t *testing.T, server *httptest.Server, request string) string {
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	_, failed := io.WriteString(conn, request)
	text, err := io.ReadAll(conn)
	if failed != nil || err != nil {
		t.Errorf("write: %v, read: %v", failed, err)
	}
	return string(text)
}

// fetch sends a request with a good key, and returns the answer with its body.
func fetch(
	t *testing.T, server *httptest.Server, method, path, body string, headers ...string,
) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", "pk_demo_good")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
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

// TestMessagesTakePlaces: a message of a protocol is in progress before it is read,
// what it asks of operations takes no place of its own, and its bytes count four
// times.
func TestMessagesTakePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := accepting(t)
		release := make(chan struct{})
		e.Protocol(e.engine, ginop.Protocol{Path: "/messages", Serve: func(w http.ResponseWriter, r *http.Request, body []byte) error {
			<-release
			inner := httptest.NewRequestWithContext(r.Context(), "POST", "/v2/post", strings.NewReader(string(body)))
			inner.Header = r.Header
			e.engine.ServeHTTP(w, inner)
			return nil
		}})
		send := func(key, body string) *httptest.ResponseRecorder {
			return e.serve(httptest.NewRequest("POST", "/messages", strings.NewReader(body)), key)
		}
		answers := make(chan *httptest.ResponseRecorder, 20)
		start := func(n int, key, body string) {
			for range n {
				go func() { answers <- send(key, body) }()
			}
			synctest.Wait()
		}
		start(16, "pk_demo_good", `{"text":"x"}`)
		start(4, "pk_demo_good1", `{"text":"`+strings.Repeat("x", mebibyte-11)+`"}`)
		wantWaiting(t, answers)
		for _, key := range []string{"pk_demo_good", "pk_demo_good1"} {
			wantBusy(t, send(key, `{"text":"x"}`), domain.RateLimited)
		}
		close(release)
		wantFine(t, answers, 20)
	})
}
