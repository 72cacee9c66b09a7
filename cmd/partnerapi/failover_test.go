//go:build slow

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	failoverWriters = 6
	// writesBefore and writesAfter are how many writes each of them makes before the
	// primary is killed, and at least after the other server was promoted.
	writesBefore, writesAfter = 20, 20
	// refusedBefore is how often each is refused before the promotion.
	refusedBefore = 2
	// thinking is the pause of a writer between two writes, which keeps it below the rate
	// limit of its key.
	thinking = 120 * time.Millisecond
	// readsOfKey is how often a key is used to read in the end.
	readsOfKey = 500
	// mostTries bounds the tries of a write, through the whole outage.
	mostTries = 60
	// mostRefusals is how often a write that begins after the promotion may be refused by
	// 503: once by what is left of the old connections, and once for the key.
	mostRefusals = 2
)

// TestFailover kills the primary of a pair with synchronous replication by kill -9 while
// six callers write through two replicas, and a third process does the background work.
// The standby is promoted, and the old primary comes back as a standby by pg_rewind. No
// write that was answered is lost or made twice, no answer is 500, no process ends, and
// no mail or event that was sent after the promotion is sent twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	f.write()
	f.turn()
	f.stop()
	f.check()
}

// turn has the servers change places, by the death of the primary.
func (f *failover) turn() {
	f.t.Helper()
	f.mu.Lock()
	f.promoted = time.Time{}
	for _, w := range f.writers {
		w.before, w.since, w.goesOn, w.refused = 0, 0, 0, 0
	}
	f.mu.Unlock()
	f.await(func(w *failoverWriter) bool { return w.before >= writesBefore })
	f.fail()
	f.await(func(w *failoverWriter) bool { return w.since >= writesAfter })
	f.was.rejoin(f.primary, f.commands[2])
	f.primary.awaits(f.was)
	f.report()
}

// failover is a service on a pair of servers.
type failover struct {
	t            *testing.T
	commands     []string // of the handbook
	primary, was *node    // was the primary, or is the standby at first
	replicas     []*running
	work         *running
	office       *postOffice
	events       *inbox
	writers      []*failoverWriter
	writing      sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed by the next answer
	promoted time.Time     // zero before
	stopped  bool
}

func newFailover(t *testing.T) *failover {
	p := newPostgres(t, "pg_rewind", "psql")
	f := &failover{
		t: t, commands: chapter(t, "High availability", 3), primary: p.primary("a"), changed: make(chan struct{}),
	}
	must(t, "migrate", "--database-url="+reach(f.primary))
	f.was = f.primary.standby("b")
	f.primary.awaits(f.was)

	f.office = openPostOffice(t, func(_ letter, take func()) bool { take(); return true })
	f.events = newInbox(t)
	args := []string{
		"--database-url=" + reach(f.primary, f.was),
		"--replica-url=" + strings.ReplaceAll(reach(f.primary, f.was), "read-write", "standby"), "--encryption-key=" + freshKey(t),
		"--webhook-allow-private", "--webhook-ca=" + f.events.ca,
	}
	for range 2 {
		f.replicas = append(f.replicas, process(t, t.TempDir(), append(args, "--no-work", "--release=latest")...))
	}
	f.work = working(t, append(args, "--public-url=http://127.0.0.1", "--smtp-url=smtp://"+f.office.address)...)
	must(t, "partners", "create", "Acme", "--database-url="+reach(f.primary))
	for i := range failoverWriters {
		f.writers = append(f.writers, &failoverWriter{
			failover: f, to: f.replicas[i%2], name: fmt.Sprintf("writer%d", i),
			key: f.key(),
		})
	}
	f.replicas[0].do("POST", "/v2/webhooks", f.writers[0].key,
		fields{"url": f.events.server.URL, "events": []string{"client.created", "user.created"}}).want(http.StatusCreated)
	f.checkReplica()
	return f
}

func (f *failover) key() string {
	f.t.Helper()
	return strings.TrimSpace(must(f.t, "keys", "create", "--database-url="+reach(f.primary), "--name=load", "--clients=all",
		"--scopes=read,write"))
}

// working runs work as a process of its own.
func working(t *testing.T, args ...string) *running {
	t.Helper()
	r := spawned(t, append([]string{"work", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir()}, args...)...)
	found := r.logs.await(watchedAt, r.ended)
	if found == nil {
		t.Fatalf("nothing is served:\n%s", r.logs)
	}
	r.address = "http://" + found[1]
	return r
}

