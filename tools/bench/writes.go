package main

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// writes are requests that change something.
func (b *bench) writes() []measure {
	users := func(ctx context.Context) []domain.UserID { return b.data.activeUsers(ctx, b.tenth(5000)) }
	return []measure{
		{name: "POST /v2/clients/{id}/users", run: func(ctx context.Context) figure { return b.each(ctx, 300, b.newUser(), nil) }},
		{name: "PATCH /v2/users/{id}, the role", run: func(ctx context.Context) figure {
			return b.each(ctx, 300, b.newRole(users(ctx)), nil)
		}},
		{name: "POST /v2/clients/{id}/phishing/sends, 100 of them", run: func(ctx context.Context) figure {
			users := users(ctx)
			return b.each(ctx, 50, func(i int) request { // due after the measures
				from := i * sendsAtOnce % (len(users) - sendsAtOnce + 1)
				return b.sends(users[from:from+sendsAtOnce], time.Now().AddDate(1, 0, 0))
			}, nil)
		}},
	}
}

// newUser creates users of the largest client.
func (b *bench) newUser() requests {
	began := time.Now().UnixNano()
	return func(i int) request {
		return newRequest("POST", pathOf(b.data.clients[0], "/users"), b.writeKey, object{
			"email":      fmt.Sprintf("new-%d-%d@bench.example", began, i),
			"first_name": "New", "last_name": "User", "job_title": "Accountant",
		})
	}
}

// newRole changes the roles of users, which changes their scores.
func (b *bench) newRole(users []domain.UserID) requests {
	roles := []string{"finance", "hr", "standard"}
	return func(i int) request {
		return newRequest("PATCH", "/v2/users/"+users[i%len(users)].String(), b.writeKey,
			object{"role": roles[(i/len(users)+i)%len(roles)]})
	}
}

// sendsAtOnce is the number of users that a request for simulations names.
const sendsAtOnce = 100

// sends requests simulations for users of the largest client.
func (b *bench) sends(users []domain.UserID, at time.Time) request {
	return newRequest("POST", pathOf(b.data.clients[0], "/phishing/sends"), b.writeKey, object{"user_ids": users, "send_at": at.UTC()})
}

// frameworks are the assignment of a framework to all users of the largest client, and the evaluation of stale ones, for
// which the list of assignments waits.
func (b *bench) frameworks() []measure {
	const assigned = 10
	return []measure{
		{name: fmt.Sprintf("%d framework assignments to %d users evaluated", assigned, b.data.users), bound: atMost(3), run: func(ctx context.Context) figure {
			client := b.data.clients[0]
			forget := func() { b.data.exec(ctx, "DELETE FROM framework_assignments WHERE client_id = $1", client) }
			forget()
			defer forget()
			for _, f := range domain.Frameworks[:assigned] {
				b.data.exec(ctx, `INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, policies, created_at)
					VALUES ($1, gen_random_uuid(), $2, 'all', true, now())`, client, f.ID)
			}
			b.data.exec(ctx, "ANALYZE framework_assignments")
			return b.page(ctx, assigned, 5, always(b.get(pathOf(client, "/frameworks?limit=10"))), func() {
				b.data.exec(ctx, "UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE client_id = $1", client)
			})
		}},
		{name: fmt.Sprintf("POST a framework to %d users", b.data.users), bound: atMost(3), run: b.assign},
	}
}

// assign times the assignment of the framework with the most courses to all users of the largest client, the assignment
// of its courses by the background work, and its removal, a few times.
func (b *bench) assign(ctx context.Context) figure {
	framework := first[struct {
		ID      string
		Courses int
	}](ctx, b.data, `SELECT framework_id AS id, count(*) AS courses FROM framework_courses
		GROUP BY framework_id ORDER BY count(*) DESC, framework_id LIMIT 1`)
	b.data.exec(ctx, "DELETE FROM waiting_assignments") // those of an earlier run
	path := pathOf(b.data.clients[0], "/frameworks")
	var posted, assigned []float64
	var peak float64
	users := 0
	for range b.times(5) {
		check(ctx.Err())
		got := b.service.send(newRequest("POST", path, b.writeKey, object{"framework_id": framework.ID}))
		given := inChild[int](b, "assign", params{})
		posted, assigned = append(posted, got.took.Seconds()), append(assigned, given.Took.Seconds())
		users, peak = given.Result, max(peak, given.peak)
		id := first[domain.FrameworkAssignmentID](ctx, b.data, `SELECT id FROM framework_assignments
			WHERE client_id = $1 AND framework_id = $2 AND audience_type = 'all'`, b.data.clients[0], framework.ID)
		b.service.send(newRequest("DELETE", path+"/"+id.String(), b.writeKey, nil))
	}
	return typical(posted).about(", of %d courses", framework.Courses).
		and("the courses then assigned by the background work", bound{}, typical(assigned).about(", to %d users", users)).in(peak)
}

// assignCourses is a child that assigns waiting courses, as the background work does, and returns the number of users.
func assignCourses(ctx context.Context, d *db.DB, _ params) (users int) {
	for {
		n := must(d.AssignWaiting(ctx))
		if users += n; n == 0 {
			return users
		}
	}
}
