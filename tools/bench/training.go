package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"partnerapi/domain"
)

// trainingShown is how many rows a page of a client's training has at most.
const trainingShown = 500

// training is pages of the training of all users of the largest client, each beside a page of
// as many of its users.
func (b *bench) training() (measures []measure) {
	now := time.Now().UTC()
	for _, p := range []struct{ what, query string }{
		{"of active users", "&user_status=active"}, {"of inactive users", "&user_status=inactive"},
		{"of a course", "&course_id=" + firstCourse.String()},
		{"assigned", "&status=assigned"}, {"completed", "&status=completed"}, {"overdue", "&status=overdue"},
		{"assigned or overdue", "&status=assigned,overdue"},
		{"completed in the last week", "&completed_since=" + now.AddDate(0, 0, -7).Format(time.RFC3339)},
		{"completed more than a year ago", "&completed_until=" + now.AddDate(-1, 0, 0).Format(time.RFC3339)},
		{"changed in the last day", "&updated_since=" + now.AddDate(0, 0, -1).Format(time.RFC3339)},
		{"changed in the last year", "&updated_since=" + now.AddDate(-1, 0, 0).Format(time.RFC3339)},
	} {
		measures = append(measures, b.trainingPage(p.what, func(context.Context) string { return p.query }))
	}
	for _, place := range []struct {
		what string
		at   int // of ten
	}{{"the first", 0}, {"one in the middle", 5}, {"the last", 10}} {
		measures = append(measures, b.trainingPage(place.what, func(ctx context.Context) string {
			return b.trainingCursor(ctx, place.at)
		}))
	}
	return measures
}

// firstCourse is the course that everybody has.
var firstCourse = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 6: 0x70, 8: 0x80, 15: 1}

func (b *bench) trainingPath(query string) string {
	return pathOf(b.data.clients[0], fmt.Sprintf("/training/assignments?limit=%d%s", trainingShown, query))
}

// trainingPage compares a page of a client's training to a page of as many users.
func (b *bench) trainingPage(what string, query func(context.Context) string) measure {
	return measure{
		name:  fmt.Sprintf("v2 page of the training of %d users, %s / page of as many users", b.data.users, what),
		bound: atMost(1.3), run: func(ctx context.Context) figure {
			path := b.trainingPath(query(ctx))
			rows := len(b.trainingRows(path).Data)
			if rows == 0 {
				fail("the page has no rows")
			}
			return b.versus(ctx, 300, always(b.get(path)), always(b.get(pathOf(b.data.clients[0], fmt.Sprintf("/users?limit=%d", rows)))))
		},
	}
}

type trainingPage struct {
	Data []json.RawMessage
	Page struct {
		NextCursor *string `json:"next_cursor"`
	}
}

func (b *bench) trainingRows(path string) trainingPage {
	return ask[trainingPage](b.service.address, b.get(path))
}

// trainingCursor is the query of a page so many tenths into the list.
func (b *bench) trainingCursor(ctx context.Context, tenths int) string {
	queries := []string{""}
	for tenths > 0 {
		check(ctx.Err())
		next := b.trainingRows(b.trainingPath(queries[len(queries)-1])).Page.NextCursor
		if next == nil {
			break
		}
		queries = append(queries, "&cursor="+*next)
	}
	return queries[(len(queries)-1)*tenths/10]
}

// found is what is found by a value of its own, beside what is read by its id.
func (b *bench) found() []measure {
	client := b.data.clients[0]
	return []measure{
		{name: "GET /v2/users?email= / GET /v2/users/{id}", bound: atMost(2), run: func(ctx context.Context) figure {
			user := all[struct{ ID, Email string }](ctx, b.data, "SELECT id, email FROM users WHERE client_id = $1 LIMIT 1", client)[0]
			id, err := domain.ParseUUID[domain.UserKind](user.ID)
			check(err)
			return b.versus(ctx, 1000, always(b.get("/v2/users?email="+url.QueryEscape(user.Email))), always(b.get("/v2/users/"+id.String())))
		}},
		{name: "GET /v2/clients?external_id= / GET /v2/clients/{id}", bound: atMost(2), run: func(ctx context.Context) figure {
			b.data.exec(ctx, "UPDATE clients SET external_id = 'bench' WHERE id = $1", client)
			return b.versus(ctx, 1000, always(b.get("/v2/clients?external_id=bench")), always(b.get(pathOf(client, ""))))
		}},
	}
}
