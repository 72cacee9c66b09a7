package db

import (
	"context"
	"reflect"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The list of all assignments of a client.

type assignmentRow struct {
	bun.BaseModel `bun:"table:assignments,alias:a"`

	UserID      domain.UserID
	CourseID    domain.CourseID
	Position    int
	AssignedAt  time.Time
	DueOn       domain.Date
	CompletedAt *time.Time
	GivenAt     *time.Time
	UpdatedAt   *time.Time

	Title string `bun:"title,scanonly"`
	Place int    `bun:"place,scanonly"`
}

func (r *assignmentRow) assignment() domain.ClientAssignment {
	changed := r.AssignedAt
	for _, at := range []*time.Time{r.GivenAt, r.CompletedAt, r.UpdatedAt} {
		if at != nil {
			changed = domain.Later(changed, *at)
		}
	}
	return domain.ClientAssignment{
		Assignment: domain.Assignment{
			Course: r.CourseID, Title: r.Title, Position: r.Position, Place: r.Place,
			AssignedAt: r.AssignedAt, DueOn: r.DueOn, CompletedAt: r.CompletedAt,
		},
		User: r.UserID, ChangedAt: changed,
	}
}

// assignmentChanged is when an assignment, alias a, last changed, as the index
// assignments_by_change has it.
const assignmentChanged = "greatest(a.assigned_at, a.given_at, a.completed_at, a.updated_at)"

// selectAssignments selects all that assignmentRow holds from assignments, alias a. Of the
// client's rows the index assignments_by_assigned has all but the title and the place, which
// are read for the rows of the page only.
func selectAssignments(q *pg.Select) {
	q.Columns(pg.Columns[assignmentRow]()).
		Columns("(SELECT title FROM courses AS c WHERE c.id = a.course_id) AS title").
		Columns(`(
			SELECT count(*) FROM assignments AS own
			WHERE own.client_id = a.client_id AND own.user_id = a.user_id AND NOT own.superseded
			AND (own.position, own.course_id) <= (a.position, a.course_id)
		) AS place`)
}

// Assignments reads a page of the assignments of the client's users, the latest round of each
// course, by when they were assigned, the user and the course.
func (t *Tenant) Assignments(
	ctx context.Context, f domain.AssignmentFilter, w domain.Window,
) (domain.Slice[domain.ClientAssignment], error) {
	k := pg.Keyset[assignmentRow]{
		Table: "assignments AS a", Key: "a.assigned_at", Cast: "timestamptz", Owner: "a.user_id", ID: "a.course_id",
		OneIndex: reflect.ValueOf(f).IsZero(), Select: selectAssignments,
		Position: func(r *assignmentRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.AssignedAt), Owner: r.UserID.UUID(), ID: r.CourseID.UUID()}
		},
	}
	k.Where.Add("a.client_id = ? AND NOT a.superseded", t.ID)
	pg.AddIf(&k.Where, "a.user_id = ?", f.User)
	pg.AddIf(&k.Where, "a.course_id = ?", f.Course)
	narrow := []anyOf{t.changedSince(f.UpdatedSince), completedWithin(f.Completed), t.withStatus(f.Statuses)}
	for _, n := range narrow {
		k.Where = append(k.Where, n.conditions()...)
	}
	if f.UserStatus != "" {
		k.Where = append(k.Where, t.ofUsers(f.UserStatus))
	}
	if f.User == nil {
		few, err := t.fewAssignments(ctx, narrow)
		if err != nil {
			return domain.Slice[domain.ClientAssignment]{}, err
		}
		k.Where = append(k.Where, few...)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*assignmentRow).assignment), err
}

// anyOf are conditions on assignments, alias a, of which one has to hold. An index has the
// rows of each in an order. None at all is no condition.
type anyOf []struct {
	holds pg.Query
	order string
}

func (a *anyOf) add(order, text string, args ...any) {
	*a = append(*a, struct {
		holds pg.Query
		order string
	}{pg.SQL(text, args...), order})
}

// conditions returns the one condition that any of them holds, or none.
func (a anyOf) conditions() pg.Conditions {
	if len(a) == 0 {
		return nil
	}
	either := a[0].holds
	for _, c := range a[1:] {
		either = pg.SQL("? OR ?", either, c.holds)
	}
	return pg.Conditions{either}
}

