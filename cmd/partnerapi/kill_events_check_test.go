//go:build slow

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"partnerapi/domain"
)

// check waits until all is delivered, and holds what was listed and delivered against
// what was written.
func (k *kills) check() {
	k.t.Helper()
	service, d := k.drain()
	r := &round{service: service, client: service.client, until: time.Now().Add(patience), over: make(chan struct{})}
	types, events := map[domain.EventType]int{}, 0
	delivered, repeated := 0, 0
	k.receivers.mu.Lock()
	defer k.receivers.mu.Unlock()
	for _, tenant := range k.tenants {
		list := k.listed(r, tenant)
		events += len(list)
		for i := range list {
			types[list[i].Type]++
		}
		tenant.checkWritten(k.t, list)
		for _, s := range tenant.subscriptions {
			wanted, again := s.check(k.t, list)
			delivered, repeated = delivered+wanted, repeated+again
		}
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM clients":                                        types[domain.ClientCreated],
		"SELECT count(*) FROM users":                                          types[domain.UserCreated],
		"SELECT count(*) FROM users WHERE status = 'inactive'":                types[domain.UserDeactivated],
		"SELECT count(*) FROM published_events":                               events,
		"SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded'":  delivered,
		"SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'": 0,
		"SELECT count(*) FROM webhooks WHERE status <> 'active'":              0,
	} {
		if got := d.number(query); got != want {
			k.t.Errorf("%s: %d, not %d", query, got, want)
		}
	}
	// Only what was in progress at a kill is repeated after it was taken.
	most := (k.killed + k.lost) * domain.MaxConcurrentTries * len(k.receivers.of)
	if repeated > most {
		k.t.Errorf("%d tries came after an answer of success: more than the %d that kills can have cut short", repeated, most)
	}
	for _, tenant := range k.tenants {
		tenant.checkReplayed(r)
		if older() {
			tenant.checkNumbers(r)
		}
	}
	service.finish()
	k.t.Logf("%d kills; %d events; %d deliveries, %d of them again", k.killed, events, delivered, repeated)
}

// listed has the followers of a tenant read on to the end, and wants each of them to
// have got the same list as who reads it now. It returns the whole list.
func (k *kills) listed(r *round, tenant *tenant) []told {
	k.t.Helper()
	late := &eventReader{key: tenant.followers[0].key, limit: 500}
	late.read(r.reads(late.key))
	seen := map[string]bool{}
	for _, e := range late.events {
		if seen[e.ID] {
			k.t.Errorf("%s is listed twice", e.text)
		}
		seen[e.ID] = true
	}
	for i, f := range tenant.followers {
		if !f.read(r.reads(f.key)) {
			k.t.Fatalf("%s's follower %d does not get to the end", tenant.name, i)
		}
		if got, want := textsOf(f.events, nil), textsOf(late.events, f.reach); !slices.Equal(got, want) {
			k.t.Errorf("%s's follower %d was shown %d events, which are not the %d that are listed now", tenant.name, i, len(got), len(want))
		}
	}
	return late.events
}

// checkWritten wants the list to tell of what was written, in its order, and of nothing
// else.
func (x *tenant) checkWritten(t *testing.T, list []told) {
	t.Helper()
	subjects := map[string]*subject{}
	for i := range x.clients {
		subjects[x.clients[i].label] = &x.clients[i]
	}
	for _, a := range x.authors {
		for _, s := range a.subjects {
			subjects[s.label] = s
		}
	}
	got, ids := map[string][]domain.EventType{}, map[string]string{}
	for i := range list {
		e := &list[i]
		label := e.label()
		s := subjects[label]
		if s == nil {
			t.Errorf("%s: nobody wrote %s", x.name, e.text)
			continue
		}
		if e.Type == domain.ClientCreated {
			ids[label] = e.Data.ID
			s = &subject{client: label, id: s.id}
		}
		if e.ClientID != ids[s.client] || s.id != "" && s.id != e.Data.ID {
			t.Errorf("%s is not of the client %s", e.text, s.client)
		}
		got[label] = append(got[label], e.Type)
		// Rendered after its change, it shows this or a later one.
		updates := len(got[label]) - 1
		if e.Type == domain.UserUpdated && e.Data.Department != nil {
			if n, _ := strconv.Atoi(*e.Data.Department); n < updates {
				t.Errorf("%s is older than update %d", e.text, updates)
			}
		}
	}
	for label, s := range subjects {
		possible := s.told
		if s.doubt != "" {
			possible = append(slices.Clone(s.told), s.doubt)
		}
		if !slices.Equal(got[label], s.told) && !slices.Equal(got[label], possible) {
			t.Errorf("%s: the events are %v, the answered writes %v, the one in doubt %q", label, got[label], s.told, s.doubt)
		}
	}
}