// inbox is the endpoint of a webhook.
type inbox struct {
	t      *testing.T
	server *httptest.Server
	ca     string

	mu     sync.Mutex
	got    map[string][]arrival // by the event's id
	secret string               // what signatures are held against, once it is known
}

type arrival struct {
	body string
	at   time.Time
}

func newInbox(t *testing.T) *inbox {
	i := &inbox{t: t, got: map[string][]arrival{}}
	i.server, i.ca = endpointOf(t, i, false)
	return i
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	id := r.Header.Get("Webhook-Id")
	if i.secret != "" {
		if err := verified(r.Header, i.secret, body); err != nil {
			i.t.Errorf("%s: %v", body, err)
		}
	}
	i.got[id] = append(i.got[id], arrival{string(body), time.Now()})
}

// failoverWriter makes clients, each with a user who is welcomed by mail. It sends each
// request until it is answered with success, with one Idempotency-Key.
type failoverWriter struct {
	*failover
	to        *running
	name, key string
	done      []failoverWrite
	// Of this turn: before is how many writes were done before the promotion, and since how
	// many that began after it; the first was done goesOn after it. refused counts answers
	// of 503.
	before, since, refused int
	goesOn                 time.Duration
	// refusals is how often a write was refused at most that began after a promotion.
	refusals int
}

// failoverWrite is the path of an object that was made, and its client's name or user's
// address.
type failoverWrite struct{ path, name string }

func (f *failover) write() {
	for _, w := range f.writers {
		f.writing.Go(func() {
			for n := 0; !f.isOver(); n++ {
				name := fmt.Sprintf("%s client %d", w.name, n)
				client := w.send("/v2/clients", "/v2/clients/", name, fields{"name": name})
				if client == "" {
					return
				}
				email := fmt.Sprintf("%s.user%d@example.com", w.name, n)
				w.send(client+"/users", "/v2/users/", email, fields{"email": email, "send_welcome_email": true})
			}
		})
	}
}

// send returns the path of what it made; empty where the test is over.
func (w *failoverWriter) send(path, made, name string, body fields) string {
	began, refused := time.Now(), 0
	for try := 0; try < mostTries && (try > 0 || !w.isOver()); try++ {
		answer, err := w.to.client.try("POST", path, w.key, body, "Idempotency-Key", name)
		if err != nil {
			w.t.Errorf("%s is not answered: %v", path, err)
			return ""
		}
		if answer.status == http.StatusCreated {
			made += into[identified](answer).ID
			w.note(failoverWrite{made, name}, began, refused)
			<-time.After(thinking)
			return made
		}
		// Of a request whose answer was lost, PostgreSQL may hold the lock for a moment more.
		wait, err := strconv.Atoi(answer.header.Get("Retry-After"))
		if err != nil || answer.status != http.StatusServiceUnavailable && answer.status != http.StatusConflict {
			w.t.Errorf("%s answers %d (Retry-After %q): %s", path, answer.status, answer.header.Get("Retry-After"), answer.body)
			return ""
		}
		refused++
		w.note(failoverWrite{}, began, refused)
		<-time.After(time.Duration(wait) * time.Second)
	}
	if refused > 0 {
		w.t.Errorf("%s was refused %d times", path, refused)
	}
	return ""
}

// note counts an answer.
func (w *failoverWriter) note(made failoverWrite, began time.Time, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { close(w.changed); w.changed = make(chan struct{}) }()
	if made.path == "" {
		w.refused++
		return
	}
	w.done = append(w.done, made)
	if w.promoted.IsZero() {
		w.before++
		return
	}
	if w.goesOn == 0 {
		w.goesOn = time.Since(w.promoted)
	}
	if began.After(w.promoted) {
		w.since++
		w.refusals = max(w.refusals, refused)
	}
}

func (f *failover) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped || f.t.Failed()
}

// await waits until all writers have come so far.
func (f *failover) await(far func(*failoverWriter) bool) {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		f.mu.Lock()
		n, changed := 0, f.changed
		for _, w := range f.writers {
			if far(w) {
				n++
			}
		}
		f.mu.Unlock()
		if n == len(f.writers) {
			return
		}
		if f.t.Failed() {
			f.t.FailNow()
		}
		select {
		case <-changed:
		case <-timeout:
			f.t.Fatalf("%d of %d writers have come so far:\n%s", n, len(f.writers), f.replicas[0].logs)
		}
	}
}

