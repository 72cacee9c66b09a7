//go:build slow

package main

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"partnerapi/db/seed"
	"partnerapi/domain"
)

const (
	// roundsBefore and roundsAfter are how many rounds of requests each integrator makes
	// before a command and after the move, at least.
	roundsBefore, roundsAfter = 2, 4
	// pageOfWalk is how many objects a page has of the lists that are walked.
	pageOfWalk = 10
)

// integrator is a program of a partner that works through the router.
type integrator struct {
	*twoCells
	name, key string
	moves     bool // its partner does: its writes may be refused
	client    tenantOf
	rounds    atomic.Int64
	stopped   atomic.Bool
	ended     chan struct{}

	refused int // answers of 503
	users   []*integratedUser
	events  *eventReader
	walk    []string // what was listed of the walk in progress
	next    string   // its cursor, or its offset
}

// integratedUser is a user whom an integrator made, as far as it was told. answer is that of the creation by v2, with
// the address as its Idempotency-Key.
type integratedUser struct {
	id, email, department, answer string
	told                          []domain.EventType
}

// begin has the integrators work until end.
func (c *twoCells) begin() {
	c.t.Helper()
	c.prepare()
	other := c.newKey(seed.OtherDemoPartner)
	c.integrators = []*integrator{
		{name: "older", key: c.newKey(seed.DemoPartner), moves: true, client: c.worked},
		{name: "newer", key: c.newKey(seed.DemoPartner), moves: true, client: c.worked},
		{name: "other", key: other, client: c.other},
	}
	turns := []func(*integrator, string) bool{(*integrator).older, (*integrator).newer, (*integrator).both}
	for n, i := range c.integrators {
		i.twoCells, i.ended, i.events = c, make(chan struct{}), &eventReader{limit: pageOfWalk}
		go func() {
			defer close(i.ended)
			for !i.stopped.Load() && turns[n](i, fmt.Sprintf("%s%d", i.name, i.rounds.Load())) {
				i.rounds.Add(1)
			}
		}()
	}
	c.t.Cleanup(c.end)
}

// end returns once all integrators have ended.
func (c *twoCells) end() {
	for _, i := range c.integrators {
		i.stopped.Store(true)
	}
	for _, i := range c.integrators {
		<-i.ended
	}
}

// await waits until each integrator has made so many rounds more.
func (c *twoCells) await(more int64) {
	c.t.Helper()
	for _, i := range c.integrators {
		want := i.rounds.Load() + more
		await(c.t, i.name+" makes its requests", func() bool {
			if c.t.Failed() {
				c.t.FailNow()
			}
			return i.rounds.Load() >= want
		})
	}
}

// ask sends a request, and a write again that is refused while the partner is moved.
// Nothing else but success is an answer.
func (i *integrator) ask(method, path string, body any, headers ...string) (response, bool) {
	return i.router.insist(i.key, func(a response) bool {
		i.refused++
		return i.moves && method != http.MethodGet && a.status == http.StatusServiceUnavailable
	}, method, path, body, headers...)
}

// older is a round of requests of version 1: a user is made and changed, and a page by offset is read of a list that
// nobody changes.
func (i *integrator) older(name string) bool {
	client := fmt.Sprintf("/v1/clients/%d", i.client.number)
	u := &integratedUser{email: name + "@example.com"}
	answer, ok := i.ask("POST", client+"/users", bodyOf(u.email))
	if !ok || !i.change(u, answer, "POST", "/v1/users/", fields{"preferred_language": "es"}) {
		return false
	}
	answer, ok = i.ask("GET", fmt.Sprintf("/v1/clients/%d/users?limit=%d&offset=%d", i.quiet.number, pageOfWalk, len(i.walk)), nil)
	if !ok {
		return false
	}
	page := into[struct {
		Items []identified
		Total int
	}](answer)
	i.walked(page.Items, len(i.walk)+len(page.Items) < page.Total, i.before.v1Users)
	return true
}

// newer is a round of requests of version 2: a user is made and changed, and a page is
// read of the events and of a list that nobody changes, both by cursor.
func (i *integrator) newer(name string) bool {
	if !i.writeUser(name) || !i.follow() {
		return false
	}
	answer, ok := i.get(pagePathOf("/v2/clients/"+i.quiet.id+"/users", pageOfWalk, i.next))
	if !ok {
		return false
	}
	page := into[listPage[identified]](answer)
	i.next = page.Page.Next
	i.walked(page.Data, page.Page.More, i.before.v2Users)
	return true
}

// both is a round of the other partner.
func (i *integrator) both(name string) bool {
	if !i.writeUser(name) || !i.follow() {
		return false
	}
	_, ok := i.ask("GET", fmt.Sprintf("/v1/clients/%d/users", i.client.number), nil)
	return ok
}

// writeUser makes and changes a user by version 2.
func (i *integrator) writeUser(name string) bool {
	u := &integratedUser{email: name + "@example.com", department: name}
	answer, ok := i.ask("POST", "/v2/clients/"+i.client.id+"/users", bodyOf(u.email), "Idempotency-Key", u.email)
	u.answer = string(answer.body)
	return ok && i.change(u, answer, "PATCH", "/v2/users/", fields{"department": u.department})
}

// change changes a user whose creation was answered.
func (i *integrator) change(u *integratedUser, made response, method, path string, body fields) bool {
	u.id, u.told = into[identified](made).ID, []domain.EventType{domain.UserCreated}
	i.users = append(i.users, u)
	_, ok := i.ask(method, path+u.id, body)
	if ok {
		u.told = append(u.told, domain.UserUpdated)
	}
	return ok
}

func bodyOf(email string) fields {
	return fields{"email": email, "first_name": "Ada", "last_name": "Example"}
}

// get reads a path.
func (i *integrator) get(path string) (response, bool) { return i.ask("GET", path, nil) }

// follow reads the next page of the events.
func (i *integrator) follow() bool {
	_, ok := i.events.page(i.get)
	return ok
}

// walked takes the next page of a walk, and holds a whole one against the list.
func (i *integrator) walked(page []identified, more bool, whole []string) {
	for _, item := range page {
		i.walk = append(i.walk, item.ID)
	}
	if more {
		return
	}
	if fmt.Sprint(i.walk) != fmt.Sprint(whole) {
		i.t.Errorf("%s: walked %v, and the list is %v", i.name, i.walk, whole)
	}
	i.walk, i.next = nil, ""
}
