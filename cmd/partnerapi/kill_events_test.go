//go:build slow

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

const (
	// killRounds is how often the service and its database are killed (see dbtest.Times), unless the environment variable
	// KILL_ROUNDS says another number (KILL_ROUNDS=30 go test -tags slow -run TestEventsOutliveKills -v ./cmd/partnerapi).
	// Its name lacks the prefix of the service's own variables, which tests ignore.
	killRounds = 20
	// eventSeed is the seed of what happens by chance: which writes are made, how
	// receivers answer, and after how many writes there is a kill.
	eventSeed = 9
)

// Retries come seconds to hours after a failed try, and the lease of a process that
// was killed lasts for half a minute. The test does not wait for them: between its
// looks it makes them due.
const (
	// retriesDue is for a service that runs, whose leases are its own.
	retriesDue = "UPDATE webhook_deliveries SET due_at = now() WHERE status = 'waiting' AND lease IS NULL AND due_at > now()"
	// leasesDue is for the time when no service runs: whoever has a lease is dead.
	leasesDue = "UPDATE webhook_deliveries SET due_at = now() WHERE status = 'waiting' AND due_at > now()"
)

// TestEventsOutliveKills kills the service and its database again and again while two
// partners write by both versions, others follow their events, and receivers of
// webhooks fail at random. Each kill comes right when a delivery has arrived that was
// not answered. In the end every event of an answered write is in the list once, in
// one order for all who follow it, and every subscription got each event that it wants
// with the same id and body, and nothing else. What is sent again with its Idempotency-Key
// is not done again, and objects keep the numbers of version 1.
func TestEventsOutliveKills(t *testing.T) {
	t.Parallel()
	rounds := dbtest.Times(killRounds)
	if text := os.Getenv("KILL_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("KILL_ROUNDS=%s is not a number above 0", text)
		}
	}
	k := newKills(t)
	k.settle()
	began := time.Now()
	for n := range rounds {
		k.round(n)
	}
	k.check()
	t.Logf("%d rounds in %v", rounds, time.Since(began).Round(time.Second))
}

// kills is a service that is killed while tenants use it.
type kills struct {
	t         *testing.T
	dir       string
	chance    *rand.Rand // of the test's own goroutine
	receivers *receivers
	tenants   []*tenant
	killed    int
	lost      int // kills of the database alone
}

// tenant is a partner with its subscriptions, and who writes and follows.
type tenant struct {
	name          string
	clients       []subject // those that are there from the start
	authors       []*author
	followers     []*eventReader
	subscriptions []*subscription
}

func newKills(t *testing.T) *kills {
	k := &kills{t: t, dir: dataDir(t), chance: rand.New(rand.NewPCG(eventSeed, 0))}
	k.receivers = openReceivers(t, rand.New(rand.NewPCG(k.chance.Uint64(), 0)))
	return k
}

// start starts the service.
func (k *kills) start() *running {
	k.t.Helper()
	return process(k.t, k.dir, "--release=latest", "--webhook-allow-private", "--webhook-ca="+k.receivers.ca)
}

// settle makes the tenants, with some clients and all subscriptions.
func (k *kills) settle() {
	k.t.Helper()
	service := k.start()
	for n, name := range []string{"Acme", "Birch"} {
		must(k.t, "partners", "create", name, "--data-dir="+k.dir)
		tenant := &tenant{name: name}
		k.tenants = append(k.tenants, tenant)
		all := k.key(name, "all")
		for i := range 3 {
			client := subject{label: fmt.Sprintf("%s base %d", name, i), told: []domain.EventType{domain.ClientCreated}}
			client.id = into[identified](service.do("POST", "/v2/clients", all, fields{"name": client.label}).want(http.StatusCreated)).ID
			tenant.clients = append(tenant.clients, client)
		}
		if older() {
			clients := into[struct{ Items []numbered }](service.get("/v1/clients?limit=50", all).want(http.StatusOK)).Items
			for i := range tenant.clients {
				for _, c := range clients {
					if c.ClientName == tenant.clients[i].label {
						tenant.clients[i].number = c.ID
					}
				}
			}
		}
		for i, old := range [][]bool{{false, false, true}, {false, true}}[n] {
			tenant.authors = append(tenant.authors, &author{
				name: fmt.Sprintf("%s%d", strings.ToLower(name), i), key: k.key(name, "all"), old: old && older(),
				clients: tenant.clients, chance: rand.New(rand.NewPCG(k.chance.Uint64(), 0)),
			})
		}
		some := tenant.clients[1].id + "," + tenant.clients[2].id
		tenant.followers = []*eventReader{
			{key: k.key(name, "all"), limit: 100}, {key: k.key(name, "all"), limit: 7},
			{key: k.key(name, some), limit: 13, reach: []string{tenant.clients[1].id, tenant.clients[2].id}},
		}
		k.subscribe(service, tenant, all, k.key(name, some))
	}
	service.finish()
}

// key makes a key of a partner that reaches clients: all, or ids.
func (k *kills) key(partner, clients string) string {
	k.t.Helper()
	return strings.TrimSpace(must(k.t, "keys", "create", "--data-dir="+k.dir, "--name=key", "--partner="+partner,
		"--clients="+clients, "--scopes=read,write"))
}

