package db

import (
	"context"
	"reflect"
	"slices"
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
	if f.UserStatus != "" {
		k.Where = append(k.Where, t.ofUsers(f.UserStatus))
	}
	narrow := []anyOf{t.changedSince(f.UpdatedSince), completedWithin(f.Completed), t.withStatus(f.Statuses)}
	var few pg.Query
	ordered := f.User == nil && w.Skip == 0
	if ordered {
		var err error
		if few, err = t.fewAssignments(ctx, narrow); err != nil {
			return domain.Slice[domain.ClientAssignment]{}, err
		}
	}
	if few != nil {
		k.Select = func(q *pg.Select) { selectAssignments(q.Rows(few)) }
	}
	for _, n := range narrow {
		k.Where = append(k.Where, n.conditions(ordered && few == nil)...)
	}
	if ordered && few == nil && w.After == nil && slices.Equal(f.Statuses, []domain.AssignmentStatus{domain.TrainingAssigned}) {
		k.Where = append(k.Where, t.sinceFirstAssigned())
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*assignmentRow).assignment), err
}

// anyOf are conditions on assignments, alias a, of which one has to hold. None at all is no
// condition.
type anyOf []someAssignments

// someAssignments are the assignments for which a condition holds. An index has them, and
// all that a page shows of them, in an order.
type someAssignments struct {
	holds pg.Query
	order string
	open  bool // the index has none that are completed, and no such time
}

// The orders of the indexes assignments_by_change, assignments_by_completion and
// assignments_by_due.
const (
	byChange     = assignmentChanged
	byCompletion = "a.completed_at"
	byDue        = "a.due_on, a.assigned_at"
)

// conditions returns the one condition that any of them holds, or none. For what is read in the
// order of the list, IS TRUE keeps the planner from their indexes, where it would sort too many.
func (a anyOf) conditions(ordered bool) pg.Conditions {
	if len(a) == 0 {
		return nil
	}
	either := a[0].holds
	for _, c := range a[1:] {
		either = pg.SQL("? OR ?", either, c.holds)
	}
	if ordered {
		either = pg.SQL("(?) IS TRUE", either)
	}
	return pg.Conditions{either}
}

// open is the condition that an assignment is open, and what its due day has to be.
func open(due string, args ...any) someAssignments {
	return someAssignments{pg.SQL("a.completed_at IS NULL AND "+due, args...), byDue, true}
}

// changedSince are the conditions that an assignment changed, or became overdue, at or after
// a time.
func (t *Tenant) changedSince(since *time.Time) anyOf {
	if since == nil {
		return nil
	}
	// Overdue since 00:00 UTC of the day after.
	from := domain.DateOf(*since).AddDays(-1)
	if since.After(domain.DateOf(*since).Time()) {
		from = from.AddDays(1)
	}
	return anyOf{
		{pg.SQL(assignmentChanged+" >= ?", *since), byChange, false},
		open("a.due_on < ?::date AND a.due_on >= ?::date", domain.DateOf(t.db.Now()), from),
	}
}

// completedWithin is the condition that an assignment was completed in a period.
func completedWithin(p domain.Period) anyOf {
	var holds pg.Query
	switch {
	case p.Since != nil && p.Until != nil:
		holds = pg.SQL("a.completed_at >= ? AND a.completed_at < ?", *p.Since, *p.Until)
	case p.Since != nil:
		holds = pg.SQL("a.completed_at >= ?", *p.Since)
	case p.Until != nil:
		holds = pg.SQL("a.completed_at < ?", *p.Until)
	default:
		return nil
	}
	return anyOf{{holds, byCompletion, false}}
}

// withStatus are the conditions that an assignment has one of some states today.
func (t *Tenant) withStatus(statuses []domain.AssignmentStatus) (any anyOf) {
	if len(statuses) == len(domain.AssignmentStatus("").Values()) {
		return nil
	}
	today := domain.DateOf(t.db.Now())
	for _, s := range statuses {
		switch s {
		case domain.TrainingAssigned:
			any = append(any, open("a.due_on >= ?::date", today))
		case domain.TrainingOverdue:
			any = append(any, open("a.due_on < ?::date", today))
		case domain.TrainingCompleted:
			any = append(any, someAssignments{pg.SQL("a.completed_at IS NOT NULL"), byCompletion, false})
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

// maxGathered bounds the assignments that are read on an index and sorted for a page: a few
// milliseconds. Of more, the page is looked for in the order of the list.
const maxGathered = 10_000

// fewAssignments returns the rows of the assignments that match the first of narrow that at
// most maxGathered match: in the order of the list they might come last. Nil if there is
// none. It counts them first, because the planner's statistics are of all clients together.
func (t *Tenant) fewAssignments(ctx context.Context, narrow []anyOf) (pg.Query, error) {
	for _, any := range narrow {
		if len(any) == 0 {
			continue
		}
		counted, found := t.assignmentsOf(any, true), t.assignmentsOf(any, false)
		n, err := pg.One[int](ctx, t.db, "count few assignments", pg.SQL("SELECT count(*) FROM (?) AS few", counted))
		if err != nil || n <= maxGathered {
			return found, err
		}
	}
	return nil, nil
}

// assignmentsOf selects the client's assignments for which any of the conditions holds, each
// once, on their indexes: with no columns to be counted, or with all that a page shows.
func (t *Tenant) assignmentsOf(any anyOf, toCount bool) (all pg.Query) {
	others := pg.SQL("")
	for _, c := range any {
		columns := ""
		if !toCount {
			completed := "a.completed_at"
			if c.open {
				completed = "NULL::timestamptz AS completed_at"
			}
			columns = "a.client_id, a.user_id, a.course_id, a.position, a.assigned_at, a.due_on, " + completed +
				", a.given_at, a.updated_at, false AS superseded"
		}
		rows := pg.SQL("(SELECT "+columns+" FROM assignments AS a WHERE a.client_id = ? AND NOT a.superseded AND (?)? ORDER BY "+
			c.order+" LIMIT ?)", t.ID, c.holds, others, maxGathered+1)
		others = pg.SQL("? AND NOT (?)", others, c.holds)
		if all == nil {
			all = rows
		} else {
			all = pg.SQL("? UNION ALL ?", all, rows)
		}
	}
	return all
}

// maxDueDays bounds the days that sinceFirstAssigned looks at.
const maxDueDays = 400

// sinceFirstAssigned is the condition that an assignment is no older than the first one with
// the status assigned. Most of those are young: the page need not look for them from the
// list's start. The first of each day that some are due on is found by assignments_by_due.
func (t *Tenant) sinceFirstAssigned() pg.Query {
	const first = `SELECT a.due_on, a.assigned_at FROM assignments AS a
		WHERE a.client_id = @client AND NOT a.superseded AND a.completed_at IS NULL AND a.due_on `
	return pg.SQL(`a.assigned_at >= (
		WITH RECURSIVE days (due_on, assigned_at, n) AS (
			SELECT first.*, 1 FROM (`+first+`>= @today::date ORDER BY `+byDue+` LIMIT 1) AS first
			UNION ALL
			SELECT next.*, days.n + 1
			FROM days CROSS JOIN LATERAL (`+first+`> days.due_on ORDER BY `+byDue+` LIMIT 1) AS next
			WHERE days.n < @days
		)
		SELECT CASE WHEN count(*) < @days THEN min(assigned_at) ELSE '-infinity' END FROM days)`,
		pg.Named{"client": t.ID, "today": domain.DateOf(t.db.Now()), "days": maxDueDays})
}
