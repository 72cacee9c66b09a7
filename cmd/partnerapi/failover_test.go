//go:build slow

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
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

// turn has the servers change places: the primary is killed, the standby is promoted once callers were refused, and
// writes go on.
func (f *failover) turn() {
	f.t.Helper()
	f.locked(func() {
		f.promoted = time.Time{}
		for _, w := range f.writers {
			w.before, w.since, w.refused = 0, 0, 0
		}
	})
	f.await(func(w *failoverWriter) bool { return w.before >= writesBefore })
	f.primary.kill()
	f.await(func(w *failoverWriter) bool { return w.refused >= refusedBefore })
	promoted := f.was.promote(f.commands[1])
	f.locked(func() {
		f.promoted = promoted
		f.primary, f.was = f.was, f.primary
	})
	f.await(func(w *failoverWriter) bool { return w.since >= writesAfter })
	f.was.rejoin(f.primary, f.commands[2])
	f.primary.awaits(f.was)
}

// failover is a service on a pair of servers.
type failover struct {
	t            *testing.T
	commands     []string // of the handbook
	primary, was *node    // was the primary, or is the standby at first
	replicas     []*running
	work         *running
	office       *postOffice
	events       *receivers
	hook         subscription
	writers      []*failoverWriter
	writing      sync.WaitGroup

	mu       sync.Mutex
	made     map[string]string // the ids of clients and users by names and addresses
	promoted time.Time         // zero before
	stopped  bool
}

func newFailover(t *testing.T) *failover {
	p := newPostgres(t, "pg_rewind", "psql")
	f := &failover{
		t: t, commands: chapter(t, "High availability", 3), primary: p.primary("a"), made: map[string]string{},
	}
	must(t, "migrate", "--database-url="+reach(f.primary))
	f.was = f.primary.standby("b")
	f.primary.awaits(f.was)

	f.office = openPostOffice(t, takeAll)
	f.events = openReceivers(t, nil)
	args := []string{
		"--database-url=" + reach(f.primary, f.was),
		"--replica-url=" + strings.ReplaceAll(reach(f.primary, f.was), "read-write", "standby"), "--encryption-key=" + freshKey(t),
		"--webhook-allow-private", "--webhook-ca=" + f.events.ca,
	}
	for range 2 {
		f.replicas = append(f.replicas, process(t, t.TempDir(), append(args, "--no-work", "--release=latest")...))
	}
	f.work = spawned(t, append([]string{"work", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir(),
		"--public-url=http://127.0.0.1", "--smtp-url=smtp://" + f.office.address}, args...)...)
	f.work.watched()
	must(t, "partners", "create", "Acme", "--database-url="+reach(f.primary))
	for i := range failoverWriters {
		f.writers = append(f.writers, &failoverWriter{
			failover: f, to: f.replicas[i%2], name: fmt.Sprintf("writer%d", i),
			key: newKey(t, "--database-url="+reach(f.primary), "--name=load", "--clients=all", "--scopes=read,write"),
		})
	}
	f.hook = subscription{key: f.writers[0].key, types: []domain.EventType{domain.ClientCreated, domain.UserCreated}}
	f.events.subscribe(f.replicas[0].client, "/", &f.hook)
	f.checkReplica()
	return f
}

// failoverWriter makes clients, each with a user who is welcomed by mail. It sends each
// request until it is answered with success, with one Idempotency-Key.
type failoverWriter struct {
	*failover
	to        *running
	name, key string
	// Of this turn: before is how many writes were done before the promotion, and since how
	// many that began after it. refused counts answers of 503.
	before, since, refused int
}

func (f *failover) write() {
	for _, w := range f.writers {
		f.writing.Go(func() {
			for n := 0; !f.isOver(); n++ {
				name := fmt.Sprintf("%s client %d", w.name, n)
				client := w.send("/v2/clients", name, fields{"name": name})
				if client == "" {
					return
				}
				email := fmt.Sprintf("%s.user%d@example.com", w.name, n)
				w.send("/v2/clients/"+client+"/users", email, fields{"email": email, "send_welcome_email": true})
			}
		})
	}
}

// send returns the id of what it made; empty where it was not made.
func (w *failoverWriter) send(path, name string, body fields) (id string) {
	began, refused := time.Now(), 0
	answer, ok := w.to.client.insist(w.key, func(a response) bool {
		refused++
		w.locked(func() { w.refused++ })
		// Of a request whose answer was lost, PostgreSQL may hold the lock for a moment more.
		return a.status == http.StatusServiceUnavailable || a.status == http.StatusConflict
	}, "POST", path, body, "Idempotency-Key", name)
	if ok {
		id = into[identified](answer).ID
		w.locked(func() { w.done(name, id, began, refused) })
	}
	return id
}

