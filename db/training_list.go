package db

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The list of all assignments of a client.

// assignmentChanged is the time of the last change of an assignment, alias a. The index assignments_by_change_week is
// on its week.
const assignmentChanged = "greatest(a.assigned_at, a.given_at, a.completed_at, a.updated_at)"

// selectAssignments adds to q the columns of domain.ClientAssignment, from assignments, alias a. The index
// assignments_by_assigned has all of them except for the title and the place, which are read for the rows of the page
// only.
func selectAssignments(q *pg.Select) {
	q.Columns(`a.user_id AS "user", a.course_id AS course, a.position, a.assigned_at, a.due_on, a.completed_at`).
		Columns(assignmentChanged + " AS changed_at").
		Columns("(SELECT title FROM courses AS c WHERE c.id = a.course_id) AS title").
		Columns(`(
			SELECT count(*) FROM assignments AS own
			WHERE own.client_id = a.client_id AND own.user_id = a.user_id AND NOT own.superseded
			AND (own.position, own.course_id) <= (a.position, a.course_id)
		) AS place`)
}

// Assignments reads a page of the assignments of the client's users that match the filter: the latest round of each
// course. They are in the order of assigned_at, user and course. If the filter has a period of at most a year, the page
// is merged from the weeks of that period (byWeek).
func (t *Tenant) Assignments(
	ctx context.Context, f domain.AssignmentFilter, w domain.Window,
) (domain.Slice[domain.ClientAssignment], error) {
	k := pg.Keyset[domain.ClientAssignment]{
		Table: "assignments AS a", Key: "a.assigned_at", Cast: "timestamptz", Owner: "a.user_id", ID: "a.course_id",
		OneIndex: reflect.ValueOf(f).IsZero(), Select: selectAssignments,
		Position: func(a *domain.ClientAssignment) domain.Position {
			return domain.Position{Key: pg.TimeKey(a.AssignedAt), Owner: a.User.UUID(), ID: a.Course.UUID()}
		},
	}
	k.Where.Add("a.client_id = ? AND NOT a.superseded", t.ID)
	pg.AddIf(&k.Where, "a.user_id = ?", f.User)
	pg.AddIf(&k.Where, "a.course_id = ?", f.Course)
	periods := []eitherPeriod{t.changedSince(f.UpdatedSince), t.completedWithin(f.Completed)}
	merged := -1
	if f.User == nil && w.Skip == 0 {
		merged = slices.IndexFunc(periods, eitherPeriod.withinYear)
	}
	if merged >= 0 {
		byWeek := t.byWeek(periods[merged])
		k.OneIndex, k.Select = true, func(q *pg.Select) { selectAssignments(q.Rows(byWeek)) }
	}
	for i, p := range periods {
		if len(p) > 0 && i != merged {
			k.Where = append(k.Where, p.holds())
		}
	}
	t.withStatus(&k.Where, f.Statuses)
	if merged < 0 && w.After == nil && slices.Equal(f.Statuses, []domain.AssignmentStatus{domain.TrainingAssigned}) {
		k.Where = append(k.Where, t.sinceFirstAssigned())
	}
	switch {
	case f.UserStatus == "":
	case merged >= 0:
		k.Where.Add("(SELECT u.status FROM users AS u WHERE u.client_id = a.client_id AND u.id = a.user_id) = ?", f.UserStatus)
	default:
		k.Where = append(k.Where, t.ofUsers(f.UserStatus))
	}
	return pg.CountedPage(ctx, t.db, k, w)
}

// eitherPeriod is a list of conditions on assignments, alias a, of which at least one has to hold. An empty list is no
// condition.
type eitherPeriod []period

// period is the condition that something happened to an assignment between from and end.
type period struct {
	holds     string   // the SQL condition
	values    pg.Named // of holds
	week      string   // the SQL expression of the week in which it happened, which is indexed
	from, end time.Time
	ends      bool // whether holds excludes all times after end
	open      bool // whether the index is of open assignments only, and lacks completed_at
}

// The weeks of a change, a completion and a due date. They are the expressions of the indexes
// assignments_by_change_week, assignments_by_completion_week and assignments_by_due_week.
const (
	changeWeek     = "date_trunc('week', " + assignmentChanged + " AT TIME ZONE 'UTC')"
	completionWeek = "date_trunc('week', a.completed_at AT TIME ZONE 'UTC')"
	dueWeek        = "date_trunc('week', a.due_on::timestamp)"
)

