//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

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

	refused     int // answers of 503
	users       []*integratedUser
	collections map[string]int    // numbers by name
	made        []idempotentWrite // by v2
	events      *eventReader
	walk        []string // what was listed of the walk in progress
	next        string   // its cursor, or its offset
}

// integratedUser is a user whom an integrator made, as far as it was told.
type integratedUser struct {
	id, email, department string
	told                  []domain.EventType
}

// idempotentWrite is a write with an Idempotency-Key that is the user's address.
type idempotentWrite struct {
	email  string
	answer string
}

// begin has the integrators work until end.
func (c *twoCells) begin() {
	c.t.Helper()
	c.prepare()
	c.work()
	other := c.newKey(seed.OtherDemoPartner)
	c.integrators = []*integrator{
		{name: "older", key: c.newKey(seed.DemoPartner), moves: true, client: c.worked},
		{name: "newer", key: c.newKey(seed.DemoPartner), moves: true, client: c.worked},
		{name: "other", key: other, client: c.other},
	}
	turns := []func(*integrator, string) bool{(*integrator).older, (*integrator).newer, (*integrator).both}
	for n, i := range c.integrators {
		i.twoCells, i.ended, i.collections = c, make(chan struct{}), map[string]int{}
		i.events = newEventReader(i.key, pageOfWalk, nil)
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
		for deadline := time.Now().Add(2 * patience); i.rounds.Load() < want; <-time.After(retryPause) {
			if c.t.Failed() || time.Now().After(deadline) {
				c.t.Fatalf("%s has made %d rounds of requests, not %d", i.name, i.rounds.Load(), want)
			}
		}
	}
}

// ask sends a request, and a write again that is refused while the partner is moved.
// Nothing else but success is an answer.
func (i *integrator) ask(method, path string, body any, headers ...string) (response, bool) {
	for range mostTries {
		answer, err := i.router.try(method, path, i.key, body, headers...)
		if err != nil {
			i.t.Errorf("%s: %s %s is not answered: %v", i.name, method, path, err)
			return answer, false
		}
		<-time.After(thinking)
		if answer.status >= 200 && answer.status <= 299 {
			return answer, true
		}
		wait, err := strconv.Atoi(answer.header.Get("Retry-After"))
		if !i.moves || method == http.MethodGet || err != nil || answer.status != http.StatusServiceUnavailable {
			i.t.Errorf("%s: %s %s answers %d %v: %s", i.name, method, path, answer.status, answer.header, answer.body)
			return answer, false
		}
		i.refused++
		<-time.After(time.Duration(wait) * time.Second)
	}
	i.t.Errorf("%s: %s %s was refused %d times", i.name, method, path, mostTries)
	return response{}, false
}

// older is a round of requests of version 1: a user is made and changed, a collection is
// made, the user moves there, and a page by offset is read of a list that nobody changes.
func (i *integrator) older(name string) bool {
	client := fmt.Sprintf("/v1/clients/%d", i.client.number)
	u := &integratedUser{email: name + "@example.com"}
	answer, ok := i.ask("POST", client+"/users", fields{"email": u.email, "first_name": "Ada", "last_name": "Example"})
	if !ok {
		return false
	}
	u.id, u.told = into[identified](answer).ID, []domain.EventType{domain.UserCreated}
	i.users = append(i.users, u)
	if _, ok = i.ask("POST", "/v1/users/"+u.id, fields{"preferred_language": "es"}); !ok {
		return false
	}
	u.told = append(u.told, domain.UserUpdated)
	if answer, ok = i.ask("POST", client+"/collections", fields{"name": name}); !ok {
		return false
	}
	i.collections[name] = into[numbered](answer).ID
	if _, ok = i.ask("POST", fmt.Sprintf("%s/collections/%d/members", client, i.collections[name]), fields{"user_infima_id": u.id}); !ok {
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
	answer, ok := i.ask("GET", i.pageOf("/v2/clients/"+i.quiet.id+"/users", i.next), nil)
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
	if !ok {
		return false
	}
	i.made = append(i.made, idempotentWrite{u.email, string(answer.body)})
	u.id, u.told = into[identified](answer).ID, []domain.EventType{domain.UserCreated}
	i.users = append(i.users, u)
	if _, ok = i.ask("PATCH", "/v2/users/"+u.id, fields{"department": u.department}); ok {
		u.told = append(u.told, domain.UserUpdated)
	}
	return ok
}

func bodyOf(email string) fields {
	return fields{"email": email, "first_name": "Ada", "last_name": "Example"}
}

// listPage is a page of a list of version 2.
type listPage[T any] struct {
	Data []T
	Page struct {
		Next string `json:"next_cursor"`
		More bool   `json:"has_more"`
	}
}

func (i *integrator) pageOf(list, cursor string) string {
	query := url.Values{"limit": {strconv.Itoa(pageOfWalk)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return list + "?" + query.Encode()
}

// follow reads the next page of the events.
func (i *integrator) follow() bool {
	answer, ok := i.ask("GET", i.pageOf("/v2/events", i.events.cursor), nil)
	if !ok {
		return false
	}
	page := into[listPage[json.RawMessage]](answer)
	for _, item := range page.Data {
		e := told{text: string(item)}
		if err := json.Unmarshal(item, &e); err != nil {
			i.t.Error(err)
		}
		i.events.events = append(i.events.events, e)
	}
	i.events.cursor = page.Page.Next
	return true
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