// subscribe makes the subscriptions of a tenant: some is a key that reaches all
// clients of the start but the first.
func (k *kills) subscribe(service *running, of *tenant, all, some string) {
	k.t.Helper()
	ids := []string{of.clients[0].id, of.clients[1].id, of.clients[2].id}
	of.subscriptions = []*subscription{
		{name: "everything", key: all, types: domain.EventTypes},
		{name: "types", key: all, types: []domain.EventType{domain.ClientCreated, domain.UserDeactivated}},
		{name: "client", key: all, types: domain.EventTypes, clients: ids[:1]},
		{name: "subset", key: some, types: domain.EventTypes, reach: ids[1:]},
		{name: "narrow", key: some, types: []domain.EventType{domain.UserUpdated}, reach: ids[1:], clients: ids[1:2]},
	}
	for _, s := range of.subscriptions {
		s.tenant = of
		k.receivers.subscribe(service.client, "/"+of.name+"/"+s.name, s)
	}
}

// round is one life of the service.
type round struct {
	service *running
	client  caller
	until   time.Time
	enough  int // writes until the next step

	mu       sync.Mutex
	answered int
	steps    []func() // what happens with the next delivery once enough was answered
	over     chan struct{}
}

// round starts the service, and has it used until it is dead, and its database.
func (k *kills) round(n int) {
	k.t.Helper()
	service, _, leave := k.revive()
	leave()
	transport := &http.Transport{MaxIdleConnsPerHost: 20}
	defer transport.CloseIdleConnections()
	r := &round{
		service: service, client: caller{t: k.t, address: service.address, transport: transport},
		until: time.Now().Add(patience), enough: 40 + k.chance.IntN(80), over: make(chan struct{}),
	}
	pid := postmaster(k.t, k.dir)
	killDatabase := func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			k.t.Errorf("kill the database: %v", err)
		}
	}
	switch n % 3 {
	case 0: // the service, and then the database
		r.steps = []func(){service.kill}
	case 1: // the database, and at once the service
		r.steps = []func(){func() { killDatabase(); service.kill() }}
	case 2: // the database alone; both, when it was started again
		k.lost++
		r.steps = []func(){killDatabase, service.kill}
	}

	k.receivers.round.Store(r)
	var group sync.WaitGroup
	for _, tenant := range k.tenants {
		for _, a := range tenant.authors {
			group.Go(func() { a.write(r) })
		}
		for _, f := range tenant.followers {
			group.Go(func() { f.follow(r) })
		}
	}
	group.Wait()
	k.receivers.round.Store(nil)
	k.bury(r)
}

// bury kills the database, if it is alive.
func (k *kills) bury(r *round) {
	k.t.Helper()
	select {
	case <-r.over:
	default:
		k.t.Fatalf("%d writes were answered, and there was no kill:\n%s", r.answered, r.service.logs)
	}
	k.killed++
	if pid := postmaster(k.t, k.dir); pid != 0 && runs(pid) {
		killServer(k.t, k.dir)
	}
}

// revive starts the database, looks at what the kill left, and starts the service.
func (k *kills) revive() (service *running, d *witness, leave func()) {
	k.t.Helper()
	d, leave = lookInto(k.t, k.dir)
	leased := d.number("SELECT count(*) FROM webhook_deliveries WHERE status = 'waiting' AND lease IS NOT NULL")
	if leased == 0 && k.killed > 0 {
		k.t.Error("the kill finds no delivery under way")
	}
	d.exec(leasesDue)
	return k.start(), d, leave
}

// wrote counts an answered write.
func (r *round) wrote() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered++
}

// received does the next step, if enough was written.
func (r *round) received() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered < r.enough || len(r.steps) == 0 {
		return
	}
	step := r.steps[0]
	r.steps, r.answered = r.steps[1:], 0
	step()
	if len(r.steps) == 0 {
		close(r.over)
	}
}

// send sends a request, again after a pause while the answer is 503 or 429 and again says so.
// It is false where the service died or, without again, was not able to answer.
func (r *round) send(again bool, method, path, key string, body any, headers ...string) (response, bool) {
	for time.Now().Before(r.until) {
		answer, err := r.client.try(method, path, key, body, headers...)
		switch {
		case err != nil:
			return response{}, false
		case answer.status >= 200 && answer.status <= 299:
			return answer, true
		case answer.status != http.StatusServiceUnavailable && (!again || answer.status != http.StatusTooManyRequests):
			r.client.t.Errorf("%s %s answers %d: %s", method, path, answer.status, answer.body)
			return answer, false
		}
		r.pause()
		if !again {
			return answer, false
		}
	}
	return response{}, false
}

// reads is how a key reads a path, again while the service is not there.
func (r *round) reads(key string) func(path string) (response, bool) {
	return func(path string) (response, bool) { return r.send(true, http.MethodGet, path, key, nil) }
}

// pause waits as a caller does who is told to try again later.
func (r *round) pause() {
	select {
	case <-r.over:
	case <-time.After(retryPause):
	}
}

// ended reports whether the service is dead, or should be.
func (r *round) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return time.Now().After(r.until)
	}
}

// drain starts the service, and waits until everything was published and delivered.
func (k *kills) drain() (*running, *witness) {
	k.t.Helper()
	service, d, leave := k.revive()
	k.t.Cleanup(leave)
	await(k.t, "no event and no delivery waits", func() bool {
		d.exec(retriesDue)
		return d.number(`SELECT (SELECT count(*) FROM events)
			+ (SELECT count(*) FROM webhook_deliveries WHERE status = 'waiting')`) == 0
	}, service.logs)
	return service, d
}
