package db

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Change is the unit of work of a transaction. A function that is given one
// writes its own rows with the methods that take it, and says with the methods
// below what follows from that: users to score again, counters to move, policies
// whose audience changed, events, mails, jobs. What follows is written when the function
// returns, set-based, in one fixed order, which is also the order in which all
// transactions lock rows: two of them wait for each other and cannot deadlock.
type Change struct {
	*DB
	// At is when the change takes place: the time of its events, and of
	// updated_at where it touches a row.
	At time.Time

	locked LockRank
	// audiences are the clients whose audiences are locked or shared.
	audiences map[domain.ClientID]bool
	users     userEffects
	counters  counters
	policies  []pg.Query
	events    []eventRow
	mails     []mailRecord
	noMail    bool
	last      []func(context.Context) error
}

// LockRank is the place of a kind of rows in the lock order.
type LockRank int

// The lock order: rows of a kind are locked in the order of their keys, and never
// after rows of a kind that stands below. Rows that the transaction itself made
// need no lock, and weak locks (KEY SHARE, SHARE) have no place in the order.
const (
	MessageLocks  LockRank = iota + 1 // advisory, of the Message-IDs of real mails
	AudienceLocks                     // advisory; see ShareAudiences
	SyncLocks                         // of sync_runs and directory_connections
	WaitingLocks                      // of waiting_assignments
	OutboxLocks
	ResultLocks
	UserLocks
	CollectionLocks
	PolicyLocks
	SignalLocks
	ReportedLocks
	ExposureLocks
	TemplateLocks
	ReportLocks
	DayLocks
	ClientLocks
	PartnerLocks
	WebhookLocks
)

// Lock notes that rows of a kind are about to be locked. Out of the lock order it
// is a programming error, which panics where the database was opened for tests.
func (c *Change) Lock(rank LockRank) {
	if c.strict && rank < c.locked {
		panic(fmt.Sprintf("rows of rank %d are locked after rows of rank %d", rank, c.locked))
	}
	c.locked = max(c.locked, rank)
}

// Change runs fn in a transaction and then writes what follows from it. Within an
// outer transaction it joins that one. See WithEntry for the audit trail.
func (d *DB) Change(ctx context.Context, fn func(context.Context, *Change) error) error {
	if owed, _ := ctx.Value(owedKey{}).(*owedEntry); owed != nil {
		return owed.write(ctx, d, fn)
	}
	return d.change(ctx, fn)
}

func (d *DB) change(ctx context.Context, fn func(context.Context, *Change) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		c := &Change{DB: d, At: d.Now()}
		if err := fn(ctx, c); err != nil {
			return err
		}
		return c.flush(ctx)
	})
}

// Try runs fn as Change does and then rolls back what it did, whether it succeeds or
// not: also within an outer transaction, of which nothing else is lost.
func (d *DB) Try(ctx context.Context, fn func(context.Context, *Change) error) error {
	return d.Trial(ctx, func(ctx context.Context) error { return d.Change(ctx, fn) })
}

// flush writes what follows from the change, in the lock order.
func (c *Change) flush(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.flushUsers,
		c.flushPolicies,
		c.flushCounters,
		c.flushEvents,
		c.flushMails,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, step := range c.last {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Finally has fn run last in the transaction: for the mails of the change, and for
// reads of what it led to.
func (c *Change) Finally(fn func(context.Context) error) { c.last = append(c.last, fn) }

// policiesOf notes that the audiences changed of the policies, alias p, that a
// condition selects: what they count is stale.
func (c *Change) policiesOf(text string, args ...any) {
	c.policies = append(c.policies, pg.SQL(text, args...))
}

// flushPolicies marks the counts of the noted policies as stale. A count is made
// again by the next read, and not by every writer.
func (c *Change) flushPolicies(ctx context.Context) error {
	if len(c.policies) == 0 {
		return nil
	}
	c.Lock(PolicyLocks)
	chosen := pg.SQL("false")
	for _, condition := range c.policies {
		chosen = pg.SQL("? OR (?)", chosen, condition)
	}
	_, err := pg.Exec(ctx, c, "mark policies as changed", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT p.client_id, p.id FROM policies AS p
			WHERE p.requires_acknowledgment AND p.archived_at IS NULL AND (?1)
			ORDER BY p.client_id, p.id FOR NO KEY UPDATE
		)
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?0), counted_until = '-infinity'
		FROM chosen WHERE p.client_id = chosen.client_id AND p.id = chosen.id`, c.At, chosen))
	return err
}

// eventRow is an event as it is stored.
type eventRow struct {
	ClientID  string           `json:"client_id"`
	ID        string           `json:"id"`
	Type      domain.EventType `json:"type"`
	UserID    *string          `json:"user_id"`
	ObjectID  *string          `json:"object_id"`
	CreatedAt time.Time        `json:"created_at"`
}
