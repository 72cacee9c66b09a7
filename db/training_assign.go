package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// LockAudience locks the users of an audience and returns them, in the order of
// their ids. Named users that are not the client's are left out.
func (t *Tenant) LockAudience(ctx context.Context, c *Change, a domain.Audience) ([]domain.UserID, error) {
	if a.Type == domain.NamedUsers {
		return t.LockUsers(ctx, c, a.Users)
	}
	return t.lockUsers(ctx, c, t.audience(a))
}

// audience is the condition that a user of the client, alias u, is of an audience.
func (t *Tenant) audience(a domain.Audience) pg.Query {
	switch a.Type {
	case domain.NamedUsers:
		return pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(a.Users))
	case domain.OfCollection:
		return pg.SQL("u.id IN (SELECT user_id FROM collection_members WHERE client_id = ? AND collection_id = ?)",
			t.ID, a.Collection)
	}
	return pg.SQL("true")
}

// directly wants the users, alias u, of a condition to have a course, each of them
// for the reason that somebody asked for it.
func (t *Tenant) directly(n domain.CourseFor, of pg.Query) pg.Query {
	return pg.SQL(`
		SELECT u.client_id, u.id AS user_id, ?1::uuid AS course_id, false AS from_program, true AS direct,
			'{}'::uuid[] AS frameworks, ?2::date AS due_on, ?3::boolean AS notify
		FROM users AS u WHERE u.client_id = ?0 AND ?4`, t.ID, n.Course.ID, n.DueOn, n.Notify, of)
}

// Assign gives a course to users that LockAudience locked: a further round to
// those whose completion has lapsed. Who has it open keeps it, now also for this
// reason. The mails that it asks for are for the caller to enqueue. It takes the
// same number of statements for any number of users.
func (t *Tenant) Assign(ctx context.Context, c *Change, n domain.CourseFor) (domain.Assigned, error) {
	rows, err := c.give(ctx, t.directly(n, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(n.Users))))
	return assigned(rows), err
}

// assigned is what became of a course that was asked for directly.
func assigned(rows []gaveRow) domain.Assigned {
	out := domain.Assigned{Skipped: []domain.Skipped{}, Mails: mailsOf(rows)}
	for _, r := range rows {
		out.Count += r.Given
		if r.Outcome == "inactive" || r.Outcome == "already_completed" {
			out.Skipped = append(out.Skipped, domain.Skipped{User: *r.UserID, Reason: domain.SkipReason(r.Outcome)})
		}
	}
	return out
}
