package ginop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// blocking is an edge with an operation that ends when it is let go.
func blocking(t *testing.T) (e *edge, release chan struct{}) {
	release = make(chan struct{})
	operations := &op.Set{}
	op.Add(operations, op.Meta{
		ID: "blocks", Method: "GET", Path: "/blocks", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s",
	}, func(context.Context, *empty) (*answer, error) {
		<-release
		return &answer{Text: "ok"}, nil
	})
	return newEdgeOf(t, func(*ginop.Config) {}, operations), release
}

// start sends requests with a key whose answers are not read yet.
func (e *edge) start(key string, n int, answers chan<- *httptest.ResponseRecorder) {
	for range n {
		go func() { answers <- e.do("GET", "/v2/blocks", key) }()
	}
}

// wantFine wants n of the answers to be successes.
func wantFine(t *testing.T, answers <-chan *httptest.ResponseRecorder, n int) {
	t.Helper()
	for range n {
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("answers %d %s", w.Code, w.Body)
		}
	}
}

func code(t *testing.T, w *httptest.ResponseRecorder) domain.Code {
	t.Helper()
	var body op.ErrorEnvelope
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return body.Error.Code
}

// TestRequestsInProgress: 16 requests of a key at a time, the others wait up to
// a second (decisions 2.2).
func TestRequestsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 30)
		e.start("pk_demo_good", 20, answers)
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("one of the first answers %d", (<-answers).Code)
		}

		// Another key's are not held up by those that wait.
		e.start("pk_demo_good1", 1, answers)
		synctest.Wait()
		time.Sleep(time.Second - time.Nanosecond)
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("one that may wait answers %d", (<-answers).Code)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(answers) != 4 {
			t.Fatalf("%d of 4 are refused after a second", len(answers))
		}
		for range 4 {
			w := <-answers
			if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Header().Get("X-RateLimit-Limit") != "600" {
				t.Errorf("answers %d %v", w.Code, w.Header())
			}
			if code(t, w) != domain.RateLimited {
				t.Errorf("answers %s", w.Body)
			}
		}

		// One that ends makes place for one that waits.
		e.start("pk_demo_good", 1, answers)
		synctest.Wait()
		release <- struct{}{}
		release <- struct{}{}
		synctest.Wait()
		close(release)
		wantFine(t, answers, 18)
		if w := e.do("GET", "/v2/blocks", "pk_demo_good"); w.Code != 200 {
			t.Errorf("then answers %d", w.Code)
		}
	})
}

// TestCallerWhoStopsWaiting gives up its place in the queue.
func TestCallerWhoStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 30)
		e.start("pk_demo_good", 16, answers)
		synctest.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/v2/blocks", nil)
		ended := make(chan *httptest.ResponseRecorder)
		go func() {
			ended <- e.serve(r, "pk_demo_good")
		}()
		synctest.Wait()
		cancel()
		if w := <-ended; w.Body.Len() > 0 {
			t.Errorf("is answered %s", w.Body)
		}

		e.start("pk_demo_good", 1, answers)
		close(release)
		wantFine(t, answers, 17)
	})
}

// TestShedding: when the process has as much as it can do, further requests are
// refused at once.
func TestShedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 300)
		for n := range 16 {
			e.start(fmt.Sprint("pk_demo_good", n/8*10+n%8), 16, answers) // eight keys of each of two partners
		}
		synctest.Wait()
		w := e.do("GET", "/v2/blocks", "pk_demo_good99")
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || code(t, w) != domain.Unavailable {
			t.Errorf("answers %d %v %s", w.Code, w.Header(), w.Body)
		}
		close(release)
		wantFine(t, answers, 256)
		if w := e.do("GET", "/v2/blocks", "pk_demo_good99"); w.Code != 200 {
			t.Errorf("then answers %d", w.Code)
		}
	})
}

// TestPartnerInProgress: a partner has half of what the process can do at the
// most, with however many keys. Further requests of its keys are refused at once,
// and others are not held up.
func TestPartnerInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 300)
		for n := range 8 {
			e.start(fmt.Sprint("pk_demo_good", n), 16, answers)
		}
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("one of the first answers %d", (<-answers).Code)
		}
		w := e.do("GET", "/v2/blocks", "pk_demo_good8") // a ninth key of the partner's
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || code(t, w) != domain.RateLimited {
			t.Errorf("answers %d %v %s", w.Code, w.Header(), w.Body)
		}

		e.start("pk_demo_good10", 16, answers) // another partner's
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("another partner's request answers %d", (<-answers).Code)
		}

		// One that ends makes place for one more.
		release <- struct{}{}
		<-answers
		e.start("pk_demo_good8", 1, answers)
		synctest.Wait()
		close(release)
		wantFine(t, answers, 144)
	})
}
