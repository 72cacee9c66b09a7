//go:build slow

package main

import (
	"encoding/pem"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	first    time.Time
	answered int // how often it was told that the event is taken
}

// receivers are the endpoints of subscriptions.
type receivers struct {
	t      *testing.T
	server *httptest.Server
	ca     string // a file with the certificate
	round  atomic.Pointer[round]

	mu     sync.Mutex
	chance *rand.Rand               // without it, all events are taken
	of     map[string]*subscription // by path
}

func openReceivers(t *testing.T, chance *rand.Rand) *receivers {
	t.Helper()
	e := &receivers{t: t, chance: chance, of: map[string]*subscription{}}
	e.server = httptest.NewUnstartedServer(e)
	e.server.EnableHTTP2 = chance != nil
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.server.StartTLS()
	t.Cleanup(e.server.Close)
	e.ca = secretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw}))
	return e
}

// subscribe makes a subscription, whose events the endpoint at a path gets.
func (e *receivers) subscribe(c caller, path string, s *subscription) (id string) {
	e.t.Helper()
	body := fields{"url": e.server.URL + path, "events": s.types}
	if s.clients != nil {
		body["client_ids"] = s.clients
	}
	made := into[struct{ ID, Secret string }](c.do("POST", "/v2/webhooks", s.key, body).want(http.StatusCreated))
	e.mu.Lock()
	defer e.mu.Unlock()
	s.secret, s.gotten, e.of[path] = made.Secret, map[string]*reception{}, s
	return made.ID
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
	got := s.gotten[id]
	if got == nil {
		got = &reception{first: time.Now()}
		s.gotten[id] = got
	}
	got.bodies = append(got.bodies, string(body))
	secret, chance, wait := s.secret, 100, time.Duration(0)
	if e.chance != nil {
		chance, wait = e.chance.IntN(100), time.Duration(e.chance.IntN(400))*time.Millisecond
	}
	e.mu.Unlock()
	if err := client.Verify(secret, r.Header, body, time.Now()); err != nil {
		e.t.Errorf("%s: %s: %v", r.URL.Path, body, err)
	}

	life := e.round.Load()
	if life != nil {
		life.received()
	}
	switch {
	case chance < 4:
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case chance < 14:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case chance < 24:
		panic(http.ErrAbortHandler) // hangs up
	case chance < 25 && life != nil: // hangs until the service ends
		<-r.Context().Done()
		return
	case chance < 30: // is slow
		select {
		case <-r.Context().Done():
			return
		case <-time.After(wait):
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	got.answered++ // before the answer
}