// changedSince are the conditions that an assignment changed, or became overdue, at or after
// a time.
func (t *Tenant) changedSince(since *time.Time) (any anyOf) {
	if since == nil {
		return nil
	}
	any.add(assignmentChanged, assignmentChanged+" >= ?", *since)
	// Overdue since 00:00 UTC of the day after.
	from := domain.DateOf(*since).AddDays(-1)
	if since.After(domain.DateOf(*since).Time()) {
		from = from.AddDays(1)
	}
	any.add("a.completed_at, a.due_on", "a.completed_at IS NULL AND a.due_on < ?::date AND a.due_on >= ?::date",
		domain.DateOf(t.db.Now()), from)
	return any
}

// completedWithin is the condition that an assignment was completed in a period.
func completedWithin(p domain.Period) (any anyOf) {
	const order = "a.completed_at"
	switch {
	case p.Since != nil && p.Until != nil:
		any.add(order, "a.completed_at >= ? AND a.completed_at < ?", *p.Since, *p.Until)
	case p.Since != nil:
		any.add(order, "a.completed_at >= ?", *p.Since)
	case p.Until != nil:
		any.add(order, "a.completed_at < ?", *p.Until)
	}
	return any
}

// withStatus are the conditions that an assignment has one of some states today.
func (t *Tenant) withStatus(statuses []domain.AssignmentStatus) (any anyOf) {
	if len(statuses) == len(domain.AssignmentStatus("").Values()) {
		return nil
	}
	const order = "a.completed_at, a.due_on"
	today := domain.DateOf(t.db.Now())
	for _, s := range statuses {
		switch s {
		case domain.TrainingAssigned:
			any.add(order, "a.completed_at IS NULL AND a.due_on >= ?::date", today)
		case domain.TrainingOverdue:
			any.add(order, "a.completed_at IS NULL AND a.due_on < ?::date", today)
		case domain.TrainingCompleted:
			any.add(order, "a.completed_at IS NOT NULL")
		}
	}
	return any
}

// maxGatheredUsers bounds the users whose assignments are gathered and sorted for a page of a
// status of users.
const maxGatheredUsers = 400

// ofUsers is the condition that an assignment is of users with a status. Those of few users
// are gathered. Else the ids of the users with the rarer status are looked at, once for a
// page; a condition without IS TRUE would be planned as a join.
func (t *Tenant) ofUsers(status domain.UserStatus) pg.Query {
	users, others, other := t.ActiveUsers, t.InactiveUsers, domain.Inactive
	if status == domain.Inactive {
		users, others, other = others, users, domain.Active
	}
	const ids = "SELECT u.id FROM users AS u WHERE u.client_id = ? AND u.status = ?"
	switch {
	case users <= maxGatheredUsers:
		return pg.SQL("a.user_id = ANY(ARRAY("+ids+"))", t.ID, status)
	case users <= others:
		return pg.SQL("(a.user_id IN ("+ids+")) IS TRUE", t.ID, status)
	}
	return pg.SQL("(a.user_id IN ("+ids+")) IS NOT TRUE", t.ID, other)
}

// fewAssignments returns the condition that an assignment is one of those, found by their
// index, that match the first of narrow that at most maxSorted match: in the order of
// the list they might come last. It counts them first, because the planner's statistics are
// of all clients together.
func (t *Tenant) fewAssignments(ctx context.Context, narrow []anyOf) (pg.Conditions, error) {
	for _, any := range narrow {
		if len(any) == 0 {
			continue
		}
		var counted, found pg.Query
		for _, c := range any {
			of := pg.SQL("FROM assignments AS a WHERE a.client_id = ? AND NOT a.superseded AND (?)", t.ID, c.holds)
			count := pg.SQL("(SELECT 1 ? ORDER BY "+c.order+" LIMIT ?)", of, maxSorted+1)
			find := pg.SQL("SELECT a.ctid ?", of)
			if counted == nil {
				counted, found = count, find
				continue
			}
			counted, found = pg.SQL("? UNION ALL ?", counted, count), pg.SQL("? UNION ALL ?", found, find)
		}
		n, err := pg.One[int](ctx, t.db, "count few assignments", pg.SQL("SELECT count(*) FROM (?) AS few", counted))
		if err != nil {
			return nil, err
		}
		if n > maxSorted {
			continue
		}
		return pg.Conditions{pg.SQL("a.ctid = ANY(ARRAY(?))", found)}, nil
	}
	return nil, nil
}
