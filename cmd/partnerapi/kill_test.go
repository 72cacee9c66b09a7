//go:build slow

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// killAfter is how many answers the load gets before the service is killed.
const killAfter = 160

// TestAnsweredIsKept kills the service in the middle of writes and then its
// database: what was answered with success is there, and what is sent again
// with its Idempotency-Key is not done again.
func TestAnsweredIsKept(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	must(t, "migrate", "--data-dir="+dir)
	must(t, "partners", "create", "Acme", "--data-dir="+dir)
	first := process(t, dir, "--release=latest")
	l := load{kill: sync.OnceFunc(first.kill)}
	for i := range 4 {
		key := must(t, "keys", "create", "--data-dir="+dir, "--name=load", "--clients=all", "--scopes=read,write")
		l.writers = append(l.writers, &writer{name: fmt.Sprintf("writer%d", i), key: strings.TrimSpace(key), old: i%2 == 1 && older(), load: &l})
	}
	var group sync.WaitGroup
	for _, w := range l.writers {
		if w.old {
			group.Go(func() { w.writeV1(first.client) })
		} else {
			group.Go(func() { w.writeV2(first.client) })
		}
	}
	group.Wait()
	if n := l.answered.Load(); n < killAfter {
		t.Fatalf("only %d requests were answered", n)
	}
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	second := process(t, dir, "--release=latest")
	for _, w := range l.writers {
		for _, written := range w.written {
			switch {
			case !w.old:
				w.checkV2(second, written)
			case written.number > 0: // else it was not answered
				w.checkV1(second, written)
			}
		}
	}
	if older() {
		checkNumbers(second, l.writers)
	}
	second.finish()
}

// load is the writers of a test together.
type load struct {
	writers  []*writer
	answered atomic.Int64
	kill     func()
}

// writer creates clients, one after the other, each with a user.
type writer struct {
	name, key string
	old       bool // writes by v1
	load      *load
	written   []*written
}

// written is a client and a user as a writer knows them. What was not answered
// is not known: it may be there or not.
type written struct {
	name, email  string
	number       int // by v1
	client, user response
	industry     bool // its change was answered
	language     bool
}

// send sends a request until the service is gone; it is true for an answer.
func (w *writer) send(c caller, method, path string, body any, headers ...string) (response, bool) {
	r, err := c.try(method, path, w.key, body, headers...)
	if err != nil {
		return response{}, false
	}
	if r.status < 200 || r.status > 299 {
		c.t.Errorf("%s %s answers %d: %s", method, path, r.status, r.body)
		return r, false
	}
	if w.load.answered.Add(1) == killAfter {
		w.load.kill()
	}
	return r, true
}

func (w *writer) begin() *written {
	n := len(w.written)
	next := &written{name: fmt.Sprintf("%s client %d", w.name, n), email: fmt.Sprintf("%s.user%d@example.com", w.name, n)}
	w.written = append(w.written, next)
	return next
}

func (x *written) clientBody() fields { return fields{"name": x.name} }

func (x *written) userBody() fields {
	return fields{"email": x.email, "first_name": "Ada", "last_name": "Example"}
}

func (w *writer) writeV2(c caller) {
	for {
		x := w.begin()
		var ok bool
		if x.client, ok = w.send(c, "POST", "/v2/clients", x.clientBody(), "Idempotency-Key", x.name); !ok {
			return
		}
		client := "/v2/clients/" + into[identified](x.client).ID
		if _, x.industry = w.send(c, "PATCH", client, fields{"industry": "Retail"}); !x.industry {
			return
		}
		if x.user, ok = w.send(c, "POST", client+"/users", x.userBody(), "Idempotency-Key", x.email); !ok {
			return
		}
		user := "/v2/users/" + into[identified](x.user).ID
		if _, x.language = w.send(c, "PATCH", user, fields{"preferred_language": "es"}); !x.language {
			return
		}
	}
}

