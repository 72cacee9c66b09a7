package usage

import (
	"context"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// batch is what one flush adds, as the columns of its rows.
type batch struct {
	sequence                         int64
	at                               time.Time
	keys, days, surfaces, operations []string
	calls, failures                  []int64
	first, last                      []time.Time
	agents                           []string // of each row, by lines
}

// add adds to the table, unless the flush with this number, or a later one of the
// process, did before. Rows are written in the order of the primary key, so that
// processes wait for each other and never in a circle. A flush that is sent again
// while the first attempt is under way waits for it at the row of the process.
const add = `
WITH turn AS (
	INSERT INTO v1_usage_flushes AS f (replica, sequence, flushed_at) VALUES ($1::text::uuid, $2::bigint, $3::timestamptz)
	ON CONFLICT (replica) DO UPDATE SET sequence = excluded.sequence, flushed_at = excluded.flushed_at
	WHERE f.sequence < excluded.sequence
	RETURNING 1
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

// Flush adds what was counted to the database, in one statement; in one more, sent
// before it, where it is not known what became of the last one. What could not be
// written stays for the next flush.
func (c *Counter) Flush(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()

	if c.unsure != nil {
		if err := c.send(ctx, c.unsure); err != nil {
			return err
		}
	}
	next := c.take(ctx)
	if next == nil {
		return nil
	}
	c.sequence++
	next.sequence = c.sequence
	c.unsure = next
	return c.send(ctx, next)
}

// send writes the flush that it is not sure of.
func (c *Counter) send(ctx context.Context, b *batch) error {
	_, err := c.exec(ctx, c.db, "record the use of v1", pg.Prepared(pg.Raw(add, b.args(c.replica))))
	if err == nil {
		c.unsure = nil
	}
	return err
}

// args are the values of the statement add.
func (b *batch) args(replica string) []any {
	return []any{
		replica, b.sequence, b.at, b.keys, b.days, b.surfaces, b.operations, b.calls, b.failures, b.first, b.last, b.agents,
		MaxAgents,
	}
}

// take returns what was counted since it was called last, nil for nothing. Places
// that were not called since then are forgotten; so are all where they take half of
// the room.
func (c *Counter) take(ctx context.Context) *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missed > 0 {
		c.log.WarnContext(ctx, "calls of v1 were not counted: too many keys and operations between two flushes",
			"calls", c.missed, "most", c.most)
		c.missed = 0
	}

	b := &batch{at: c.clock.Now()}
	for at, t := range c.places {
		if t.calls == 0 {
			delete(c.places, at)
			continue
		}
		b.append(at, t)
		t.calls, t.failures = 0, 0
	}
	if len(c.places) > c.most/2 {
		clear(c.places)
	}
	if len(b.keys) == 0 {
		return nil
	}
	return b
}

func (b *batch) append(at place, t *tally) {
	b.keys = append(b.keys, at.key.UUID())
	b.days = append(b.days, at.day.String())
	b.surfaces = append(b.surfaces, string(at.surface))
	b.operations = append(b.operations, at.operation)
	b.calls = append(b.calls, t.calls)
	b.failures = append(b.failures, t.failures)
	b.first = append(b.first, t.first)
	b.last = append(b.last, t.last)
	b.agents = append(b.agents, strings.Join(t.agents, "\n"))
}

const (
	// pruneBatch is how many rows one statement removes, and pruneBatches how many
	// statements follow one flush.
	pruneBatch   = 5_000
	pruneBatches = 20
	// replicaDays is how long the last flush of a process is remembered; it is sent
	// again within seconds, if at all.
	replicaDays = 30
)

// prune removes what is no longer kept, once a day. What is more than a few batches
// is left to the next flushes. Rows that another process is removing are passed
// over.
func (c *Counter) prune(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	now := c.clock.Now()
	if c.pruned == domain.DateOf(now) {
		return nil
	}

	for range pruneBatches {
		removed, err := c.exec(ctx, c.db, "remove the use of v1 that is no longer kept", pg.SQL(`
			DELETE FROM v1_usage WHERE ctid = ANY (ARRAY(
				SELECT ctid FROM v1_usage WHERE day < ?::date LIMIT ?::int FOR UPDATE SKIP LOCKED))`, oldest(now), pruneBatch))
		if err != nil {
			return err
		}
		if removed == pruneBatch {
			continue
		}
		_, err = c.exec(ctx, c.db, "forget processes that counted the use of v1", pg.SQL(
			"DELETE FROM v1_usage_flushes WHERE flushed_at < ?::timestamptz", now.AddDate(0, 0, -replicaDays)))
		if err == nil {
			c.pruned = domain.DateOf(now)
		}
		return err
	}
	return nil
}
