package v2_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// posts runs a subtest for every POST of the set that takes a body.
func (w *world) posts(t *testing.T, fn func(t *testing.T, w *world, o op.Operation, path string)) {
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().Method == "POST" && o.Input().Body != nil {
			fn(t, w, o, pathOf(t, o, w.ids()))
		}
	})
}

// TestIdempotency holds decisions 3.11 for every POST.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	twin := w.AddClient(w.tenant, "Twin")
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().Method != "POST" {
			return
		}
		path, key := pathOf(t, o, w.ids()), w.AddKey(w.tenant, bothScopes, nil)
		sample := func() any { // another each time, of an operation that takes a body
			if o.Input().Body == nil {
				return nil
			}
			return w.body(o)
		}
		named := strings.Repeat("~", 255-len(o.Meta().ID)) + o.Meta().ID // as long as it may be
		post := func(key, path string, body any) v2test.Response {
			return w.Do("POST", path, key, body, "Idempotency-Key", named)
		}
		body := sample()
		first := post(key, path, body).Want(o.Meta().Status)
		after := w.contents()
		for range 3 {
			again := post(key, path, body)
			if again.Status != first.Status || string(again.Body) != string(first.Body) || again.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
				t.Errorf("replays %d %s\nof %d %s", again.Status, again.Body, first.Status, first.Body)
			}
			checkHeaders(t, again)
			if again.Header.Get("X-Request-Id") == first.Header.Get("X-Request-Id") {
				t.Error("a replay has the request id of the first")
			}
		}
		if body != nil {
			checkError(t, post(key, path, sample()), domain.Conflict)
		}
		checkError(t, post(key, path+"?x=1", body), domain.Conflict)
		if strings.Contains(o.Meta().Path, ":client_id") {
			at := w.ids()
			at["client_id"] = twin.ID.String()
			checkError(t, post(key, pathOf(t, o, at), body), domain.Conflict)
		}
		if w.contents() != after {
			t.Error("replays and conflicts changed something")
		}
		// Another API key has its own; so has the same one a day later.
		post(w.AddKey(w.tenant, bothScopes, nil), pathOf(t, o, w.ids()), sample()).Want(o.Meta().Status)
		w.Clock.Advance(domain.OutcomeLife - time.Microsecond)
		if r := post(key, path, body); string(r.Body) != string(first.Body) {
			t.Errorf("just within a day, replays %s", r.Body)
		}
		w.Clock.Advance(time.Microsecond)
		fresh := sample()
		renewed := post(key, path, fresh).Want(o.Meta().Status)
		if r := post(key, path, fresh); string(r.Body) != string(renewed.Body) {
			t.Errorf("a key that is used anew replays %s, not %s", r.Body, renewed.Body)
		}
	})
}

// reordered returns a body with its members in another order, with white space, and its numbers and characters written
// in another way.
func reordered(t *testing.T, body map[string]any) string {
	t.Helper()
	text := "\ufeff \n{"
	for i, name := range slices.Backward(slices.Sorted(maps.Keys(body))) {
		value, err := json.Marshal(body[name])
		if err != nil {
			t.Fatal(err)
		}
		if name = fmt.Sprintf("\t%q : ", name); i > 0 {
			value = append(value, ',')
		}
		text += strings.Replace(name, "e", `\u0065`, 1) + string(value)
	}
	return text + "}\r\n"
}

// TestIdempotencyIsCanonical verifies for every POST that a retry with the same JSON, written differently, is the same
// request, and that records of 1.0 are compared as 1.0 did.
func TestIdempotencyIsCanonical(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.posts(t, func(t *testing.T, w *world, o op.Operation, path string) {
		body := w.body(o)
		post := func(key string, body any) v2test.Response {
			return w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", key)
		}
		replays := func(key string, body any, first v2test.Response) {
			t.Helper()
			r := post(key, body)
			if r.Header.Get("Idempotent-Replayed") != "true" || string(r.Body) != string(first.Body) {
				t.Errorf("%s: got %d %s, want %s again", body, r.Status, r.Body, first.Body)
			}
		}
		plain, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		key := o.Meta().ID
		first := post(key, string(plain)).Want(o.Meta().Status)
		replays(key, reordered(t, body), first)
		replays(key, " "+string(plain), first)
		checkError(t, post(key, w.body(o)), domain.Conflict)

		// What 1.0 compares is what it would have recorded.
		exact := sha256.Sum256(append([]byte(path+"\x00"), plain...))
		if n := w.Number("SELECT count(*) FROM idempotency_records WHERE idempotency_key = $1 AND request_hash = $2", key, exact[:]); n != 1 {
			t.Error("1.0 does not know the record")
		}
		// A record of 1.0.
		w.Exec("UPDATE idempotency_records SET canonical_hash = NULL WHERE idempotency_key = $1", key)
		replays(key, string(plain), first)
		checkError(t, post(key, reordered(t, body)), domain.Conflict)
		// A record that 1.0 has replaced by that of another request.
		second := post(key+" 2", reordered(t, body))
		if second.Status != o.Meta().Status { // the object is there
			return
		}
		w.Exec("UPDATE idempotency_records SET request_hash = sha256('another') WHERE idempotency_key = $1", key+" 2")
		checkError(t, post(key+" 2", reordered(t, body)), domain.Conflict)
		checkError(t, post(key+" 2", string(plain)), domain.Conflict)
	})
}