// holds returns the condition that any of the conditions holds. IS TRUE keeps the planner from using their indexes,
// whose order is not that of the list.
func (e eitherPeriod) holds() pg.Query {
	either := pg.SQL(e[0].holds, e[0].values)
	for _, p := range e[1:] {
		either = pg.SQL("? OR ?", either, pg.SQL(p.holds, p.values))
	}
	return pg.SQL("(?) IS TRUE", either)
}

// maxWeeks bounds the weeks that are merged for a page, to those of a year. A longer period matches most assignments,
// so all assignments are searched in the order of the list.
const maxWeeks = 54

// fewWeeks is the smaller number of weeks that byWeek merges; the other is maxWeeks. There are only two so that
// connections keep the plans of few statements. byWeek adds noWeek, in which nothing happens, until it has one of these
// numbers. Of due dates it merges at most fewWeeks: a longer period matches most open assignments, so all open
// assignments are searched.
const fewWeeks = 9

var noWeek = time.Date(9999, time.December, 27, 0, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

// withinYear reports whether there are conditions, and each spans at most maxWeeks.
func (e eitherPeriod) withinYear() bool {
	long := func(p period) bool { return p.from.IsZero() || p.end.Sub(p.from) > (maxWeeks-1)*week }
	return len(e) > 0 && !slices.ContainsFunc(e, long)
}

// byWeek selects the client's assignments for which a condition of either holds, each once, as the union of the weeks
// of the periods. The index of a period holds each week in the order of the list. So PostgreSQL merges the weeks, and
// reads only the rows of the page. It adds empty weeks, and for a long period of due dates it selects all open
// assignments instead (fewWeeks).
func (t *Tenant) byWeek(either eitherPeriod) (all pg.Query) {
	const inOrder = " ORDER BY assigned_at, user_id, course_id"
	for _, p := range either {
		completed := "a.completed_at"
		if p.open {
			completed = "NULL::timestamptz AS completed_at"
		}
		values := maps.Clone(p.values)
		values["client"] = t.ID
		var weeks []string
		add := func(inWeek string) {
			weeks = append(weeks, "(SELECT a.client_id, a.user_id, a.course_id, a.position, a.assigned_at, a.due_on, "+completed+
				", a.given_at, a.updated_at, false AS superseded FROM assignments AS a WHERE a.client_id = @client AND NOT a.superseded AND "+
				p.holds+inWeek+inOrder+")")
		}
		addWeek := func(operator string, monday time.Time) {
			name := "week" + strconv.Itoa(len(weeks))
			values[name] = domain.DateOf(monday)
			add(" AND " + p.week + operator + "@" + name + "::date")
		}
		last := p.end.Truncate(week) // the Monday, in UTC: the zero time is a Monday
		first := p.from.Truncate(week)
		if first.After(last) {
			first = last
		}
		if p.open && last.Sub(first) >= fewWeeks*week { // all open assignments; see fewWeeks
			add("")
		} else {
			for monday := first; !monday.After(last); monday = monday.Add(week) {
				addWeek(" = ", monday)
			}
			for len(weeks) != fewWeeks && len(weeks) < maxWeeks {
				addWeek(" = ", noWeek)
			}
		}
		if !p.ends { // something may have happened after end, which is now
			addWeek(" > ", last)
		}
		rows := pg.SQL(strings.Join(weeks, " UNION ALL "), values)
		if all == nil {
			all = rows
		} else {
			all = pg.SQL("SELECT DISTINCT ON (assigned_at, user_id, course_id) * FROM (? UNION ALL ?) AS a"+inOrder, all, rows)
		}
	}
	return all
}

// changedSince returns the conditions that an assignment changed, or became overdue, at or after a time; none if since
// is nil.
func (t *Tenant) changedSince(since *time.Time) eitherPeriod {
	if since == nil {
		return nil
	}
	// An assignment is overdue from 00:00 UTC of the day after due_on.
	now, from := t.db.Now(), domain.DateOf(*since).AddDays(-1)
	if since.After(domain.DateOf(*since).Time()) {
		from = from.AddDays(1)
	}
	return eitherPeriod{
		{holds: assignmentChanged + " >= @since", values: pg.Named{"since": *since}, week: changeWeek, from: *since, end: now},
		{
			holds:  "a.completed_at IS NULL AND a.due_on < @today::date AND a.due_on >= @from::date",
			values: pg.Named{"today": domain.DateOf(now), "from": from},
			week:   dueWeek, from: from.Time(), end: now, ends: true, open: true,
		},
	}
}

// completedWithin returns the condition that an assignment was completed in a period; none if the period is zero.
func (t *Tenant) completedWithin(within domain.Period) eitherPeriod {
	if within == (domain.Period{}) {
		return nil
	}
	p := period{holds: "a.completed_at IS NOT NULL", values: pg.Named{}, week: completionWeek, end: t.db.Now()}
	if since := within.Since; since != nil {
		p.holds += " AND a.completed_at >= @since"
		p.values["since"], p.from = *since, *since
	}
	if until := within.Until; until != nil {
		p.holds += " AND a.completed_at < @until"
		p.values["until"] = *until
		if until.Before(p.end) {
			p.end, p.ends = *until, true
		}
	}
	return eitherPeriod{p}
}

// withStatus adds the condition that an assignment has one of the statuses today; none if there are no statuses. The
// index assignments_open_by_assigned holds the open assignments in the order of the list. IS TRUE keeps the planner
// from using the indexes of due dates, whose order is another.
func (t *Tenant) withStatus(where *pg.Conditions, statuses []domain.AssignmentStatus) {
	assigned, overdue := slices.Contains(statuses, domain.TrainingAssigned), slices.Contains(statuses, domain.TrainingOverdue)
	completed := slices.Contains(statuses, domain.TrainingCompleted)
	due := pg.SQL("(a.due_on < ?::date) IS TRUE", domain.DateOf(t.db.Now()))
	if assigned {
		due = pg.SQL("(a.due_on >= ?::date) IS TRUE", domain.DateOf(t.db.Now()))
	}
	switch {
	case len(statuses) == 0, assigned && overdue && completed: // any status
	case assigned && overdue:
		where.Add("a.completed_at IS NULL")
	case !assigned && !overdue:
		where.Add("a.completed_at IS NOT NULL")
	case completed:
		where.Add("(a.completed_at IS NOT NULL OR ?)", due)
	default:
		where.Add("a.completed_at IS NULL AND ?", due)
	}
}

// maxGatheredUsers bounds the number of users with a status whose assignments are all read, and sorted, for a page.
const maxGatheredUsers = 400

// ofUsers returns the condition that an assignment belongs to a user with a status. For up to maxGatheredUsers such
// users, PostgreSQL reads all of their assignments. Otherwise it reads the ids of the users with the rarer status once
// for a page; without IS TRUE it would plan a join.
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

// sinceFirstAssigned returns the condition that an assignment is no older than the oldest one with the status assigned.
// Most of these are recent, so a page need not search from the start of the list. The index assignments_by_due_week
// yields the oldest one of each week with due dates. For maxWeeks weeks or more, the condition is true for all
// assignments.
func (t *Tenant) sinceFirstAssigned() pg.Query {
	const first = `SELECT ` + dueWeek + ` AS week, a.assigned_at FROM assignments AS a
		WHERE a.client_id = @client AND NOT a.superseded AND a.completed_at IS NULL AND a.due_on >= @today::date
		AND ` + dueWeek
	return pg.SQL(`a.assigned_at >= (
		WITH RECURSIVE weeks (week, assigned_at, n) AS (
			SELECT first.*, 1 FROM (`+first+` >= date_trunc('week', @today::timestamp) ORDER BY week, a.assigned_at LIMIT 1) AS first
			UNION ALL
			SELECT next.*, weeks.n + 1
			FROM weeks CROSS JOIN LATERAL (`+first+` > weeks.week ORDER BY week, a.assigned_at LIMIT 1) AS next
			WHERE weeks.n < @weeks
		)
		SELECT CASE WHEN count(*) < @weeks THEN min(assigned_at) ELSE '-infinity' END FROM weeks)`,
		pg.Named{"client": t.ID, "today": domain.DateOf(t.db.Now()), "weeks": maxWeeks})
}
