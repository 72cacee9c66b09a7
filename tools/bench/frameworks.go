package main

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// This file measures how quickly frameworks are assigned to the largest client,
// and how quickly assignments are evaluated.

// giveCourses is a child that gives courses to those who wait for them, as the
// background work does, and returns to how many users.
func giveCourses(ctx context.Context, d *db.DB, _ params) (users int) {
	for {
		n := must(d.AssignWaiting(ctx))
		if users += n; n == 0 {
			return users
		}
	}
}

// assigning is the assignment of the framework with the most courses to all users of
// the largest client, and its removal, some times over.
type assigning struct {
	*bench
	users                  int // that were given courses
	asked, gave, withdrawn []time.Duration
	peak                   float64
}

// assign measures the requests that assign the framework.
func (a *assigning) assign(ctx context.Context) figure {
	framework := all[struct {
		ID      string
		Courses int
	}](ctx, a.data, `SELECT framework_id AS id, count(*) AS courses FROM framework_courses
		GROUP BY framework_id ORDER BY count(*) DESC, framework_id LIMIT 1`)[0]
	// What an earlier run left behind would be given too.
	a.data.exec(ctx, "DELETE FROM waiting_assignments")
	c := dial(a.service.address)
	defer c.Close()
	for range a.times(5) {
		a.round(ctx, c, framework.ID)
		check(ctx.Err())
	}
	return took(median(a.asked)).about(", of %d courses", framework.Courses)
}

// round assigns the framework, lets a child give the courses, and removes it.
func (a *assigning) round(ctx context.Context, c *connection, framework string) {
	path := pathOf(a.data.clients[0], "/frameworks")
	a.asked = append(a.asked, c.timed(request("POST", path, a.writeKey, object{"framework_id": framework})))
	gave, peak := inChild[int](a.bench, "give", params{})
	a.gave, a.users, a.peak = append(a.gave, gave.Took), gave.Result, max(a.peak, peak)

	list := all[domain.FrameworkAssignmentID](ctx, a.data, `SELECT id FROM framework_assignments
		WHERE client_id = $1 AND framework_id = $2 AND audience_type = 'all'`, a.data.clients[0], framework)
	if len(list) != 1 {
		fail("%s is assigned %d times", framework, len(list))
	}
	a.withdrawn = append(a.withdrawn, c.timed(request("DELETE", path+"/"+list[0].String(), a.writeKey, nil)))
}

// given is how long the background work took to give the courses.
func (a *assigning) given(context.Context) figure {
	return took(median(a.gave)).about(", to %d users", a.users).in(a.peak)
}

// removed is how long the requests took that removed the framework.
func (a *assigning) removed(context.Context) figure { return took(median(a.withdrawn)) }

// evaluate measures the list of a client's assignments when all are stale. audience
// selects the types and ids of the audiences, to each of which some frameworks are
// assigned.
func (b *bench) evaluate(client domain.ClientID, audience string) finder {
	return func(ctx context.Context) figure {
		var chosen []string
		for _, f := range domain.Frameworks[:evaluatedFrameworks] {
			chosen = append(chosen, f.ID)
		}
		forget := func() { b.data.exec(ctx, "DELETE FROM framework_assignments WHERE client_id = $1", client) }
		forget()
		defer forget()
		b.data.exec(ctx, `
			INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, policies, created_at)
			SELECT $1, gen_random_uuid(), f.id, a.type, a.id, true, now()
			FROM unnest($2::text[]) AS f (id), (`+audience+`) AS a (type, id)`, client, chosen)
		b.data.exec(ctx, "ANALYZE framework_assignments")
		stale := func(ctx context.Context, _ int) {
			b.data.exec(ctx, "UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE client_id = $1", client)
		}
		list := always(b.get(pathOf(client, "/frameworks?limit=10")))
		return b.page(evaluatedFrameworks, 5, list, stale)(ctx)
	}
}
