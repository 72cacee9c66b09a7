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

// held is a body of which a part has arrived, and whose rest comes when it is let go.
type held struct {
	arrived io.Reader
	rest    io.Reader
	release chan struct{}
}

// Read reads what has arrived, then waits.
func (b *held) Read(p []byte) (int, error) {
	if n, err := b.arrived.Read(p); err == nil {
		return n, nil
	}
	<-b.release
	return b.rest.Read(p)
}

const mebibyte = 1 << 20

// hold sends a POST whose body of 1 MiB stops after the given number of bytes; declared says
// that its length is declared.
func (e *edge) hold(key string, arrived int, declared bool, release chan struct{}, answers chan<- *httptest.ResponseRecorder) {
	text := `{"text":"` + strings.Repeat("x", mebibyte-11) + `"}`
	body := &held{strings.NewReader(text[:arrived]), strings.NewReader(text[arrived:]), release}
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
				synctest.Wait()
				if len(answers) > 0 {
					t.Fatalf("one of the first answers %d", (<-answers).Code)
				}
				if w := e.do("GET", "/v2/post", "pk_demo_good"); w.Code != 404 {
					t.Errorf("a request without a body answers %d", w.Code)
				}
				begun, limit := time.Now(), "X-RateLimit-Limit" // as it is written, which Get is not
				w := short(e, "pk_demo_good")
				if w.Code != 429 || w.Header().Get("Retry-After") != "1" || code(t, w) != domain.RateLimited ||
					w.Header()[limit][0] != "600" {
					t.Errorf("beyond, answers %d %v %s", w.Code, w.Header(), w.Body)
				}
				if waited := time.Since(begun); waited != time.Second {
					t.Errorf("waits %v", waited)
				}
				if w := short(e, "pk_demo_good1"); w.Code != 200 {
					t.Errorf("another key's answers %d %s", w.Code, w.Body)
				}
				close(release)
				wantFine(t, answers, 16)
				if w := short(e, "pk_demo_good"); w.Code != 200 {
					t.Errorf("then answers %d", w.Code)
				}
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
		if w := short(e, "pk_demo_good99"); w.Code != 200 {
			t.Errorf("beside promises, answers %d %s", w.Code, w.Body)
		}
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
		if w := <-answers; w.Code != 429 || w.Header().Get("Retry-After") != "1" || code(t, w) != domain.RateLimited {
			t.Errorf("a further key of the partner answers %d %s", w.Code, w.Body)
		}
		if w := short(e, "pk_demo_good99"); w.Code != 200 {
			t.Errorf("another partner's answers %d %s", w.Code, w.Body)
		}
		fill(1)
		e.hold("pk_demo_good98", mebibyte-1, true, release, answers) // the last that has room
		synctest.Wait()
		e.hold("pk_demo_good99", mebibyte-1, true, release, answers)
		if w := <-answers; w.Code != 503 || w.Header().Get("Retry-After") != "1" || code(t, w) != domain.Unavailable {
			t.Errorf("beyond all, answers %d %s", w.Code, w.Body)
		}
		close(release)
		wantFine(t, answers, 103)
		if w := short(e, "pk_demo_good99"); w.Code != 200 {
			t.Errorf("then answers %d", w.Code)
		}
	})
}

// TestTooLargeAtOnce: a body that says that it is too large is not waited for.
func TestTooLargeAtOnce(t *testing.T) {
	e := accepting(t)
	r := httptest.NewRequest("POST", "/v2/post", &held{arrived: strings.NewReader("")}) // which never ends
	r.ContentLength = mebibyte + 1
	w := e.serve(r, "pk_demo_good")
	if w.Code != 413 || code(t, w) != domain.PayloadTooLarge {
		t.Errorf("answers %d %s", w.Code, w.Body)
	}
	for length, want := range map[int]int{mebibyte: 200, mebibyte + 1: 413} {
		r := httptest.NewRequest("POST", "/v2/post", strings.NewReader(`{"text":"`+strings.Repeat("x", length-11)+`"}`))
		r.ContentLength = -1
		if w := e.serve(r, "pk_demo_good"); w.Code != want {
			t.Errorf("%d bytes of no told length answer %d", length, w.Code)
		}
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
			if w := short(e, key); w.Code != 200 {
				t.Errorf("the key %s answers %d %s", key, w.Code, w.Body)
			}
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
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/old/fine", strings.NewReader(strings.Repeat("x", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", "pk_demo_good")
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, err := io.ReadAll(got.Body); err != nil || len(text) < 40_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// promised sends a request that promises a body, and wants the answer before it
// comes.
func promised(t *testing.T, server *httptest.Server, request, promise string, want int) {
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nX-API-Key: pk_demo_good\r\n%s\r\n\r\n", request, promise)
	text, err := io.ReadAll(conn) // to its end: the connection is closed
	if err != nil || !strings.HasPrefix(string(text), fmt.Sprintf("HTTP/1.1 %d ", want)) ||
		!strings.Contains(string(text), "\r\nConnection: close\r\n") {
		t.Errorf("%s with %s: %.300s (%v)", request, promise, text, err)
	}
	if want == 400 && strings.HasPrefix(request, "GET") && !strings.Contains(string(text), `"field":"body"`) {
		t.Errorf("%s with %s: %s", request, promise, text)
	}
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
		if len(answers) > 0 {
			t.Fatalf("one of the first answers %d", (<-answers).Code)
		}
		for _, key := range []string{"pk_demo_good", "pk_demo_good1"} {
			if w := send(key, `{"text":"x"}`); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
				t.Errorf("one more of the key %s answers %d %s", key, w.Code, w.Body)
			}
		}
		close(release)
		wantFine(t, answers, 20)
	})
}
