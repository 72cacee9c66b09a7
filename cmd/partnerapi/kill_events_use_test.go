//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"time"

	"partnerapi/domain"
)

// subject is a client or a user that was written, with the events that are to tell
// of it.
type subject struct {
	label  string // a client's name, a user's address
	id     string // of a client, where it is known
	number int    // of a client, in v1
	client string // the label of a user's client
	// told are the events of the answered writes, in their order. doubt is that of a
	// write that was not answered, after which there is none: it may be there or not.
	told  []domain.EventType
	doubt domain.EventType
	// path and body are those of its creation by v2, and answer is what that was answered.
	path   string
	body   fields
	answer []byte
}

// author writes for a tenant: clients, and users of these and of the tenant's own.
type author struct {
	name, key string
	old       bool // writes by v1
	clients   []subject
	chance    *rand.Rand
	subjects  []*subject
}

// write writes until the service is dead.
func (a *author) write(r *round) {
	for !r.ended() {
		client := &a.clients[a.chance.IntN(len(a.clients))]
		if a.chance.IntN(4) == 0 {
			if client = a.client(r); client == nil {
				continue
			}
		}
		a.user(r, client)
	}
}

func (a *author) begin(label string) *subject {
	s := &subject{label: label}
	a.subjects = append(a.subjects, s)
	return s
}

// do sends a write of a subject, which an event is to tell of.
func (a *author) do(r *round, s *subject, event domain.EventType, method, path string, body any, headers ...string) (response, bool) {
	answer, ok := r.send(false, method, path, a.key, body, headers...)
	if !ok {
		s.doubt = event
		return answer, false
	}
	s.told = append(s.told, event)
	r.wrote()
	return answer, true
}

// create sends the creation of a subject.
func (a *author) create(r *round, s *subject, event domain.EventType, path string, body fields) (response, bool) {
	if a.old {
		return a.do(r, s, event, "POST", path, body)
	}
	s.path, s.body = path, body
	answer, ok := a.do(r, s, event, "POST", path, body, "Idempotency-Key", s.label)
	if ok {
		s.answer = answer.body
	}
	return answer, ok
}

// client makes a client; nil if that was not answered.
func (a *author) client(r *round) *subject {
	s := a.begin(fmt.Sprintf("%s client %d", a.name, len(a.subjects)))
	path, body := "/v2/clients", fields{"name": s.label}
	if a.old {
		path, body = "/v1/clients", fields{"company_name": s.label}
	}
	answer, ok := a.create(r, s, domain.ClientCreated, path, body)
	if !ok {
		return nil
	}
	if a.old {
		s.number = into[numbered](answer).ID
	} else {
		s.id = into[identified](answer).ID
	}
	return s
}

// user makes a user, changes them, and deactivates some.
func (a *author) user(r *round, client *subject) {
	s := a.begin(fmt.Sprintf("%s.user%d@example.com", a.name, len(a.subjects)))
	s.client = client.label
	path := "/v2/clients/" + client.id + "/users"
	if a.old {
		path = fmt.Sprintf("/v1/clients/%d/users", client.number)
	}
	body := fields{"email": s.label, "first_name": "Ada", "last_name": "Example"}
	answer, ok := a.create(r, s, domain.UserCreated, path, body)
	if !ok {
		return
	}
	method, path := "PATCH", "/v2/users/"+into[identified](answer).ID
	if a.old {
		method, path = "POST", "/v1/users/"+into[identified](answer).ID
	}
	for i := range a.chance.IntN(4) {
		body := fields{"department": strconv.Itoa(i + 1)}
		if a.old {
			body = fields{"preferred_language": []string{"es", "fr-ca", "en"}[i%3]}
		}
		if _, ok := a.do(r, s, domain.UserUpdated, method, path, body); !ok {
			return
		}
	}
	if a.chance.IntN(2) == 0 {
		a.do(r, s, domain.UserDeactivated, method, path, fields{"status": "inactive"})
	}
}

// told is an event as the list shows it.
type told struct {
	text string // the bytes of the item

	ID       string
	Type     domain.EventType
	ClientID string `json:"client_id"`
	Data     struct {
		ID, Name, Email string
		Department      *string
	}
}

// textsOf are the events of some clients, or of all, as they are listed.
func textsOf(events []told, clients []string) (texts []string) {
	for _, e := range events {
		if clients == nil || slices.Contains(clients, e.ClientID) {
			texts = append(texts, e.text)
		}
	}
	return texts
}

// label is that of the subject that it tells of.
func (e *told) label() string {
	if e.Type == domain.ClientCreated {
		return e.Data.Name
	}
	return e.Data.Email
}

// eventReader follows the events that a key reaches, by a cursor that outlives the
// service.
type eventReader struct {
	key    string
	limit  int
	reach  []string // the key's clients; nil for all
	cursor string
	events []told
}

// follow reads now and then, until the service is dead.
func (f *eventReader) follow(r *round) {
	for f.read(r.reads(f.key)) {
		select {
		case <-r.over:
			return
		case <-time.After(3 * retryPause):
		}
	}
}

// read reads to the end of what is there; false if get was not answered.
func (f *eventReader) read(get func(path string) (response, bool)) bool {
	for more := true; more; {
		var ok bool
		if more, ok = f.page(get); !ok {
			return false
		}
	}
	return true
}

// page reads the next page, and reports whether there are more.
func (f *eventReader) page(get func(path string) (response, bool)) (more, ok bool) {
	answer, ok := get(pagePathOf("/v2/events", f.limit, f.cursor))
	if !ok {
		return false, false
	}
	page := into[listPage[json.RawMessage]](answer)
	for _, item := range page.Data {
		e := told{text: string(item)}
		if err := json.Unmarshal(item, &e); err != nil {
			answer.t.Error(err)
		}
		f.events = append(f.events, e)
	}
	f.cursor = page.Page.Next
	return page.Page.More, true
}

// listPage is a page of a list of version 2.
type listPage[T any] struct {
	Data []T
	Page struct {
		Next string `json:"next_cursor"`
		More bool   `json:"has_more"`
	}
}

// pagePathOf is the path of the page of a list behind a cursor; "" is for the first.
func pagePathOf(list string, limit int, cursor string) string {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return list + "?" + query.Encode()
}