func (w *writer) writeV1(c caller) {
	for {
		x := w.begin()
		var ok bool
		if x.client, ok = w.send(c, "POST", "/v1/clients", fields{"company_name": x.name}); !ok {
			return
		}
		x.number = into[numbered](x.client).ID
		if x.user, ok = w.send(c, "POST", fmt.Sprintf("/v1/clients/%d/users", x.number), x.userBody()); !ok {
			return
		}
		if _, x.language = w.send(c, "POST", "/v1/users/"+into[identified](x.user).ID, fields{"preferred_language": "es"}); !x.language {
			return
		}
	}
}

// checkV2 looks for what a writer wrote, and sends its creation again.
func (w *writer) checkV2(r *running, x *written) {
	r.t.Helper()
	again := r.do("POST", "/v2/clients", w.key, x.clientBody(), "Idempotency-Key", x.name).want(http.StatusCreated)
	if x.client.body != nil && string(again.body) != string(x.client.body) {
		r.t.Errorf("created\n%s\nthen again\n%s", x.client.body, again.body)
	}
	path := "/v2/clients/" + into[identified](again).ID
	client := into[fields](r.get(path, w.key).want(http.StatusOK))
	if client["name"] != x.name || x.industry && client["industry"] != "Retail" {
		r.t.Errorf("the client is %v", client)
	}
	again = r.do("POST", path+"/users", w.key, x.userBody(), "Idempotency-Key", x.email).want(http.StatusCreated)
	if x.user.body != nil && string(again.body) != string(x.user.body) {
		r.t.Errorf("created\n%s\nthen again\n%s", x.user.body, again.body)
	}
	users := into[struct{ Data []fields }](r.get(path+"/users", w.key).want(http.StatusOK)).Data
	if len(users) != 1 || users[0]["email"] != x.email || x.language && users[0]["preferred_language"] != "es" {
		r.t.Errorf("the users are %v", users)
	}
}

// checkV1 looks for what a writer wrote, under its numbers.
func (w *writer) checkV1(r *running, x *written) {
	r.t.Helper()
	clients := into[struct{ Items []numbered }](r.get(fmt.Sprintf("/v1/clients?ids=%d", x.number), w.key).want(http.StatusOK)).Items
	if len(clients) != 1 || clients[0].ClientName != x.name {
		r.t.Errorf("client %d was %q and is %v", x.number, x.name, clients)
	}
	r.do("POST", "/v1/clients", w.key, fields{"company_name": x.name}).want(http.StatusConflict)
	users := into[struct{ Items []fields }](r.get(fmt.Sprintf("/v1/clients/%d/users", x.number), w.key).want(http.StatusOK)).Items
	switch {
	case len(users) > 1:
		r.t.Errorf("the users are %v", users)
	case x.user.body == nil: // not answered
	case len(users) == 0 || users[0]["id"] != into[identified](x.user).ID || x.language && users[0]["preferred_language"] != "es":
		r.t.Errorf("the users are %v", users)
	}
}

// checkNumbers wants each client to have a number of its own, and the next
// client one above them all.
func checkNumbers(r *running, writers []*writer) {
	r.t.Helper()
	key := writers[0].key
	var numbers []int
	for total := 1; len(numbers) < total; {
		page := into[struct {
			Items []numbered
			Total int
		}](r.get(fmt.Sprintf("/v1/clients?limit=50&offset=%d", len(numbers)), key).want(http.StatusOK))
		if len(page.Items) == 0 {
			r.t.Fatalf("%d of %d clients", len(numbers), page.Total)
		}
		for _, item := range page.Items {
			numbers = append(numbers, item.ID)
		}
		total = page.Total
	}
	slices.Sort(numbers)
	if all := len(numbers); len(slices.Compact(numbers)) != all {
		r.t.Error("two clients have one number")
	}
	next := into[numbered](r.do("POST", "/v1/clients", key, fields{"company_name": "After all"}).want(http.StatusCreated))
	if highest := numbers[len(numbers)-1]; next.ID <= highest {
		r.t.Errorf("the client after %d got %d", highest, next.ID)
	}
}
