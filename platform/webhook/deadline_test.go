package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestWithin: an endpoint that never answers, or drips its answer, has no answer
// after ten seconds; one that ends in time has.
func TestWithin(t *testing.T) {
	t.Parallel()
	s := newSink(t, func(http.ResponseWriter, *http.Request) {})
	ca, certificates := s.ca(t), s.TLS.Certificates
	for name, c := range map[string]struct {
		answer func(io.Writer)
		status int
		took   time.Duration
	}{
		"silence": {func(io.Writer) {}, 0, domain.WebhookDeadline},
		"drip": {func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			for range 100 {
				time.Sleep(time.Second) // of the test's own clock
				if _, err := io.WriteString(w, "."); err != nil {
					return
				}
			}
		}, 0, domain.WebhookDeadline},
		"late": {func(w io.Writer) {
			time.Sleep(9 * time.Second)
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}, 200, 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, err := webhook.NewEndpoints(webhook.Options{AllowPrivate: true, CAFile: ca})
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			e.UseDial(func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				served.Go(func() {
					conn := tls.Server(theirs, &tls.Config{Certificates: certificates})
					if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
						served.Go(func() { _, _ = io.Copy(io.Discard, conn) }) // or closing it takes its time, too
						c.answer(conn)
					}
				})
				return ours, nil
			})
			began := time.Now()
			try := e.Send(t.Context(), "https://example.com/", "evt_1", []string{secret}, []byte("{}"))
			took := time.Since(began)
			if try.StatusCode != c.status || took != c.took || try.DurationMS != took.Milliseconds() {
				t.Errorf("%s: %+v after %v", name, try, took)
			}
			e.Close()
			served.Wait()
		})
	}
}
