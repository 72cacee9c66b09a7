package usage

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"partnerapi/domain"
)

// ledger is what callers know that they called.
type ledger struct {
	mu   sync.Mutex
	rows map[countKey]*Row
}

func (l *ledger) note(c Call, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := countKey{c.Key, domain.DateOf(at), c.Surface, c.Operation}
	r := l.rows[p]
	if r == nil {
		r = &Row{Key: c.Key, Day: p.day, Surface: c.Surface, Operation: c.Operation, FirstAt: at, LastAt: at}
		l.rows[p] = r
	}
	r.Calls++
	if c.Status >= 400 {
		r.Failures++
	}
	if at.Before(r.FirstAt) {
		r.FirstAt = at
	}
	if at.After(r.LastAt) {
		r.LastAt = at
	}
}

// check compares the table with what was called.
func (l *ledger) check(t *testing.T, rows []Row) {
	t.Helper()
	if len(rows) != len(l.rows) {
		t.Errorf("%d rows for %d places", len(rows), len(l.rows))
	}
	for _, got := range rows {
		want := l.rows[countKey{got.Key, got.Day, got.Surface, got.Operation}]
		if want == nil {
			t.Errorf("counted, but not called: %+v", got)
			continue
		}
		got.UserAgents = nil
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("counted %+v\n called %+v", got, *want)
		}
	}
}

// twoReplicas count into one database, each by a clock of its own.
type twoReplicas struct {
	t        *testing.T
	counters [2]*Counter
	clocks   [2]*domain.ManualClock
	called   ledger
}

// work makes random calls of both, and has them flush at random moments.
func (w *twoReplicas) work(random *rand.Rand) {
	statuses := []int{200, 201, 204, 400, 403, 410, 429, 499, 500}
	for range 400 {
		c := Call{
			Key: key(byte(random.IntN(4))), Surface: []Surface{V1, V2}[random.IntN(2)],
			Operation: fmt.Sprint("GET /", random.IntN(5)), Status: statuses[random.IntN(len(statuses))],
			UserAgent: fmt.Sprint("agent/", random.IntN(9)),
		}
		n := random.IntN(2)
		w.counters[n].Count(c)
		w.called.note(c, w.clocks[n].Now())
		if random.IntN(40) == 0 {
			if err := w.counters[random.IntN(2)].Flush(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		}
	}
}

// TestCountsEqualTheLedger: callers of two replicas make random calls, while both
// flush at random moments and a day ends. Nothing is lost and nothing is counted
// twice.
func TestCountsEqualTheLedger(t *testing.T) {
	t.Parallel()
	d := open(t)
	w := &twoReplicas{t: t, called: ledger{rows: map[countKey]*Row{}}}
	for i := range w.counters {
		w.clocks[i] = domain.NewManualClock(noon)
		w.counters[i] = counter(t, d, w.clocks[i])
	}
	// Time stands still while calls are made, so that the callers know it.
	for round, step := range []time.Duration{time.Minute, 12 * time.Hour, time.Second} {
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() { w.work(rand.New(rand.NewPCG(uint64(round), uint64(i)))) })
		}
		group.Wait()
		w.clocks[0].Advance(step)
		w.clocks[1].Advance(step + time.Second)
	}
	for _, c := range w.counters {
		flush(t, c)
		flush(t, c) // there is nothing more
	}

	rows := all(t, d)
	w.called.check(t, rows)
	for _, r := range rows {
		if n := len(r.UserAgents); n == 0 || n > MaxAgents || len(slices.Compact(slices.Sorted(slices.Values(r.UserAgents)))) != n {
			t.Errorf("agents %q", r.UserAgents)
		}
	}
}

// TestAgents: up to five are kept, of all flushes and replicas the first; each in
// 200 bytes of text that prints.
func TestAgents(t *testing.T) {
	t.Parallel()
	d := open(t)
	clock := domain.NewManualClock(noon)
	one, two := counter(t, d, clock), counter(t, d, clock)
	count := func(c *Counter, agents ...string) {
		t.Helper()
		for _, agent := range agents {
			c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200, UserAgent: agent})
		}
		flush(t, c)
	}
	want := func(agents ...string) {
		t.Helper()
		if got := all(t, d)[0].UserAgents; !slices.Equal(got, agents) {
			t.Errorf("agents %q, not %q", got, agents)
		}
	}
	count(one, "", " ")
	want()
	count(one, "b/1", "a/1", "b/1")
	want("b/1", "a/1")
	count(two, "c/1", "a/1")
	want("b/1", "a/1", "c/1")
	count(one, "")
	want("b/1", "a/1", "c/1")
	long := strings.Repeat("é", 150)
	count(one, "d\n/\x00\u202e1\xff", long, "f/1")
	want("b/1", "a/1", "c/1", "d/1", long[:200])
	count(two, "g/1", "h/1", "i/1", "j/1")
	want("b/1", "a/1", "c/1", "d/1", long[:200])
}

func TestClean(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"": "", "\n\t": "", "curl/8.5": "curl/8.5", " curl ": "curl", "a\x1b[31mb": "a[31mb", "Löwe/1": "Löwe/1", "\ufffd": "\ufffd",
		"\xff\xfe": "", strings.Repeat("x", 300): strings.Repeat("x", 200),
		"x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 99), // the 200th byte is half a character
	} {
		if got := cleanAgent(agent); got != want {
			t.Errorf("%q becomes %q, not %q", agent, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("curl/8.5")
	f.Add("\xff\n" + strings.Repeat("é", 120))
	f.Fuzz(func(t *testing.T, agent string) {
		got := cleanAgent(agent)
		if len(got) > maxAgent || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\n\r\x7f") || cleanAgent(got) != got {
			t.Errorf("%q becomes %q", agent, got)
		}
	})
}

// TestBound: beyond the bound calls are missed and said, and after a flush there is room
// again.
func TestBound(t *testing.T) {
	t.Parallel()
	d := open(t)
	c := counter(t, d, domain.NewManualClock(noon))
	c.limit = 3
	count := func(n int) {
		for i := range n {
			c.Count(Call{Key: key(byte(i)), Surface: V1, Operation: "GET /v1/clients", Status: 200})
		}
	}
	count(5)
	count(3) // those that have a place are counted
	if len(c.tallies) != 3 || c.uncounted != 2 {
		t.Errorf("%d places, %d missed", len(c.tallies), c.uncounted)
	}
	flush(t, c)
	if len(c.tallies) != 0 || c.uncounted != 0 {
		t.Errorf("after the flush: %d places, %d missed", len(c.tallies), c.uncounted)
	}
	count(2)
	if len(c.tallies) != 2 || c.uncounted != 0 {
		t.Errorf("then: %d places, %d missed", len(c.tallies), c.uncounted)
	}
}

// TestIdlePlaces: an operation that is no longer called is forgotten.
func TestIdlePlaces(t *testing.T) {
	t.Parallel()
	c := counter(t, open(t), domain.NewManualClock(noon))
	c.Count(Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200})
	for i, places := range []int{1, 0, 0} {
		flush(t, c)
		if len(c.tallies) != places {
			t.Errorf("after flush %d: %d places", i+1, len(c.tallies))
		}
	}
}

// TestSteadyStateDoesNotAllocate: what is called all the time costs no memory.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	c := counter(t, nil, domain.SystemClock{})
	call := Call{Key: key(1), Surface: V1, Operation: "GET /v1/clients", Status: 200, UserAgent: "Löwe/1.0 (linux)"}
	if n := testing.AllocsPerRun(100, func() { c.Count(call) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
