package ginop_test

import (
	"context"
	"fmt"
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
	add(operations, "blocks", "GET", "/blocks", 200, func(context.Context, *empty) (*answer, error) {
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
		wantStatus(t, <-answers, 200)
	}
}

// wantWaiting lets all go on as far as they can, and wants none to be answered.
func wantWaiting(t *testing.T, answers <-chan *httptest.ResponseRecorder) {
	t.Helper()
	if synctest.Wait(); len(answers) > 0 {
		t.Fatalf("one that waits answers %d", (<-answers).Code)
	}
}

// wantBusy wants an answer to be the error of a code, to be tried again a second later.
func wantBusy(t *testing.T, w *httptest.ResponseRecorder, code domain.Code) {
	t.Helper()
	if wantError(t, w, code); w.Header().Get("Retry-After") != "1" {
		t.Errorf("answers %v", w.Header())
	}
}

// TestRequestsInProgress: 16 requests of a key at a time, the others wait up to
// a second (decisions 2.2).
func TestRequestsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 30)
		e.start("pk_demo_good", 20, answers)
		wantWaiting(t, answers)

		// Another key's are not held up by those that wait.
		e.start("pk_demo_good1", 1, answers)
		synctest.Wait()
		time.Sleep(time.Second - time.Nanosecond)
		wantWaiting(t, answers)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(answers) != 4 {
			t.Fatalf("%d of 4 are refused after a second", len(answers))
		}
		for range 4 {
			w := <-answers
			if wantBusy(t, w, domain.RateLimited); w.Header().Get("X-RateLimit-Limit") != "600" {
				t.Errorf("answers %v", w.Header())
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
		wantStatus(t, e.do("GET", "/v2/blocks", "pk_demo_good"), 200)
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
		go func() { ended <- e.serve(r, "pk_demo_good") }()
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

// TestShedding: a partner has half of what the process can do, with however many keys, and others
// are not held up. When the process has as much as it can do, further requests are refused at once.
func TestShedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, release := blocking(t)
		answers := make(chan *httptest.ResponseRecorder, 300)
		for n := range 8 {
			e.start(fmt.Sprint("pk_demo_good", n), 16, answers)
		}
		wantWaiting(t, answers)
		wantBusy(t, e.do("GET", "/v2/blocks", "pk_demo_good8"), domain.RateLimited) // a ninth key of the partner's
		for n := range 8 {
			e.start(fmt.Sprint("pk_demo_good", 10+n), 16, answers) // another partner's
		}
		wantWaiting(t, answers)
		wantBusy(t, e.do("GET", "/v2/blocks", "pk_demo_good99"), domain.Unavailable)

		// One that ends makes place for one more.
		release <- struct{}{}
		wantFine(t, answers, 1)
		e.start("pk_demo_good99", 1, answers)
		wantWaiting(t, answers)
		close(release)
		wantFine(t, answers, 256)
		wantStatus(t, e.do("GET", "/v2/blocks", "pk_demo_good8"), 200)
	})
}
