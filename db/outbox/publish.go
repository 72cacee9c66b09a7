package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The table events is an outbox: a change writes its events in its own transaction, and PublishEvents moves the
// committed events to published_events, where callers read them, and to webhook_deliveries. It locks event_head, so one
// transaction at a time assigns positions. So events become visible in the order of their positions, however long the
// transactions took that wrote them: no event becomes visible after an event of a higher position.

// RenderEvents returns the bodies of events, in their order. A body is empty if the event's object no longer exists. It
// is called in the transaction that publishes, and reads the current state of the objects.
type RenderEvents func(ctx context.Context, events []db.OutboxEvent) ([]string, error)

// Publication is the outcome of a batch of events.
type Publication struct {
	// Busy is true if another process is publishing, so that this call did nothing.
	Busy bool
	// Published are the events that were published. Dropped are the events whose object no longer exists, or whose
	// client is archived or does not exist: no caller could read them.
	Published, Dropped []domain.Event
	// Postponed is an event that could not be published because of Reason, or nil. It is tried again after
	// PostponeEvent.
	Postponed *domain.Event
	Reason    error
	// Deliveries is the number of deliveries to subscriptions that were inserted.
	Deliveries int
}

// Taken returns how many events of the batch were handled: published, dropped or postponed.
func (p *Publication) Taken() int {
	n := len(p.Published) + len(p.Dropped)
	if p.Postponed != nil {
		n++
	}
	return n
}

// PostponeEvent is the delay after which an event that could not be published is tried again.
const PostponeEvent = 10 * time.Minute

// PublishEvents publishes up to n events in the order in which they were written, and inserts a delivery for every
// subscription to one of them. While another process publishes, it does nothing and sets Busy. It takes the same number
// of statements for any number of events of a type. If an event cannot be published, for a reason other than the
// database, a batch of several events is an error and publishes none. The caller then passes 1 for n: a batch of that
// event alone is postponed, so that it delays no other. Events of types that this release does not know are left for a
// release that does.
func PublishEvents(ctx context.Context, d *db.DB, n int, render RenderEvents) (Publication, error) {
	var p Publication
	var taken []db.OutboxEvent
	err := d.Tx(ctx, func(ctx context.Context) error {
		head, err := pg.All[int64](ctx, d, "lock the head of the events",
			pg.Prepared(pg.SQL("SELECT position FROM event_head FOR UPDATE SKIP LOCKED")))
		if err != nil {
			return err
		}
		if p.Busy = len(head) == 0; p.Busy {
			return nil
		}
		if taken, err = takeEvents(ctx, d, n); err != nil || len(taken) == 0 {
			return err
		}
		return publish(ctx, d, head[0], taken, render, &p)
	})
	eventFailed := err != nil && ctx.Err() == nil && !domain.IsCode(err, domain.Unavailable)
	if !eventFailed || len(taken) != 1 {
		return p, err
	}
	return Publication{Postponed: &taken[0].Event, Reason: err}, postponeEvent(ctx, d, &taken[0])
}

// waitingEvents is the condition that an event is to be published at the time ?now: it is not postponed, it is of one
// of ?types, and its client is not suspended. An event that is postponed for longer than PostponeEvent was postponed
// before the clock was set back.
const waitingEvents = "(e.postponed_until BETWEEN ?now AND ?now + interval '10 minutes') IS NOT TRUE AND e.type = ANY(?types::text[])" +
	" AND e.client_id NOT IN (" + db.SuspendedClients + ")"

// writtenOrder is the order in which events were written. It does not depend on a clock, except of events that were
// written before they had numbers, which come first.
const writtenOrder = "number NULLS FIRST, recorded_at, id"

// EventsWait reports whether events wait to be published. It reads index entries up to the first such event.
func EventsWait(ctx context.Context, d *db.DB) (bool, error) {
	return pg.One[bool](ctx, d, "look for events", pg.Prepared(pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM (SELECT * FROM events ORDER BY "+writtenOrder+") AS e WHERE "+waitingEvents+")",
		pg.Named{"now": d.Now(), "types": domain.EventTypes})))
}

// takeEvents reads the first n waiting events. Partner is nil if the client is archived or does not exist. It needs no
// row locks: only the holder of the lock on event_head, its caller, deletes events.
func takeEvents(ctx context.Context, d *db.DB, n int) ([]db.OutboxEvent, error) {
	return pg.All[db.OutboxEvent](ctx, d, "take events", pg.SQL(`
		SELECT e.id, e.type, e.client_id AS client, coalesce(e.user_id, ?none) AS "user", coalesce(e.object_id, ?none) AS object,
			e.created_at AS at, coalesce(e.number, 0) AS number, e.recorded_at,
			(SELECT c.partner_id FROM clients AS c WHERE c.id = e.client_id AND c.archived_at IS NULL) AS partner
		FROM events AS e WHERE `+waitingEvents+` ORDER BY `+writtenOrder+` LIMIT ?n`,
		pg.Named{"now": d.Now(), "types": domain.EventTypes, "n": n, "none": uuid.Nil}))
}

