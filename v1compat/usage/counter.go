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

// maxTallies bounds the tallies that a Counter holds between two flushes: keys times operations times days.
const maxTallies = 100_000

// recordWithin is the timeout of a flush, after which it is retried.
const recordWithin = 30 * time.Second

// Counter counts a process's calls in memory and adds them to the database. It is safe for concurrent use.
//
// A flush is applied exactly once. It has a number, which the same statement records for the process: if it is
// unknown whether a flush was committed, the same flush is sent again, and has no effect if it was.
type Counter struct {
	db    *pg.DB
	clock domain.Clock
	log   *slog.Logger
	// exec is pg.Exec; tests replace it.
	exec    func(ctx context.Context, on pg.Runner, action string, q pg.Query) (int, error)
	replica string // the id of this process
	// mayPrune reports whether the clock is trusted at a time, so that old rows may be deleted; nil trusts it.
	mayPrune func(ctx context.Context, now time.Time) (bool, error)
	limit    int // maxTallies; less in tests

	mu        sync.Mutex
	tallies   map[countKey]*tally
	refusals  map[refusalKey]int64
	uncounted int64 // calls for which there was no room

	flushing sync.Mutex // held by a flush; guards what follows
	sequence int64
	pending  *batch      // the last flush, if it is unknown whether it was committed
	pruned   domain.Date // the day of the last complete prune
}

// countKey identifies a count: a key's calls of an operation on a day.
type countKey struct {
	key       domain.KeyID
	day       domain.Date
	surface   Surface
	operation string
}

// tally is the calls counted since the last flush, and the user agents seen so far.
type tally struct {
	calls, failures int64
	first, last     time.Time
	agents          []string
}

// New returns a Counter for a database. It takes days and times from the clock.
func New(d *pg.DB, clock domain.Clock, log *slog.Logger) *Counter {
	return &Counter{
		db: d, exec: pg.Exec, clock: clock, log: log, replica: uuid.NewString(), limit: maxTallies,
		tallies: map[countKey]*tally{}, refusals: map[refusalKey]int64{},
	}
}

// PruneIf makes c delete old rows only if trusted returns true for the time by which they are old. It is called before
// Run.
func (c *Counter) PruneIf(trusted func(ctx context.Context, now time.Time) (bool, error)) {
	c.mayPrune = trusted
}

// Count counts a call that was just answered. It does not block, and does not allocate for an operation that the key
// called since the flush before last. Beyond the limit of tallies, the call is not counted; the next flush logs how
// many were not. A call of v1 by parity is counted as Parity, and one of v2 not at all.
func (c *Counter) Count(call Call) {
	now := c.clock.Now()
	agent := cleanAgent(call.UserAgent)
	if strings.HasPrefix(agent, ParityAgent) {
		if call.Surface != V1 {
			return
		}
		call.Surface = Parity
	}
	key := countKey{call.Key, domain.DateOf(now), call.Surface, call.Operation}

	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[key]
	if t == nil {
		if len(c.tallies) >= c.limit {
			c.uncounted++
			return
		}
		t = &tally{}
		c.tallies[key] = t
	}
	t.count(now, call.Status, agent)
}

// count counts a call.
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

// Run flushes every ten seconds, until ctx ends. The caller then calls Record for the rest.
func (c *Counter) Run(ctx context.Context) {
	for domain.Pause(ctx, flushEvery) == nil {
		c.Record(ctx)
	}
}

// Record flushes and, on a new day, deletes rows past their retention. It logs a failure, unless ctx was cancelled; the
// next flush tries again.
func (c *Counter) Record(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, recordWithin)
	defer done()
	message := "the usage of v1 was not recorded; the write will be retried"
	err := c.Flush(ctx)
	if err == nil {
		message = "expired usage of v1 was not deleted; the deletion will be retried"
		err = c.prune(ctx)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		c.log.WarnContext(ctx, message, "error", err)
	}
}