// checkReplayed sends each creation again with its Idempotency-Key: what was answered is
// answered the same, and what was not is done once.
func (x *tenant) checkReplayed(r *round) {
	for _, a := range x.authors {
		for _, s := range a.subjects {
			if s.path == "" {
				continue
			}
			again, ok := r.send(true, http.MethodPost, s.path, a.key, s.body, "Idempotency-Key", s.label)
			if ok && s.answer != nil && !bytes.Equal(again.body, s.answer) {
				r.client.t.Errorf("created\n%s\nthen again\n%s", s.answer, again.body)
			}
		}
	}
}

// checkNumbers wants each client to have its number, and the next one a higher one.
func (x *tenant) checkNumbers(r *round) {
	highest, key := 0, x.authors[0].key
	for _, a := range x.authors {
		for _, s := range a.subjects {
			if s.number == 0 {
				continue
			}
			highest = max(highest, s.number)
			answer, ok := r.send(true, http.MethodGet, fmt.Sprintf("/v1/clients?ids=%d", s.number), key, nil)
			if !ok {
				return
			}
			if items := into[struct{ Items []numbered }](answer).Items; len(items) != 1 || items[0].ClientName != s.label {
				r.client.t.Errorf("client %d was %q and is %v", s.number, s.label, items)
			}
		}
	}
	answer, ok := r.send(true, http.MethodPost, "/v1/clients", key, fields{"company_name": x.name + " after all"})
	if !ok {
		return
	}
	if next := into[numbered](answer).ID; next <= highest {
		r.client.t.Errorf("the client after %d got %d", highest, next)
	}
}

// wants reports whether an event is to be delivered. The clients of the start were made
// before the subscriptions.
func (s *subscription) wants(e *told) bool {
	early := e.Type == domain.ClientCreated &&
		slices.ContainsFunc(s.tenant.clients, func(c subject) bool { return c.id == e.ClientID })
	return !early && slices.Contains(s.types, e.Type) &&
		(s.clients == nil || slices.Contains(s.clients, e.ClientID)) &&
		(s.reach == nil || slices.Contains(s.reach, e.ClientID))
}

// check wants the endpoint to have got, of its partner's events, what it wants, and
// nothing else. It returns how many it wants, and how many tries came after an answer of
// success.
func (s *subscription) check(t *testing.T, list []told) (wanted, again int) {
	t.Helper()
	name := s.tenant.name + " " + s.name
	events := map[string]*told{}
	for i := range list {
		e := &list[i]
		events[e.ID] = e
		if !s.wants(e) {
			continue
		}
		wanted++
		if got := s.gotten[e.ID]; got == nil || got.answered == 0 {
			t.Errorf("%s did not get %s", name, e.text)
		}
	}
	if wanted == 0 {
		t.Errorf("%s wants nothing", name)
	}
	for id, got := range s.gotten {
		e := events[id]
		switch {
		case e == nil:
			t.Errorf("%s got what is not its partner's: %s", name, got.bodies[0])
			continue
		case !s.wants(e):
			t.Errorf("%s got what it does not want: %s", name, e.text)
		}
		again += max(0, got.answered-1)
		for _, body := range got.bodies {
			if body != e.text {
				t.Errorf("%s got\n%s\nwhich is listed as\n%s", name, body, e.text)
			}
		}
	}
	return wanted, again
}
