package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// This file measures how quickly frameworks are assigned to the largest client,
// and how quickly assignments are evaluated.

const (
	// evaluatedEach is how many collections each of evaluatedFrameworks is assigned
	// to where 1,000 assignments are evaluated.
	evaluatedEach       = 100
	evaluatedFrameworks = 10

	evaluatedCollection = "Evaluated collection"
)

// given is what a child that gives courses says.
type given struct {
	Took  time.Duration
	Users int
}

// giveChild gives courses to those who wait for them, as the background work does,
// says how that went, and waits to be stopped.
func giveChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()

	var all given
	for begin := time.Now(); ; {
		n, err := d.AssignWaiting(ctx)
		if err != nil {
			return err
		}
		all.Users, all.Took = all.Users+n, time.Since(begin)
		if n == 0 {
			break
		}
	}
	if err := json.NewEncoder(out).Encode(all); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// frameworks are the measures of frameworks.
func (b *bench) frameworks() []measure {
	return []measure{
		{"evaluation of framework assignments", b.data.parts, b.evaluate},
		{"assigning of a framework", nil, b.assign},
	}
}

// assign measures the assignment of the framework with the most courses to all
// users, and its removal.
func (b *bench) assign(ctx context.Context) ([]result, error) {
	var framework string
	var courses int
	err := b.data.db.SQL().QueryRowContext(ctx, `SELECT framework_id, count(*) FROM framework_courses
		GROUP BY framework_id ORDER BY count(*) DESC, framework_id LIMIT 1`).Scan(&framework, &courses)
	if err != nil {
		return nil, err
	}
	key, err := b.data.key(ctx, "bench frameworks", domain.Write)
	if err != nil {
		return nil, err
	}
	c, err := dial(b.service.said)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	// What an earlier run left behind would be given too.
	if err := b.data.exec(ctx, "DELETE FROM waiting_assignments"); err != nil {
		return nil, err
	}

	path := "/v2/clients/" + b.data.clients[0].String() + "/frameworks"
	body := fmt.Appendf(nil, `{"framework_id":%q}`, framework)
	var asked, removed []time.Duration
	var users []given
	var peak float64
	for range b.times(5) {
		took, err := c.timed(post(path, key, body))
		if err != nil {
			return nil, err
		}
		asked = append(asked, took)
		got, mb, err := b.give(ctx)
		if err != nil {
			return nil, err
		}
		users, peak = append(users, got), max(peak, mb)
		if took, err = b.remove(ctx, c, path, key, framework); err != nil {
			return nil, err
		}
		removed = append(removed, took)
	}
	all := make([]time.Duration, len(users))
	for i, u := range users {
		all[i] = u.Took
	}
	name := fmt.Sprintf("POST a framework of %d courses to %d users", courses, b.data.users)
	return []result{
		seconds(name+", s", median(asked), 3),
		{name: fmt.Sprintf("  then %d courses given by the background work", users[0].Users), ours: took(median(all))},
		{name: "  peak resident memory of that work, MB", ours: fmt.Sprintf("%.0f", peak)},
		{name: "  DELETE of that framework", ours: took(median(removed))},
	}, nil
}

// give lets a child give the courses that users wait for, and returns its peak
// memory too.
func (b *bench) give(ctx context.Context) (got given, peak float64, err error) {
	before := childProcessors(b.data.server)
	worker, err := start("give", b.progress, envURL+"="+b.data.url)
	if err != nil {
		return got, 0, err
	}
	err = json.Unmarshal([]byte(worker.said), &got)
	b.spent("course given", worker, before, got.Users)
	peak, failed := worker.peakMB()
	return got, peak, errors.Join(err, failed, worker.stop(), ctx.Err())
}

