package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"partnerapi/domain"
)

// reads are the measures of what v2 alone can be measured by: pages that have
// no equal to be compared with.
func (b *bench) reads() []measure {
	return []measure{
		{"GET /v2/clients/{id}/policies", b.data.papers, b.policies},
		{"GET /v2/users/{id}/emails", b.data.mails, b.emails},
	}
}

// policies measures the page of the largest client's policies, each with the
// sign-off of its audience: as it was counted before, and when it is to be
// counted anew.
func (b *bench) policies(ctx context.Context) ([]result, error) {
	r := request("/v2/clients/"+b.data.clients[0].String()+"/policies", b.keys[0])
	stored, err := b.typical(ctx, b.times(500), policies, always(r))
	if err != nil {
		return nil, err
	}
	counted, err := b.typical(ctx, b.times(20), policies, always(r), func() error {
		_, err := b.data.db.SQL().ExecContext(ctx, "UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1",
			b.data.clients[0].UUID())
		return err
	})
	name := fmt.Sprintf("v2 page of %d policies of %d users", policies, b.data.users)
	return []result{{name: name, ours: took(stored)}, {name: name + ", when all changed", ours: took(counted)}}, err
}

// emails measures the page of the mails that a user was sent, each time of
// another user.
func (b *bench) emails(ctx context.Context) ([]result, error) {
	readers, err := b.data.readers(ctx)
	if err != nil {
		return nil, err
	}
	typical, err := b.typical(ctx, b.times(2000), mailsShown, func(i int) []byte {
		return request(emailsPath(readers[i%len(readers)], 100), b.keys[0])
	})
	return []result{{name: fmt.Sprintf("v2 page of a user's mails, of %d", b.data.all*mailsEach), ours: took(typical)}},
		err
}

// The mails that are asked for are those of 30 days, as v1 shows them.
const (
	mailsShown = 30
	mailsSince = "2026-01-11T00:00:00Z"
	mailsUntil = "2026-02-10T00:00:00Z"
	mailTypes  = "training-invite,phishing,phish-reminder,certificate,monthly-report"
)

func emailsPath(user domain.UserID, limit int) string {
	return fmt.Sprintf("/v2/users/%s/emails?limit=%d&since=%s&until=%s&message_types=%s", user, limit, mailsSince,
		mailsUntil, mailTypes)
}

// readers are users of any clients, in no order.
func (d *data) readers(ctx context.Context) ([]domain.UserID, error) {
	return ids[domain.UserKind](ctx, d, "SELECT id::text FROM users ORDER BY random() LIMIT 1000")
}

// ids reads ids as texts.
func ids[K domain.Kind](ctx context.Context, d *data, query string, values ...any) (all []domain.ID[K], err error) {
	rows, err := d.db.SQL().QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		id, err := domain.ParseUUID[K](text)
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// typical is the median time of requests, one at a time, whose pages must have
// so many rows. What is to be done before each is not timed.
func (b *bench) typical(ctx context.Context, times, rows int, next func(i int) []byte,
	before ...func() error) (time.Duration, error) {
	c, err := dial(b.service.said)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if n, err := c.countRows(next(0)); err != nil || n != rows {
		return 0, errors.Join(err, fmt.Errorf("the page has %d rows and not %d", n, rows))
	}
	var all []time.Duration
	for i := range times {
		for _, do := range before {
			if err := do(); err != nil {
				return 0, err
			}
		}
		t, err := c.timed(next(i))
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		all = append(all, t)
	}
	return median(all), nil
}

// countRows is how many rows a page of v2 has.
func (c *connection) countRows(request []byte) (int, error) {
	var body bytes.Buffer
	if err := c.send(request, &body); err != nil {
		return 0, err
	}
	var page struct{ Data []json.RawMessage }
	err := json.Unmarshal(body.Bytes(), &page)
	return len(page.Data), err
}