// publish publishes taken events at the positions after head, and adds their outcomes to p.
func publish(ctx context.Context, d *db.DB, head int64, taken []db.OutboxEvent, render RenderEvents, p *Publication) error {
	var readable []db.OutboxEvent // the others have no partner: their client is archived or does not exist
	for _, e := range taken {
		if e.Partner != nil {
			readable = append(readable, e)
		} else {
			p.Dropped = append(p.Dropped, e.Event)
		}
	}
	bodies, err := render(ctx, readable)
	if err != nil {
		return err
	}

	batch := publishedColumns{head: head}
	for i, e := range readable {
		if bodies[i] == "" { // its object no longer exists
			p.Dropped = append(p.Dropped, e.Event)
			continue
		}
		batch.add(e, bodies[i])
		p.Published = append(p.Published, e.Event)
	}
	p.Deliveries, err = storePublished(ctx, d, taken, &batch)
	return err
}

// publishedColumns holds new rows of published_events by column. head is the position of the last row.
type publishedColumns struct {
	head                   int64
	positions, numbers     []int64
	partners, clients, ids [][16]byte
	types                  []domain.EventType
	createdAt, recordedAt  []time.Time
	bodies                 []string
}

func (b *publishedColumns) add(e db.OutboxEvent, body string) {
	b.head++
	b.positions, b.numbers = append(b.positions, b.head), append(b.numbers, e.Number)
	b.partners, b.clients, b.ids = append(b.partners, *e.Partner), append(b.clients, e.Client), append(b.ids, e.ID)
	b.types, b.bodies = append(b.types, e.Type), append(b.bodies, body)
	b.createdAt, b.recordedAt = append(b.createdAt, e.At), append(b.recordedAt, e.RecordedAt)
}

// publishSQL inserts the rows of the arrays into published_events, deletes the events with ?takenAt and ?takenIDs from
// events, sets the head to ?head, inserts deliveries, and returns their number. Subscriptions are locked against
// deletion until the commit, and have the current access of their keys (decisions 8.2).
//
// A subscription gets what is published while it is active, except events that were written before it was last
// activated again: these happened while it was not active. Their order is that of event_numbers, so a clock that steps
// loses no event. Events from before there were numbers are compared by time, as 1.0 does. A subscription whose key has
// expired gets deliveries too, until FollowKeys disables it, which it does by a trusted clock only. They wait (see
// round.next), and are then dropped, or sent if the key is valid after all.
const publishSQL = `
	WITH batch AS MATERIALIZED (
		SELECT * FROM unnest(?positions::bigint[], ?partners::uuid[], ?clients::uuid[], ?ids::uuid[], ?types::text[], ?createdAt::timestamptz[],
			?numbers::bigint[], ?recordedAt::timestamptz[], ?bodies::text[])
			AS b (position, partner_id, client_id, id, type, created_at, number, recorded_at, body)
	), published AS (
		INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT partner_id, position, client_id, id, type, created_at, body FROM batch
	), subscribed AS MATERIALIZED (
		SELECT w.id, w.partner_id, w.key_id, w.events, w.client_ids, w.active_from, w.active_since, k.all_clients
		FROM webhooks AS w JOIN api_keys AS k ON k.id = w.key_id
		WHERE w.partner_id IN (SELECT partner_id FROM batch) AND w.status = 'active'
			AND k.revoked_at IS NULL
		ORDER BY w.partner_id, w.id FOR KEY SHARE OF w
	), delivered AS (
		INSERT INTO webhook_deliveries
			(webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
		SELECT w.id, uuid_v7(?now), b.partner_id, b.position, b.client_id, b.id, b.type, ?now, ?now
		FROM batch AS b JOIN subscribed AS w ON w.partner_id = b.partner_id
		WHERE CASE WHEN b.number > 0 THEN w.active_from < b.number ELSE w.active_since <= b.recorded_at END
			AND b.type = ANY(w.events)
			AND (w.client_ids = '{}' OR b.client_id = ANY(w.client_ids))
			AND (w.all_clients OR EXISTS (
				SELECT 1 FROM api_key_clients AS r WHERE r.key_id = w.key_id AND r.client_id = b.client_id))
		RETURNING 1
	), taken AS (
		DELETE FROM events AS e USING unnest(?takenAt::timestamptz[], ?takenIDs::uuid[]) AS t (recorded_at, id)
		WHERE e.recorded_at = t.recorded_at AND e.id = t.id
	), moved AS (
		UPDATE event_head SET position = ?head
	)
	SELECT count(*) FROM delivered`

// storePublished stores a batch in one statement: it inserts the rows of b and their webhook deliveries, and deletes
// the taken events, also those that are not published. It returns the number of deliveries.
func storePublished(ctx context.Context, d *db.DB, taken []db.OutboxEvent, b *publishedColumns) (deliveries int, err error) {
	at, ids := make([]time.Time, len(taken)), make([][16]byte, len(taken))
	for i, e := range taken {
		at[i], ids[i] = e.RecordedAt, e.ID
	}
	return pg.One[int](ctx, d, "publish events", pg.SQL(publishSQL, pg.Named{
		"positions": b.positions, "partners": b.partners, "clients": b.clients, "ids": b.ids, "types": b.types,
		"createdAt": b.createdAt, "numbers": b.numbers, "recordedAt": b.recordedAt, "bodies": b.bodies,
		"takenAt": at, "takenIDs": ids, "head": b.head, "now": d.Now(),
	}))
}

// postponeEvent postpones an event by PostponeEvent.
func postponeEvent(ctx context.Context, d *db.DB, e *db.OutboxEvent) error {
	return pg.Run(ctx, d, "postpone an event", pg.SQL(
		"UPDATE events SET postponed_until = ?until WHERE recorded_at = ?recordedAt AND id = ?id",
		pg.Named{"until": d.Now().Add(PostponeEvent), "recordedAt": e.RecordedAt, "id": e.ID}))
}
