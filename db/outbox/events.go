package outbox

import (
	"context"
	"slices"
	"strconv"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// publishedRow is a row of published_events. Head is the partner's last position. A page without events is one row
// whose other fields are nil.
type publishedRow struct {
	Head      int64
	Position  *int64
	ID        *domain.EventID
	Type      *domain.EventType
	ClientID  *domain.ClientID
	CreatedAt *time.Time
	Body      *string
}

func (r *publishedRow) event() domain.PublishedEvent {
	return domain.PublishedEvent{
		Position: *r.Position, ID: *r.ID, Type: *r.Type, Client: *r.ClientID, At: *r.CreatedAt, Body: *r.Body,
	}
}

// Events reads a page of the events of the clients within the caller's reach, in the order of publication. The page is
// empty if w.Latest is set. End is the position to continue from: that of the page's last event or, on the last page,
// that of the partner's last published event. One statement reads the events, that position and the caller's access, so
// all are of one snapshot. A reader who continues from End misses no event, as events become visible in this order.
func Events(
	ctx context.Context, d *db.DB, f domain.EventFilter, w domain.Window,
) (domain.Slice[domain.PublishedEvent], error) {
	partner, after := domain.CallerFrom(ctx).Partner, int64(0)
	if w.After != nil {
		var err error
		if after, err = strconv.ParseInt(w.After.Key, 10, 64); err != nil {
			return domain.Slice[domain.PublishedEvent]{}, domain.ErrInvalid("cursor", "is not a cursor of this list")
		}
	}
	var within domain.Period
	if f.ByTime() {
		var err error
		if within, err = readingPeriod(ctx, d, f, &w); err != nil {
			return domain.Slice[domain.PublishedEvent]{}, err
		}
	}
	chosen := pg.SQL("SELECT 0::bigint AS position WHERE false")
	if !w.Latest {
		chosen = eventPositions(ctx, f, after, within, w.Limit+1)
	}
	// Without events there is one row, of the head and nulls.
	rows, err := pg.All[publishedRow](ctx, d, "read events", pg.SQL(`
		WITH chosen AS MATERIALIZED (?0)
		SELECT head.position AS head, e.position, e.id, e.type, e.client_id, e.created_at, e.body
		FROM (SELECT coalesce(max(position), 0) AS position FROM published_events WHERE partner_id = ?1) AS head
		LEFT JOIN (
			SELECT p.* FROM chosen JOIN published_events AS p ON p.partner_id = ?1 AND p.position = chosen.position
		) AS e ON true
		ORDER BY e.position`, chosen, partner))
	if err != nil {
		return domain.Slice[domain.PublishedEvent]{}, err
	}

	end := max(after, rows[0].Head)
	rows = slices.DeleteFunc(rows, func(r publishedRow) bool { return r.Position == nil })
	s := domain.Slice[publishedRow]{Rows: rows}
	if len(rows) > w.Limit {
		s.Rows, s.More = rows[:w.Limit], true
		end = *s.Rows[w.Limit-1].Position
	}
	s.End = &domain.Position{Key: strconv.FormatInt(end, 10)}
	if f.ByTime() {
		s.Horizon, s.End = within.Until, readingEnd(f, within, s.More, s.End.Key)
	}
	return pg.Map(s, (*publishedRow).event), nil
}

// Horizon returns the time up to which the feed of the caller's partner has all events (db.Horizon): an event that is
// not yet published is a change in progress, also while it is postponed.
func Horizon(ctx context.Context, d *db.DB) (time.Time, error) {
	at, err := d.Horizon(ctx)
	if err != nil {
		return at, err
	}
	waiting, err := pg.One[*time.Time](ctx, d, "find the earliest event that waits", pg.SQL(`
		SELECT min(e.created_at) FROM events AS e JOIN clients AS c ON c.id = e.client_id
		WHERE c.partner_id = ? AND e.type = ANY(?::text[])`, domain.CallerFrom(ctx).Partner, domain.EventTypes))
	if waiting != nil && waiting.Before(at) {
		at = *waiting
	}
	return at, err
}

// readingPeriod returns the period of the events of a reading that ends at a horizon, which is the end of the period.
// The start is the filter's, or the later time from which the feed continues.
func readingPeriod(ctx context.Context, d *db.DB, f domain.EventFilter, w *domain.Window) (domain.Period, error) {
	within := domain.Period{Since: f.Since}
	if w.After != nil && w.After.Since != nil {
		within.Since = w.After.Since
	}
	if w.After != nil && w.After.Horizon != nil { // of the first page
		within.Until = w.After.Horizon
		return within, nil
	}
	at, err := Horizon(ctx, d)
	within.Until = &at
	return within, err
}

// readingEnd returns the position after a page of a reading that ends at a horizon: that of the page's last event, key,
// if more follow. At the end it is nil or, for a caller who follows the feed, the horizon, from which a later reading
// continues: events after it may already have earlier positions than events before it.
func readingEnd(f domain.EventFilter, within domain.Period, more bool, key string) *domain.Position {
	switch {
	case more:
		return &domain.Position{Key: key, Horizon: within.Until, Since: within.Since}
	case f.Ends:
		return nil
	}
	return &domain.Position{Key: "0", Since: new(domain.Later(*within.Since, *within.Until))}
}

// eventPositions selects, in order, the positions of the first n events after a position that match the filter and are
// within the caller's reach. It reads up to n events of each index range. There is one range for the partner if the
// caller reaches all clients and the filter names none, otherwise one for each client, each divided by the filter's
// types. A page that is the first within a period begins at the partner's first event of that period.
func eventPositions(ctx context.Context, f domain.EventFilter, after int64, within domain.Period, n int) pg.Query {
	caller := domain.CallerFrom(ctx)
	var ranges, inRange pg.Query
	if caller.AllClients && f.Client == nil {
		// IS TRUE keeps the planner from turning IN into a join: it reads the clients once, not for each event.
		ranges = pg.SQL("(VALUES (1)) AS every (client)")
		inRange = pg.SQL("e.partner_id = ?0 AND (e.client_id IN (SELECT c.id FROM clients AS c WHERE ?1)) IS TRUE",
			caller.Partner, db.WithinReach(ctx))
	} else {
		matches := pg.SQL("true")
		if f.Client != nil {
			matches = pg.SQL("c.id = ?", *f.Client)
		}
		ranges = pg.SQL("(SELECT c.id FROM clients AS c WHERE ? AND ?) AS r", matches, db.WithinReach(ctx))
		inRange = pg.SQL("e.client_id = r.id")
	}
	if len(f.Types) > 0 {
		ranges = pg.SQL("? CROSS JOIN unnest(?::text[]) AS t (type)", ranges, f.Types)
		inRange = pg.SQL("? AND e.type = t.type", inRange)
	}
	begin := pg.SQL("?::bigint", after)
	if within.Until != nil {
		inRange = pg.SQL("? AND e.created_at < ?", inRange, *within.Until)
	}
	if within.Since != nil {
		inRange = pg.SQL("? AND e.created_at >= ?", inRange, *within.Since)
		if after == 0 {
			begin = pg.SQL(`(SELECT min(first.position) - 1 FROM published_events AS first
				WHERE first.partner_id = ?partner AND first.created_at >= ?since AND first.created_at < ?until)`,
				pg.Named{"partner": caller.Partner, "since": *within.Since, "until": *within.Until})
		}
	}
	return pg.SQL(`
		SELECT e.position FROM ?ranges CROSS JOIN LATERAL (
			SELECT e.position FROM published_events AS e WHERE ?inRange AND e.position > ?begin ORDER BY e.position LIMIT ?n
		) AS e
		ORDER BY e.position LIMIT ?n`, pg.Named{"ranges": ranges, "inRange": inRange, "begin": begin, "n": n})
}
