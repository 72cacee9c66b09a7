package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"partnerapi/domain"
)

// writes are the measures of requests that change something. They come after
// those that only read.
func (b *bench) writes() []measure {
	return []measure{
		{"GET /v2/clients/{id} with a stale summary", nil, b.stale},
		{"POST /v2/clients/{id}/users", nil, b.createUsers},
		{"PATCH /v2/users/{id}", nil, b.updateUsers},
		{"POST /v2/clients/{id}/phishing/sends", nil, b.send},
	}
}

// stale compares the read of a client whose summary is out of date with that of
// one whose summary is fresh: for who reads the client first, and for who polls it
// once an hour, whose summaries the background work refreshes ahead.
func (b *bench) stale(ctx context.Context) ([]result, error) {
	c, err := dial(b.service.said)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var fresh, polled, first []time.Duration
	for i := range b.times(500) {
		client := b.data.clients[1+i%(len(b.data.clients)-1)]
		for _, state := range []struct {
			age, until string
			took       *[]time.Duration
		}{{"0", "0", &fresh}, {"1 hour", "1 hour", &polled}, {"1 hour", "0", &first}} {
			_, err := b.data.db.SQL().ExecContext(ctx, `UPDATE clients
				SET summarized_at = now() - $2::interval, refresh_until = now() + $3::interval WHERE id = $1::uuid`,
				client.UUID(), state.age, state.until)
			if err != nil {
				return nil, err
			}
			if _, err := b.data.db.RefreshAhead(ctx); err != nil {
				return nil, err
			}
			t, err := c.timed(request("/v2/clients/"+client.String(), b.keys[0]))
			if err != nil {
				return nil, err
			}
			*state.took = append(*state.took, t)
		}
	}
	return []result{
		ratio("GET /v2/clients/{id}, polled hourly / fresh", median(polled), median(fresh), 2),
		ratio("GET /v2/clients/{id}, first read of a stale summary / fresh", median(first), median(fresh), 0),
	}, nil
}

// createUsers measures the creation of a user of the largest client.
func (b *bench) createUsers(ctx context.Context) ([]result, error) {
	began := time.Now().UnixNano()
	return b.changing(ctx, "POST a user", 300, func(i int, key string) []byte {
		body := fmt.Appendf(nil, `{"email":"new-%d-%d@bench.example","first_name":"New","last_name":"User",`+
			`"job_title":"Accountant"}`, began, i)
		return post("/v2/clients/"+b.data.clients[0].String()+"/users", key, body)
	})
}

// updateUsers measures a change of a user that moves the score: the role.
func (b *bench) updateUsers(ctx context.Context) ([]result, error) {
	users, err := ids[domain.UserKind](ctx, b.data,
		"SELECT id::text FROM users WHERE client_id = $1::uuid AND status = 'active' ORDER BY id LIMIT 500",
		b.data.clients[0].UUID())
	if err != nil {
		return nil, err
	}
	roles := []string{"finance", "hr", "standard"}
	return b.changing(ctx, "PATCH a user's role", 300, func(i int, key string) []byte {
		body := fmt.Appendf(nil, `{"role":%q}`, roles[(i/len(users)+i)%len(roles)])
		return withBody("PATCH", "/v2/users/"+users[i%len(users)].String(), key, body)
	})
}

// send measures the scheduling of 100 simulated mails, whose templates the
// service chooses. They are not due while anything is measured.
func (b *bench) send(ctx context.Context) ([]result, error) {
	users, err := ids[domain.UserKind](ctx, b.data,
		"SELECT id::text FROM users WHERE client_id = $1::uuid AND status = 'active' ORDER BY id LIMIT 5000",
		b.data.clients[0].UUID())
	if err != nil {
		return nil, err
	}
	due := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
	return b.changing(ctx, "POST 100 simulated sends", 50, func(i int, key string) []byte {
		from := i * 100 % (len(users) - 99)
		body, _ := json.Marshal(map[string]any{"user_ids": users[from : from+100], "send_at": due}) // texts only: cannot fail
		return post("/v2/clients/"+b.data.clients[0].String()+"/phishing/sends", key, body)
	})
}

// changing is the median time of requests that change something, one at a time.
func (b *bench) changing(ctx context.Context, name string, times int, next func(i int, key string) []byte) ([]result,
	error) {
	key, err := b.data.key(ctx, name, domain.Write)
	if err != nil {
		return nil, err
	}
	c, err := dial(b.service.said)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []time.Duration
	for i := range b.times(times) {
		t, err := c.timed(next(i, key))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return []result{{name: name, ours: took(median(all))}}, nil
}
