package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// This file measures the reading of events, and what they add to a write.

const (
	// published is how many events of the seed's partner are there to be read.
	published = 200_000
	// eventsShown is how many of them a page has.
	eventsShown = 100
)

// events are the measures of events.
func (b *bench) events() []measure {
	return []measure{
		{"GET /v2/events", b.data.publishedEvents, b.eventPages},
		{"event of a write", nil, b.eventCost},
	}
}

// publishedEvents makes events of all clients in turns, as if they were published.
func (d *data) publishedEvents(ctx context.Context, progress io.Writer) error {
	return d.once(ctx, "published events", progress, func(tx *sql.Tx, _ func(done, total int)) error {
		return execAll(ctx, tx, []statement{
			{`WITH head AS (UPDATE event_head SET position = position + $2 RETURNING position - $2 AS position)
			INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT $1, head.position + n, c.id, gen_random_uuid(), t.type, now(), format(
				'{"id":"evt_01h455vb4pex5vsknk084sn02q","type":"%s","created_at":"2026-06-15T12:00:00.000000Z",' ||
				'"client_id":"cli_01h455vb4pex5vsknk084sn02q","data":{"id":"usr_01h455vb4pex5vsknk084sn02q",' ||
				'"email":"user%s@bench.example","first_name":"User","last_name":"%s","job_title":"Accountant",' ||
				'"status":"active","updated_at":"2026-06-15T12:00:00.000000Z"}}', t.type, n, n)
			FROM head, generate_series(1, $2::bigint) AS n
			JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place, count(*) OVER () AS of FROM clients
				WHERE partner_id = $1) AS c ON c.place = n % c.of
			JOIN (SELECT type, place - 1 AS place FROM unnest($3::text[]) WITH ORDINALITY AS t (type, place)) AS t
				ON t.place = n % cardinality($3::text[])`,
				[]any{d.partner.UUID(), published, domain.EventType("").Values()}},
		})
	})
}

// eventPages measures pages of events: of all clients from the start and from the
// middle, of two types, and of a tenth of the clients.
func (b *bench) eventPages(ctx context.Context) (results []result, err error) {
	subset, err := b.data.db.CreateKey(ctx, db.NewKey{Partner: b.data.partner, Name: "bench events",
		Scopes: []domain.Scope{domain.Read}, Clients: b.data.clients[:len(b.data.clients)/10]})
	if err != nil {
		return nil, err
	}
	middle, err := b.middleOfEvents(ctx)
	if err != nil {
		return nil, err
	}
	types := fmt.Sprintf("&types=%s,%s", domain.ReportMade, domain.SyncStopped)
	for _, m := range []struct{ name, key, query string }{
		{"the first", b.keys[0], ""}, {"one in the middle", b.keys[0], "&cursor=" + url.QueryEscape(middle)},
		{"of two types", b.keys[0], types}, {"of a tenth of the clients", subset, ""},
		{"of two types and a tenth of the clients", subset, types},
	} {
		r := request(fmt.Sprintf("/v2/events?limit=%d%s", eventsShown, m.query), m.key)
		typical, err := b.typical(ctx, b.times(500), eventsShown, always(r))
		if err != nil {
			return nil, err
		}
		results = append(results, result{
			name: fmt.Sprintf("v2 page of %d of %d events: %s", eventsShown, published, m.name), ours: took(typical)})
	}
	return results, nil
}

// middleOfEvents walks through half of the events, and returns where it got.
func (b *bench) middleOfEvents(ctx context.Context) (cursor string, err error) {
	c, err := dial(b.service.said)
	if err != nil {
		return "", err
	}
	defer c.Close()
	for range published / 2 / 500 {
		var body bytes.Buffer
		path := "/v2/events?limit=500"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		if err := c.send(request(path, b.keys[0]), &body); err != nil {
			return "", err
		}
		var page struct {
			Page struct {
				Cursor string `json:"next_cursor"`
			}
		}
		if err := json.Unmarshal(body.Bytes(), &page); err != nil {
			return "", err
		}
		cursor = page.Page.Cursor
	}
	return cursor, ctx.Err()
}

// eventCost compares a change of a user with the same one of a service whose changes
// write no events, in turns.
func (b *bench) eventCost(ctx context.Context) (results []result, err error) {
	silent, err := start("serve-silent", b.progress, envURL+"="+b.data.url, envPartner+"="+b.data.partner.UUID())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, silent.stop()) }()
	key, err := b.data.key(ctx, "bench events", domain.Write)
	if err != nil {
		return nil, err
	}
	users, err := ids[domain.UserKind](ctx, b.data,
		"SELECT id::text FROM users WHERE client_id = $1 AND status = 'active' ORDER BY id LIMIT 4000", b.data.clients[0].UUID())
	if err != nil {
		return nil, err
	}
	before, err := b.data.waitingEvents(ctx)
	if err != nil {
		return nil, err
	}
	began, times := time.Now().UnixNano(), b.times(2000)
	took, err := b.alternately(ctx, times, func(of, i int) []byte {
		// Each user is changed by both, each time to a title of the same role.
		return withBody("PATCH", "/v2/users/"+users[i%len(users)].String(), key,
			fmt.Appendf(nil, `{"job_title":"Clerk %d %d"}`, began, 2*i+of))
	}, b.service, silent)
	if err != nil {
		return nil, err
	}
	after, err := b.data.waitingEvents(ctx)
	if n := after - before; err == nil && n != warm(times)+times {
		err = fmt.Errorf("%d changes of a user wrote %d events", warm(times)+times, n)
	}
	return []result{ratio("PATCH a user, with its event / without", took[0], took[1], 1.1)}, err
}

// waitingEvents is how many events wait to be published.
func (d *data) waitingEvents(ctx context.Context) (int, error) {
	f, err := d.db.Figures(ctx, time.Minute)
	return f.Events, err
}
