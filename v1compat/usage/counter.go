package usage

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// maxPlaces bounds what a Counter holds between two flushes: keys times
// operations times days.
const maxPlaces = 100_000

// recordWithin is how long a flush may take before it is tried again.
const recordWithin = 30 * time.Second

// Counter counts calls in memory, and adds them to the database. It is safe for
// concurrent use, and one serves a whole process.
//
// A flush adds what was counted exactly once. It has a number, which the same
// statement records for the process: where it is not known whether a flush was
// committed, the same one is sent again, and without effect if it was.
type Counter struct {
	db    *pg.DB
	clock domain.Clock
	log   *slog.Logger
	// exec is pg.Exec, but for tests.
	exec    func(ctx context.Context, on pg.Runner, doing string, q pg.Query) (int, error)
	replica string
	most    int

	mu     sync.Mutex
	places map[place]*tally
	missed int64 // calls for which there was no room

	flushing sync.Mutex // held by a flush; guards what follows
	sequence int64
	unsure   *batch // was sent, and is not known to be in the database
	pruned   domain.Date
}

// place is what calls are counted by.
type place struct {
	key       domain.KeyID
	day       domain.Date
	surface   Surface
	operation string
}

// tally is what was counted since the last flush, and the user agents that were
// seen before it too.
type tally struct {
	calls, failures int64
	first, last     time.Time
	agents          []string
}

// New returns a Counter that adds to a database. It counts days and times by the
// clock.
func New(d *pg.DB, clock domain.Clock, log *slog.Logger) *Counter {
	return &Counter{
		db: d, exec: pg.Exec, clock: clock, log: log, replica: uuid.NewString(), most: maxPlaces,
		places: map[place]*tally{},
	}
}

// Count counts a call that was answered just now. It does not block, and does not
// allocate for what was called since the flush before the last one.
func (c *Counter) Count(call Call) {
	now := c.clock.Now()
	agent := clean(call.UserAgent)
	at := place{call.Key, domain.DateOf(now), call.Surface, call.Operation}

	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.places[at]
	if t == nil {
		if len(c.places) >= c.most {
			c.missed++
			return
		}
		t = &tally{}
		c.places[at] = t
	}
	t.count(now, call.Status, agent)
}

func (t *tally) count(now time.Time, status int, agent string) {
	if t.calls == 0 || now.Before(t.first) {
		t.first = now
	}
	if t.calls == 0 || now.After(t.last) {
		t.last = now
	}
	t.calls++
	if status >= 400 {
		t.failures++
	}
	if agent != "" && len(t.agents) < MaxAgents && !slices.Contains(t.agents, agent) {
		t.agents = append(t.agents, strings.Clone(agent)) // it may be a part of a large header
	}
}

// Run records what was counted every ten seconds, until ctx ends. What is counted then
// is for Record to add.
func (c *Counter) Run(ctx context.Context) {
	for domain.Pause(ctx, every) == nil {
		c.Record(ctx)
	}
}

// Record flushes, and removes what is no longer kept when a day has begun. A failure is logged: the next flush tries again.
func (c *Counter) Record(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, recordWithin)
	defer done()
	failed := "the use of v1 was not recorded; it will be tried again"
	err := c.Flush(ctx)
	if err == nil {
		failed = "the use of v1 in days that are no longer kept was not removed; it will be tried again"
		err = c.prune(ctx)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		c.log.WarnContext(ctx, failed, "error", err)
	}
}

// clean is a user agent as it is kept: at most maxAgent bytes of valid UTF-8,
// without what does not print, such as control characters. A text that is clean
// already is returned as it is, without an allocation.
func clean(agent string) string {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(agent, "")))
}