// repeats are the operations that change nothing when they are asked again for
// what is so already, as the samples do.
var repeats = map[string]bool{"collections.members.add": true, "training.assign": true, "training.remind": true}

// written are tables of which every POST that takes a body writes one.
var written = []string{"events", "mail_requests", "collections", "phishing_results", "framework_assignments", "webhooks", "reports"}

// TestFailuresAreNotKept: after a failure the key is free, and nothing of the
// failed work is left.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Log: &strings.Builder{}})
	w.posts(t, func(t *testing.T, w *world, o op.Operation, path string) {
		headers := []string{"Idempotency-Key", o.Meta().ID}
		body := w.body(o)
		w.Do("POST", path, w.tenant.Key, body).Want(o.Meta().Status)
		before := w.contents()
		if slices.Contains(o.Meta().Fails, domain.Conflict) {
			checkError(t, w.Do("POST", path, w.tenant.Key, body, headers...), domain.Conflict) // the object is there
		}
		checkError(t, w.Do("POST", path, w.tenant.Key, `{"unknown":1}`, headers...), domain.InvalidRequest)
		checkError(t, w.Do("POST", path, w.tenant.Key, blanked(w, o), headers...), domain.InvalidRequest)
		// The record itself cannot be written: the work is rolled back with it.
		w.Exec("ALTER TABLE idempotency_records ADD CONSTRAINT never CHECK (false) NOT VALID")
		checkError(t, w.send(o, w.tenant.Key, w.ids(), headers...), domain.Internal)
		w.Exec("ALTER TABLE idempotency_records DROP CONSTRAINT never")
		if repeats[o.Meta().ID] {
			return
		}
		// The event, or what is to be done later, cannot be written: so is neither the object.
		for _, table := range written {
			w.Exec("ALTER TABLE " + table + " ADD CONSTRAINT never CHECK (false) NOT VALID")
		}
		checkError(t, w.send(o, w.tenant.Key, w.ids(), headers...), domain.Internal)
		checkError(t, w.send(o, w.tenant.Key, w.ids()), domain.Internal)
		for _, table := range written {
			w.Exec("ALTER TABLE " + table + " DROP CONSTRAINT never")
		}
		if after := w.contents(); after != before {
			t.Errorf("failures left\n%s\nwas\n%s", after, before)
		}
		w.send(o, w.tenant.Key, w.ids(), headers...).Want(o.Meta().Status)
	})
}

// TestRunningDuplicate: while the first is running, a repetition gets
// Retry-After: 1. The first is held up by a lock on what it writes.
func TestRunningDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.posts(t, func(t *testing.T, w *world, o op.Operation, path string) {
		body := w.body(o)
		post := func() v2test.Response { return w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", o.Meta().ID) }
		tx, err := w.DB.SQL().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "LOCK TABLE events, mail_requests, users, collections, collection_members, phishing_results, reports, webhooks IN EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		first := make(chan v2test.Response, 1)
		go func() { first <- post() }()
		for w.Number("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
			if len(first) > 0 {
				t.Fatal("the first was not held up")
			}
		}
		r := checkError(t, post(), domain.Conflict)
		if r.Header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		done := (<-first).Want(o.Meta().Status)
		if again := post(); string(again.Body) != string(done.Body) || again.Header.Get("Retry-After") != "" {
			t.Errorf("then replays %s", again.Body)
		}
	})
}

// TestConcurrentDuplicates: of many at once, exactly one has an effect.
func TestConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.posts(t, func(t *testing.T, w *world, o op.Operation, path string) {
		body := w.body(o)
		var mu sync.Mutex
		bodies, busy := map[string]int{}, 0
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				r := w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", o.Meta().ID)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.Status == o.Meta().Status:
					bodies[string(r.Body)]++
				case r.Status == http.StatusConflict && r.Header.Get("Retry-After") == "1":
					busy++
				default:
					t.Errorf("answers %d %s", r.Status, r.Body)
				}
			})
		}
		all.Wait()
		if len(bodies) != 1 {
			t.Errorf("%d different outcomes, %d busy", len(bodies), busy)
		}
	})
	counts := fmt.Sprint(w.Number("SELECT count(*) FROM clients"), w.Number("SELECT count(*) FROM users"), w.Number("SELECT count(*) FROM admin_invites"))
	if counts != "2 2 1" {
		t.Errorf("clients, users and invites are %s", counts)
	}
}

// TestIdempotencyKeyElsewhere: only a POST looks at it.
func TestIdempotencyKeyElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().Method != "POST" {
			w.send(o, w.tenant.Key, w.ids(), "Idempotency-Key", strings.Repeat("k", 300)).Want(o.Meta().Status)
			w.send(o, w.tenant.Key, w.ids(), "Idempotency-Key", "same").Want(o.Meta().Status)
		}
	})
	if n := w.Number("SELECT count(*) FROM idempotency_records"); n != 0 {
		t.Errorf("%d outcomes are recorded", n)
	}
}