// cleanAgent returns a user agent as it is stored: at most maxAgent bytes of valid UTF-8, without unprintable
// characters. A clean text is returned as it is, without an allocation.
func cleanAgent(agent string) string {
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

// batch is the rows of one flush, by column.
type batch struct {
	sequence                         int64
	at                               time.Time
	keys, days, surfaces, operations []string
	calls, failures                  []int64
	first, last                      []time.Time
	agents                           []string // of each row, by lines
	refusals                         refusalRows
}

// addStatement adds to the table, unless the process has already recorded a flush with this number or a later one.
// Rows are written in the order of the primary key, so that processes do not deadlock. A flush that is sent again
// while the first attempt is still running waits for it at the row of the process.
const addStatement = `
WITH turn AS (
	INSERT INTO v1_usage_flushes AS f (replica, sequence, flushed_at) VALUES ($1::text::uuid, $2::bigint, $3::timestamptz)
	ON CONFLICT (replica) DO UPDATE SET sequence = excluded.sequence, flushed_at = excluded.flushed_at
	WHERE f.sequence < excluded.sequence
	RETURNING 1
), refused AS (
	INSERT INTO v1_refusals AS r (kind, id, day, refused)
	SELECT n.kind, n.id, n.day, n.refused
	FROM unnest($14::text[], $15::bigint[], $16::text[]::date[], $17::bigint[]) AS n (kind, id, day, refused), turn
	ORDER BY n.kind COLLATE "C", n.id, n.day
	ON CONFLICT (kind, id, day) DO UPDATE SET refused = r.refused + excluded.refused
)
INSERT INTO v1_usage AS u (key_id, day, surface, operation, calls, failures, first_at, last_at, user_agents)
SELECT n.key_id, n.day, n.surface, n.operation, n.calls, n.failures, n.first_at, n.last_at, string_to_array(n.agents, E'\n')
FROM unnest($4::text[]::uuid[], $5::text[]::date[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
	$10::timestamptz[], $11::timestamptz[], $12::text[])
	AS n (key_id, day, surface, operation, calls, failures, first_at, last_at, agents), turn
ORDER BY n.key_id, n.day, n.surface COLLATE "C", n.operation COLLATE "C"
ON CONFLICT (key_id, day, surface, operation) DO UPDATE SET
	calls = u.calls + excluded.calls, failures = u.failures + excluded.failures,
	first_at = least(u.first_at, excluded.first_at), last_at = greatest(u.last_at, excluded.last_at),
	user_agents = CASE WHEN u.user_agents @> excluded.user_agents OR cardinality(u.user_agents) >= $13::int
		THEN u.user_agents
		ELSE ARRAY(
			SELECT a.agent FROM unnest(u.user_agents || excluded.user_agents) WITH ORDINALITY AS a (agent, n)
			GROUP BY a.agent ORDER BY min(a.n) LIMIT $13::int)
		END`

// Flush writes the counted calls in one statement. If the outcome of the previous flush is unknown, it sends that flush
// again first. What could not be written stays for the next flush.
func (c *Counter) Flush(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()

	if c.pending != nil {
		if err := c.send(ctx, c.pending); err != nil {
			return err
		}
	}
	next := c.drain(ctx)
	if next == nil {
		return nil
	}
	c.sequence++
	next.sequence = c.sequence
	c.pending = next
	return c.send(ctx, next)
}

// send writes a flush, and clears pending if that succeeds.
func (c *Counter) send(ctx context.Context, b *batch) error {
	_, err := c.exec(ctx, c.db, "record the use of v1", pg.Prepared(pg.Raw(addStatement, b.args(c.replica))))
	if err == nil {
		c.pending = nil
	}
	return err
}

// args returns the arguments of addStatement.
func (b *batch) args(replica string) []any {
	return []any{
		replica, b.sequence, b.at, b.keys, b.days, b.surfaces, b.operations, b.calls, b.failures, b.first, b.last, b.agents,
		MaxAgents, b.refusals.kinds, b.refusals.ids, b.refusals.days, b.refusals.counts,
	}
}

// drain returns the calls and refusals counted since the previous drain; nil for none. It evicts entries without calls since then,
// or all entries if more than half of the limit remain. It logs how many calls were not counted.
func (c *Counter) drain(ctx context.Context) *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uncounted > 0 {
		c.log.WarnContext(ctx, "some calls of v1 were not counted, because too many keys and operations were in use between two writes",
			"calls", c.uncounted, "most", c.limit)
		c.uncounted = 0
	}

	b := &batch{at: c.clock.Now(), refusals: c.drainRefusals()}
	for key, t := range c.tallies {
		if t.calls == 0 {
			delete(c.tallies, key)
			continue
		}
		b.append(key, t)
		t.calls, t.failures = 0, 0 // the next call sets first and last; agents stay: addStatement adds each once
	}
	if len(c.tallies) > c.limit/2 {
		clear(c.tallies)
	}
	if len(b.keys) == 0 && len(b.refusals.ids) == 0 {
		return nil
	}
	return b
}

// append adds the row of a tally.
func (b *batch) append(k countKey, t *tally) {
	b.keys = append(b.keys, k.key.UUID())
	b.days = append(b.days, k.day.String())
	b.surfaces = append(b.surfaces, string(k.surface))
	b.operations = append(b.operations, k.operation)
	b.calls = append(b.calls, t.calls)
	b.failures = append(b.failures, t.failures)
	b.first = append(b.first, t.first)
	b.last = append(b.last, t.last)
	b.agents = append(b.agents, strings.Join(t.agents, "\n"))
}

const (
	// pruneBatch is how many rows one statement deletes, and pruneBatches how many statements follow a flush.
	pruneBatch   = 5_000
	pruneBatches = 20
	// replicaDays is how many days the last flush of a process is kept; it is sent again within seconds, if at all.
	replicaDays = 30
)

// prune deletes rows past their retention, once a day and at most a few batches; the next flushes delete the rest. It
// skips rows that another process is deleting. After the last batch it deletes old refusals, and the flush numbers of
// processes that ended long ago.
func (c *Counter) prune(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	now := c.clock.Now()
	if c.pruned == domain.DateOf(now) {
		return nil
	}
	if c.mayPrune != nil {
		if trusted, err := c.mayPrune(ctx, now); err != nil || !trusted {
			return err
		}
	}

	for range pruneBatches {
		removed, err := c.exec(ctx, c.db, "remove the use of v1 that is no longer kept", pg.SQL(`
			DELETE FROM v1_usage WHERE ctid = ANY (ARRAY(
				SELECT ctid FROM v1_usage WHERE day < ?::date LIMIT ?::int FOR UPDATE SKIP LOCKED))`, oldestDay(now), pruneBatch))
		if err != nil {
			return err
		}
		if removed == pruneBatch { // there may be more
			continue
		}
		_, err = c.exec(ctx, c.db, "forget processes that counted the use of v1", pg.SQL(
			"WITH old AS (DELETE FROM v1_refusals WHERE day < ?::date) DELETE FROM v1_usage_flushes WHERE flushed_at < ?::timestamptz",
			oldestDay(now), now.AddDate(0, 0, -replicaDays)))
		if err == nil {
			c.pruned = domain.DateOf(now)
		}
		return err
	}
	return nil
}