// fail kills the primary, promotes the standby once callers were refused, and wants
// writes to go on.
func (f *failover) fail() {
	f.t.Helper()
	killed := time.Now()
	f.primary.kill()
	f.await(func(w *failoverWriter) bool { return w.refused >= refusedBefore })
	promoted := f.was.promote(f.commands[1])
	f.mu.Lock()
	f.promoted = promoted
	f.primary, f.was = f.was, f.primary
	f.mu.Unlock()
	f.t.Logf("promoted %v after the kill", f.promoted.Sub(killed).Round(time.Millisecond))
}

// stop ends the writing.
func (f *failover) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.writing.Wait()
}

// report logs when writes went on.
func (f *failover) report() {
	f.mu.Lock()
	defer f.mu.Unlock()
	first, last, refused := f.writers[0].goesOn, time.Duration(0), 0
	for _, w := range f.writers {
		first, last = min(first, w.goesOn), max(last, w.goesOn)
		refused += w.refused
	}
	f.t.Logf("the first writer went on %v and the last %v after the promotion; %d answers of 503",
		first.Round(time.Millisecond), last.Round(time.Millisecond), refused)
}

// check wants each write that was answered to be there once, and nothing else.
func (f *failover) check() {
	f.t.Helper()
	refusals := 0
	made := map[string]string{} // path by name
	for _, w := range f.writers {
		refusals = max(refusals, w.refusals)
		for some := range slices.Chunk(w.done, readsOfKey) {
			key := f.key()
			for _, done := range some {
				made[done.name] = done.path
				got := into[fields](w.to.get(done.path, key).want(http.StatusOK))
				if got["name"] != done.name && got["email"] != done.name {
					f.t.Errorf("%s is %v, not %s", done.path, got, done.name)
				}
			}
		}
	}
	if refusals > mostRefusals {
		f.t.Errorf("a write after the promotion was refused %d times", refusals)
	}
	f.primary.with(reach(f.primary), func(conn *pgx.Conn) error {
		var there int
		err := conn.QueryRow(f.t.Context(), "SELECT (SELECT count(*) FROM clients) + (SELECT count(*) FROM users)").Scan(&there)
		if there != len(made) {
			f.t.Errorf("%d objects are there, and %d were made", there, len(made))
		}
		return err
	})
	f.checkSent(made)
	f.checkReplica()
	for _, r := range append(f.replicas, f.work) {
		if status, body := read(f.t, r.address+"/readyz"); status != http.StatusOK {
			f.t.Errorf("not ready: %d %s", status, body)
		}
		r.finish()
	}
}

// checkReplica wants the standby to be read, whichever server that is.
func (f *failover) checkReplica() {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(retryPause) {
		_, text := read(f.t, f.work.address+"/metrics")
		if strings.Contains(text, "\npartnerapi_replica_used 1\n") {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the standby is not read:\n%s", f.work.logs)
		}
	}
}

// checkSent waits until all mails and events are marked. What was first sent after the
// promotion was sent once; what was in progress when the database went may be sent again
// with the same id.
func (f *failover) checkSent(made map[string]string) {
	f.t.Helper()
	f.primary.with(reach(f.primary), func(conn *pgx.Conn) error {
		// A claim whose answer was lost holds its mails for 75 seconds.
		return awaitTrue(f.t, conn, 2*patience, `SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM events)
			AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'waiting')`)
	})
	again := 0
	f.events.mu.Lock()
	defer f.events.mu.Unlock()
	for id, arrivals := range f.events.got {
		again += len(arrivals) - 1
		for _, a := range arrivals[1:] {
			if a.body != arrivals[0].body || arrivals[0].at.After(f.promoted) {
				f.t.Errorf("event %s arrived again, first at %v: %s, %s", id, arrivals[0].at, arrivals[0].body, a.body)
			}
		}
	}
	if len(f.events.got) != len(made) {
		f.t.Errorf("%d events arrived of %d", len(f.events.got), len(made))
	}
	mails := map[string]string{} // the id by address
	for _, l := range f.office.all() {
		if id, ok := mails[l.to]; ok && id != l.id || made[l.to] == "" {
			f.t.Errorf("%s got the mails %q and %q", l.to, id, l.id)
		}
		mails[l.to] = l.id
	}
	for name := range made {
		if _, ok := mails[name]; !ok && strings.Contains(name, "@") {
			f.t.Errorf("no mail arrived for %s", name)
		}
	}
	f.t.Logf("%d events, %d again; %d mails, %d again", len(f.events.got), again, len(mails), len(f.office.all())-len(mails))
}
