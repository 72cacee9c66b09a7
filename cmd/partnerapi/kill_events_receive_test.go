//go:build slow

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"partnerapi/client"
	"partnerapi/domain"
)

// subscription is a webhook, and what its endpoint got.
type subscription struct {
	name, key, secret string
	tenant            *tenant
	types             []domain.EventType
	clients, reach    []string // its own and its key's; nil for all

	gotten map[string]*reception // by the event's id
}

// reception is what an endpoint got of an event.
type reception struct {
	bodies   []string // of each request
	answered int      // how often it was told that the event is taken
}

// receivers are the endpoints of all subscriptions: one server with HTTP/1.1 and one
// with HTTP/2.
type receivers struct {
	t       *testing.T
	servers [2]*httptest.Server
	ca      string // a file with the certificate
	round   atomic.Pointer[round]

	mu     sync.Mutex
	chance *rand.Rand
	of     map[string]*subscription // by path
}

func openReceivers(t *testing.T, seed uint64) *receivers {
	t.Helper()
	e := &receivers{t: t, chance: rand.New(rand.NewPCG(seed, 0)), of: map[string]*subscription{}}
	for i := range e.servers {
		e.servers[i], e.ca = endpointOf(t, e, i == 1) // all test servers have one certificate
	}
	return e
}

// endpointOf serves webhooks until the test ends, and returns a file with its certificate.
func endpointOf(t *testing.T, handler http.Handler, http2 bool) (s *httptest.Server, ca string) {
	t.Helper()
	s = httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, secretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// open makes the endpoint of a subscription, and returns its URL.
func (e *receivers) open(s *subscription) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	path := "/" + s.tenant.name + "/" + s.name
	e.of[path] = s
	return e.servers[len(e.of)%len(e.servers)].URL + path
}

// secret tells the endpoint of a subscription what its events are signed with.
func (e *receivers) secret(s *subscription, secret string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.secret = secret
}

// ServeHTTP keeps what arrives whole, does the round's next step, and answers by
// chance.
func (e *receivers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the service died within the request
	}
	id := r.Header.Get("Webhook-Id")
	e.mu.Lock()
	s := e.of[r.URL.Path]
	if s == nil {
		e.mu.Unlock()
		e.t.Errorf("%s was delivered to", r.URL)
		return
	}
	secret := s.secret
	got := s.gotten[id]
	if got == nil {
		got = &reception{}
		s.gotten[id] = got
	}
	got.bodies = append(got.bodies, string(body))
	chance, wait := e.chance.IntN(100), time.Duration(e.chance.IntN(400))*time.Millisecond
	e.mu.Unlock()
	if err := verified(r.Header, secret, body); err != nil {
		e.t.Errorf("%s: %s: %v", r.URL.Path, body, err)
	}

	life := e.round.Load()
	if life != nil {
		life.received()
	}
	take := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		got.answered++
	}
	answer(w, r, life != nil, chance, wait, take)
}

// answer answers as chance, below 100, will have it: some are refused, some hear
// nothing. take is called before an answer of success. Where tries end with the
// service, some hang until then.
func answer(w http.ResponseWriter, r *http.Request, ends bool, chance int, wait time.Duration, take func()) {
	switch {
	case chance < 10:
		w.WriteHeader(http.StatusInternalServerError)
	case chance < 14:
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	case chance < 16:
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	case chance < 24:
		panic(http.ErrAbortHandler) // hangs up
	case chance < 25 && ends:
		<-r.Context().Done()
	case chance < 30: // is slow
		if chance < 26 {
			wait += time.Second
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(wait):
		}
		fallthrough
	default:
		take()
		w.WriteHeader(http.StatusNoContent)
	}
}

// verified checks both signatures of a body, and that they are of no other body.
func verified(h http.Header, secret string, body []byte) error {
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	other := append(bytes.Clone(body), ' ')
	return errors.Join(library.Verify(body, h), client.Verify(secret, h, body, time.Now()),
		failing(library.Verify(other, h)), failing(client.Verify(secret, h, other, time.Now())))
}

// failing is an error where there is none.
func failing(err error) error {
	if err == nil {
		return errors.New("another body has the same signature")
	}
	return nil
}