// remove removes the client's assignment of a framework to all, and returns how
// long that took.
func (b *bench) remove(ctx context.Context, c *connection, path, key, framework string) (time.Duration, error) {
	list, err := ids[domain.FrameworkAssignmentKind](ctx, b.data, `SELECT id::text FROM framework_assignments
		WHERE client_id = $1 AND framework_id = $2 AND audience_type = 'all'`, b.data.clients[0].UUID(), framework)
	if err != nil || len(list) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s is assigned %d times", framework, len(list)))
	}
	return c.timed(withBody("DELETE", path+"/"+list[0].String(), key, nil))
}

// parts makes collections of the second largest client, each of a part of its
// users.
func (d *data) parts(ctx context.Context, progress io.Writer) error {
	return d.once(ctx, "parts", progress, func(tx *sql.Tx, _ func(done, total int)) error {
		client := d.clients[1].UUID()
		return execAll(ctx, tx, []statement{
			{`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
			SELECT $1, gen_random_uuid(), $2 || ' ' || n, lower($2 || ' ' || n), 'api', now(), now()
			FROM generate_series(0, $3::integer - 1) AS n`, []any{client, evaluatedCollection, evaluatedEach}},
			{`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT client_id, k.id, u.id, now() FROM users AS u JOIN collections AS k USING (client_id)
			WHERE client_id = $1 AND k.name = $2 || ' ' || abs(hashtext(u.id::text)) % $3::integer`,
				[]any{client, evaluatedCollection, evaluatedEach}},
			{`UPDATE collections AS k SET member_count =
				(SELECT count(*) FROM collection_members AS m WHERE m.client_id = k.client_id AND m.collection_id = k.id)
			WHERE client_id = $1 AND starts_with(name, $2)`, []any{client, evaluatedCollection}},
		})
	})
}

// evaluate measures the evaluation of stale assignments, as who lists them waits
// for it: of 1,000 to the collections of a client, and of ten to all users of the
// largest one.
func (b *bench) evaluate(ctx context.Context) (results []result, err error) {
	var chosen []string
	for _, f := range domain.Frameworks[:evaluatedFrameworks] {
		chosen = append(chosen, f.ID)
	}
	for _, of := range []struct {
		name     string
		client   domain.ClientID
		audience string // rows of audience_type, audience_id
		bar      float64
	}{
		{fmt.Sprintf("%d framework assignments evaluated in one statement", evaluatedEach*evaluatedFrameworks),
			b.data.clients[1], "SELECT 'collection', id FROM collections WHERE client_id = $1 AND starts_with(name, '" +
				evaluatedCollection + "')", 0},
		{fmt.Sprintf("%d framework assignments to %d users evaluated", evaluatedFrameworks, b.data.users),
			b.data.clients[0], "SELECT 'all', NULL::uuid", 3},
	} {
		client := of.client.UUID()
		forget := func() error {
			return b.data.exec(ctx, "DELETE FROM framework_assignments WHERE client_id = $1", client)
		}
		err := errors.Join(forget(), b.data.exec(ctx, `
			INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, policies, created_at)
			SELECT $1, gen_random_uuid(), f.id, a.type, a.id, true, now()
			FROM unnest($2::text[]) AS f (id), (`+of.audience+`) AS a (type, id)`, client, chosen),
			b.data.exec(ctx, "ANALYZE framework_assignments"))
		if err != nil {
			return nil, err
		}
		stale := func() error {
			return b.data.exec(ctx, "UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE client_id = $1", client)
		}
		list := request("/v2/clients/"+of.client.String()+"/frameworks?limit=10", b.keys[0])
		long, err := b.typical(ctx, b.times(5), evaluatedFrameworks, always(list), stale)
		if err := errors.Join(err, forget()); err != nil {
			return nil, err
		}
		results = append(results, seconds(of.name+", s", long, of.bar))
	}
	return results, nil
}

// exec executes a statement.
func (d *data) exec(ctx context.Context, query string, values ...any) error {
	_, err := d.db.SQL().ExecContext(ctx, query, values...)
	return err
}
