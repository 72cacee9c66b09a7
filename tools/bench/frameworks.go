package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// This file measures how quickly frameworks are assigned to the largest client,
// and how quickly assignments are evaluated.

// giveCourses is a child that gives courses to those who wait for them, as the
// background work does, and returns to how many users.
func giveCourses(ctx context.Context, d *db.DB, _ params) (users int, err error) {
	for {
		n, err := d.AssignWaiting(ctx)
		if users += n; err != nil || n == 0 {
			return users, err
		}
	}
}

// assigning is the assignment of the framework with the most courses to all users of
// the largest client, and its removal, some times over.
type assigning struct {
	*bench
	framework              string
	users                  int // that were given courses
	asked, gave, withdrawn []time.Duration
	peak                   float64
}

// assign measures the requests that assign the framework.
func (a *assigning) assign(ctx context.Context) (figure, error) {
	var courses int
	err := a.data.db.SQL().QueryRowContext(ctx, `SELECT framework_id, count(*) FROM framework_courses
		GROUP BY framework_id ORDER BY count(*) DESC, framework_id LIMIT 1`).Scan(&a.framework, &courses)
	if err != nil {
		return figure{}, err
	}
	// What an earlier run left behind would be given too.
	if err := a.data.exec(ctx, "DELETE FROM waiting_assignments"); err != nil {
		return figure{}, err
	}
	c, err := dial(a.service.address)
	if err != nil {
		return figure{}, err
	}
	defer c.Close()
	for range a.times(5) {
		if err := errors.Join(a.round(ctx, c), ctx.Err()); err != nil {
			return figure{}, err
		}
	}
	f := took(median(a.asked))
	f.of = fmt.Sprintf(", of %d courses", courses)
	return f, nil
}

// round assigns the framework, lets a child give the courses, and removes it.
func (a *assigning) round(ctx context.Context, c *connection) error {
	path := pathOf(a.data.clients[0], "/frameworks")
	asked, err := c.timed(request("POST", path, a.writeKey, object{"framework_id": a.framework}))
	if err != nil {
		return err
	}
	gave, peak, err := inChild[int](a.bench, "give", params{})
	if err != nil {
		return err
	}
	list, err := ids[domain.FrameworkAssignmentKind](ctx, a.data, `SELECT id::text FROM framework_assignments
		WHERE client_id = $1 AND framework_id = $2 AND audience_type = 'all'`, a.data.clients[0].UUID(), a.framework)
	if err != nil || len(list) != 1 {
		return errors.Join(err, fmt.Errorf("%s is assigned %d times", a.framework, len(list)))
	}
	withdrawn, err := c.timed(request("DELETE", path+"/"+list[0].String(), a.writeKey, nil))
	a.asked, a.gave, a.withdrawn = append(a.asked, asked), append(a.gave, gave.Took), append(a.withdrawn, withdrawn)
	a.users, a.peak = gave.Result, max(a.peak, peak)
	return err
}

// given is how long the background work took to give the courses.
func (a *assigning) given(context.Context) (figure, error) {
	f := took(median(a.gave))
	f.of = fmt.Sprintf(", to %d users", a.users)
	return f.in(a.peak), nil
}

// removed is how long the requests took that removed the framework.
func (a *assigning) removed(context.Context) (figure, error) { return took(median(a.withdrawn)), nil }

// evaluate measures the list of a client's assignments when all are stale. audience
// selects the types and ids of the audiences, to each of which some frameworks are
// assigned.
func (b *bench) evaluate(client domain.ClientID, audience string) finder {
	id := client.UUID()
	return func(ctx context.Context) (f figure, err error) {
		var chosen []string
		for _, f := range domain.Frameworks[:evaluatedFrameworks] {
			chosen = append(chosen, f.ID)
		}
		forget := func() error {
			return b.data.exec(ctx, "DELETE FROM framework_assignments WHERE client_id = $1", id)
		}
		defer func() { err = errors.Join(err, forget()) }()
		err = errors.Join(forget(), b.data.exec(ctx, `
			INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, policies, created_at)
			SELECT $1, gen_random_uuid(), f.id, a.type, a.id, true, now()
			FROM unnest($2::text[]) AS f (id), (`+audience+`) AS a (type, id)`, id, chosen),
			b.data.exec(ctx, "ANALYZE framework_assignments"))
		if err != nil {
			return f, err
		}
		stale := func(ctx context.Context, _ int) error {
			return b.data.exec(ctx, "UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE client_id = $1", id)
		}
		list := always(b.get(pathOf(client, "/frameworks?limit=10")))
		return b.page(evaluatedFrameworks, 5, list, stale)(ctx)
	}
}