// insist sends a request until it is answered with success. What is refused for a time is sent again after that. No
// other answer is allowed.
func (c caller) insist(key string, refused func(response) bool, method, path string, body any, headers ...string) (response, bool) {
	for range mostTries {
		answer, err := c.try(method, path, key, body, headers...)
		if err != nil {
			c.t.Errorf("%s %s is not answered: %v", method, path, err)
			return answer, false
		}
		if <-time.After(thinking); answer.status >= 200 && answer.status <= 299 {
			return answer, true
		}
		wait, err := strconv.Atoi(answer.header.Get("Retry-After"))
		if !refused(answer) || err != nil {
			c.t.Errorf("%s %s answers %d %v: %s", method, path, answer.status, answer.header, answer.body)
			return answer, false
		}
		<-time.After(time.Duration(wait) * time.Second)
	}
	c.t.Errorf("%s %s was refused %d times", method, path, mostTries)
	return response{}, false
}

// done notes a write that was answered.
func (w *failoverWriter) done(name, id string, began time.Time, refused int) {
	w.made[name] = id
	switch {
	case w.promoted.IsZero():
		w.before++
	case began.After(w.promoted):
		if w.since++; refused > mostRefusals {
			w.t.Errorf("a write after the promotion was refused %d times", refused)
		}
	}
}

// locked does what mu guards.
func (f *failover) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *failover) isOver() (over bool) {
	f.locked(func() { over = f.stopped || f.t.Failed() })
	return over
}

// await waits until all writers have come so far.
func (f *failover) await(far func(*failoverWriter) bool) {
	f.t.Helper()
	await(f.t, "all writers come so far", func() (all bool) {
		if f.t.Failed() {
			f.t.FailNow()
		}
		f.locked(func() { all = !slices.ContainsFunc(f.writers, func(w *failoverWriter) bool { return !far(w) }) })
		return all
	}, f.replicas[0].logs)
}

// stop ends the writing.
func (f *failover) stop() {
	f.locked(func() { f.stopped = true })
	f.writing.Wait()
}

// check wants each write that was answered to be there once, and nothing else.
func (f *failover) check() {
	f.t.Helper()
	there := 0
	f.primary.with(reach(f.primary), func(conn *pgx.Conn) error {
		rows, err := conn.Query(f.t.Context(), "SELECT name, id FROM clients UNION ALL SELECT email, id FROM users")
		if err != nil {
			return err
		}
		var name string
		var id [16]byte
		_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error {
			there++
			if made := f.made[name]; made != domain.ClientID(id).String() && made != domain.UserID(id).String() {
				f.t.Errorf("%s is there as %x, and was made as %q", name, id, made)
			}
			return nil
		})
		return err
	})
	if there != len(f.made) {
		f.t.Errorf("%d objects are there, and %d were made", there, len(f.made))
	}
	f.checkSent()
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
	await(f.t, "the standby is in use", func() bool {
		_, text := read(f.t, f.work.address+"/metrics")
		return strings.Contains(text, "\npartnerapi_replica_used 1\n")
	}, f.work.logs)
}

// checkSent waits until all mails and events are marked. What was first sent after the
// promotion was sent once; what was in progress when the database went may be sent again
// with the same id.
func (f *failover) checkSent() {
	f.t.Helper()
	// A claim whose answer was lost holds its mails for 75 seconds.
	f.primary.until(reach(f.primary), `SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM events)
		AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'waiting')`)
	f.events.mu.Lock()
	defer f.events.mu.Unlock()
	for id, got := range f.hook.gotten {
		for _, body := range got.bodies[1:] {
			if body != got.bodies[0] || got.first.After(f.promoted) {
				f.t.Errorf("event %s arrived again, first at %v: %s, %s", id, got.first, got.bodies[0], body)
			}
		}
	}
	if len(f.hook.gotten) != len(f.made) {
		f.t.Errorf("%d events arrived of %d", len(f.hook.gotten), len(f.made))
	}
	mails := map[string]string{} // the id by address
	for _, l := range f.office.all() {
		if id, ok := mails[l.to]; ok && id != l.id || f.made[l.to] == "" {
			f.t.Errorf("%s got the mails %q and %q", l.to, id, l.id)
		}
		mails[l.to] = l.id
	}
	for name := range f.made {
		if _, ok := mails[name]; !ok && strings.Contains(name, "@") {
			f.t.Errorf("no mail arrived for %s", name)
		}
	}
}
