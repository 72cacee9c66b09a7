package db

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The list of all assignments of a client.

// assignmentChanged is the time of the last change of an assignment, alias a. The index assignments_by_change_week is
// on its week.
const assignmentChanged = "greatest(a.assigned_at, a.given_at, a.completed_at, a.updated_at)"

// assignmentOrDueChanged is the time of the last change of an assignment, alias a, as of the day ?0: it also changes by
// becoming overdue.
const assignmentOrDueChanged = "greatest(" + assignmentChanged + ", " +
	"CASE WHEN a.completed_at IS NULL AND a.due_on < ?0::date THEN (a.due_on + 1)::timestamptz END)"

// selectAssignments adds to q the columns of domain.ClientAssignment, from assignments, alias a. The index
// assignments_by_assigned has all but the title and the place, which are read for the rows of the page only.
func selectAssignments(q *bun.SelectQuery) {
	q.ColumnExpr(`a.user_id AS "user", a.course_id AS course, a.position, a.assigned_at, a.due_on, a.completed_at`).
		ColumnExpr(assignmentChanged + " AS changed_at").
		ColumnExpr("(SELECT title FROM courses AS c WHERE c.id = a.course_id) AS title").
		ColumnExpr(`(
			SELECT count(*) FROM assignments AS own
			WHERE own.client_id = a.client_id AND own.user_id = a.user_id AND NOT own.superseded
			AND (own.position, own.course_id) <= (a.position, a.course_id)
		) AS place`)
}

// Assignments reads a page of the assignments of the client's users that match the filter: the latest round of each
// course. They are in the order of assigned_at, user and course, or in the reverse order. If the filter limits the
// changes or the completion to at most a year, byWeek merges the page from the weeks of that year, unless the list is of
// one user or w skips rows.
func (t *Tenant) Assignments(
	ctx context.Context, f domain.AssignmentFilter, w domain.Window,
) (domain.Slice[domain.ClientAssignment], error) {
	k := pg.Keyset[domain.ClientAssignment]{
		Table: "assignments AS a", Key: "a.assigned_at", Cast: "timestamptz", Owner: "a.user_id", ID: "a.course_id",
		Desc: f.Sort.Descending(), OneIndex: isWhole(f), Select: selectAssignments,
		Position: func(a *domain.ClientAssignment) domain.Position {
			return domain.Position{Key: pg.TimeKey(a.AssignedAt), Owner: a.User.UUID(), ID: a.Course.UUID()}
		},
	}
	k.Where.Add("a.client_id = ? AND NOT a.superseded", t.ID)
	pg.AddIf(&k.Where, "a.user_id = ?", f.User)
	pg.AddIf(&k.Where, "a.course_id = ?", f.Course)

	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.ClientAssignment]{}, err
	}
	limits := []eitherPeriod{t.changedSince(delta), t.completedWithin(f.Completed)}
	merged := -1 // the index of the limit whose weeks are merged
	if f.User == nil && w.Skip == 0 {
		merged = slices.IndexFunc(limits, eitherPeriod.withinYear)
	}
	byWeek := merged >= 0
	if byWeek {
		k.OneIndex, k.Rows = true, t.byWeek(limits[merged], listOrder(k.Desc))
	}
	for i, limit := range limits {
		if len(limit) > 0 && i != merged {
			k.Where = append(k.Where, limit.condition())
		}
	}

	if delta != nil {
		k.Where.Add("? IS TRUE", delta.Upto(pg.SQL(assignmentOrDueChanged, domain.DateOf(t.db.Now()))))
	}
	t.withStatus(&k.Where, f.Statuses)
	onlyAssigned := slices.Equal(f.Statuses, []domain.AssignmentStatus{domain.TrainingAssigned})
	// A later page begins at a position, not at the start of the list. Newest first, the start is where most are.
	if onlyAssigned && !byWeek && !k.Desc && w.After == nil {
		k.Where = append(k.Where, t.sinceFirstAssigned())
	}
	switch {
	case f.UserStatus == "": // any status
	case byWeek: // look the status up for each row that the page reads
		k.Where.Add("(SELECT u.status FROM users AS u WHERE u.client_id = a.client_id AND u.id = a.user_id) = ?", f.UserStatus)
	default:
		k.Where = append(k.Where, t.ofUsers(f.UserStatus))
	}
	return pg.CountedPage(ctx, t.db, k, w)
}

// eitherPeriod is a list of conditions on assignments, alias a. At least one has to hold, unless the list is empty.
type eitherPeriod []period

// period is the condition that something happened to an assignment between from, if not zero, and end, never zero.
type period struct {
	sql       string   // the condition
	values    pg.Named // of sql
	week      string   // the SQL expression of the week in which it happened, which is indexed
	from, end time.Time
	closed    bool // whether sql excludes all times after end
	openOnly  bool // whether the index is of open assignments only, and lacks completed_at
}

// The weeks of a change, a completion and a due date. They are the expressions of the indexes
// assignments_by_change_week, assignments_by_completion_week and assignments_by_due_week.
const (
	changeWeek     = "date_trunc('week', " + assignmentChanged + " AT TIME ZONE 'UTC')"
	completionWeek = "date_trunc('week', a.completed_at AT TIME ZONE 'UTC')"
	dueWeek        = "date_trunc('week', a.due_on::timestamp)"
)

// condition returns the SQL condition that at least one condition of e, which must not be empty, holds. IS TRUE keeps
// the planner from using the indexes of the weeks, whose order is not that of the list.
func (e eitherPeriod) condition() pg.Query {
	either := pg.SQL(e[0].sql, e[0].values)
	for _, p := range e[1:] {
		either = pg.SQL("? OR ?", either, pg.SQL(p.sql, p.values))
	}
	return pg.SQL("(?) IS TRUE", either)
}

// maxWeeks bounds the weeks that are merged for a page, to those of a year. A longer period matches most assignments,
// so all assignments are searched in the order of the list.
const maxWeeks = 54

// fewWeeks is the smaller number of weeks that weeksOf merges; the other is maxWeeks. There are only two so that
// connections keep the plans of few statements: weeksOf adds noWeek, in which nothing happens. Of due dates it merges
// at most fewWeeks: a longer period matches most open assignments, so all of these are searched.
const fewWeeks = 9

var noWeek = time.Date(9999, time.December, 27, 0, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

// withinYear reports whether e has conditions, and each has a start and is at most maxWeeks-1 weeks long.
func (e eitherPeriod) withinYear() bool {
	const longest = (maxWeeks - 1) * week // such a period touches at most maxWeeks calendar weeks
	long := func(p period) bool { return p.from.IsZero() || p.end.Sub(p.from) > longest }
	return len(e) > 0 && !slices.ContainsFunc(e, long)
}

// isWhole reports whether a filter selects all assignments, in either order.
func isWhole(f domain.AssignmentFilter) bool {
	f.Sort = ""
	return reflect.ValueOf(f).IsZero()
}

// listOrder returns the ORDER BY of the list.
func listOrder(desc bool) string {
	if desc {
		return " ORDER BY assigned_at DESC, user_id DESC, course_id DESC"
	}
	return " ORDER BY assigned_at, user_id, course_id"
}

// byWeek selects the client's assignments for which at least one of the conditions of e holds, each once, in an order.
func (t *Tenant) byWeek(e eitherPeriod, order string) (all pg.Query) {
	for _, p := range e {
		rows := t.weeksOf(p, order)
		if all == nil {
			all = rows
		} else {
			all = pg.SQL("SELECT DISTINCT ON (assigned_at, user_id, course_id) * FROM (? UNION ALL ?) AS a"+order, all, rows)
		}
	}
	return all
}

// weeksOf selects the client's assignments for which p, within a year, holds: a union of a query for each week or, if p
// is openOnly (so closed) and longer than fewWeeks, one query. The index of p has each week in the list's order, so
// PostgreSQL merges them and reads only a page.
func (t *Tenant) weeksOf(p period, order string) pg.Query {
	completed := "a.completed_at"
	if p.openOnly { // the index lacks the column
		completed = "NULL::timestamptz AS completed_at"
	}
	values := maps.Clone(p.values)
	values["client"] = t.ID
	var queries []string
	add := func(inWeek string) {
		queries = append(queries, "(SELECT a.client_id, a.user_id, a.course_id, a.position, a.assigned_at, a.due_on, "+completed+
			", a.given_at, a.updated_at, false AS superseded FROM assignments AS a WHERE a.client_id = ?client AND NOT a.superseded AND "+
			p.sql+inWeek+order+")")
	}
	addWeek := func(operator string, monday time.Time) {
		name := "week" + strconv.Itoa(len(queries))
		values[name] = domain.DateOf(monday)
		add(" AND " + p.week + operator + "?" + name + "::date")
	}

	last := p.end.Truncate(week) // the Monday, in UTC: the zero time is a Monday
	first := p.from.Truncate(week)
	if first.After(last) { // p.from is after p.end: one week is enough
		first = last
	}
	if p.openOnly && last.Sub(first) >= fewWeeks*week { // most open assignments match: do not divide them into weeks
		add("")
	} else {
		for monday := first; !monday.After(last); monday = monday.Add(week) {
			addWeek(" = ", monday)
		}
		for len(queries) != fewWeeks && len(queries) < maxWeeks { // fill up to fewWeeks or maxWeeks: few statements
			addWeek(" = ", noWeek) // selects nothing
		}
	}
	if !p.closed { // something may have happened after end, which is now
		addWeek(" > ", last)
	}
	return pg.SQL(strings.Join(queries, " UNION ALL "), values)
}

// changedSince returns two conditions: an assignment changed at or after the start of a delta, or became overdue then. If
// the delta is nil, it returns none. It does not exclude what changed after the delta.
func (t *Tenant) changedSince(delta *pg.Delta) eitherPeriod {
	if delta == nil {
		return nil
	}
	since := delta.Start()
	// An assignment becomes overdue at 00:00 UTC of the day after due_on: at since or later if due_on is at least from.
	now, from := t.db.Now(), domain.DateOf(since)
	if since.Equal(from.Time()) { // at 00:00: what was due on the day before becomes overdue at since
		from = from.AddDays(-1)
	}
	return eitherPeriod{
		{sql: assignmentChanged + " >= ?since", values: pg.Named{"since": since}, week: changeWeek, from: since, end: now},
		{
			sql:    "a.completed_at IS NULL AND a.due_on < ?today::date AND a.due_on >= ?from::date",
			values: pg.Named{"today": domain.DateOf(now), "from": from},
			week:   dueWeek, from: from.Time(), end: now, closed: true, openOnly: true,
		},
	}
}

// completedWithin returns the condition that an assignment was completed in a period, or none if the period is zero.
func (t *Tenant) completedWithin(within domain.Period) eitherPeriod {
	if within == (domain.Period{}) {
		return nil
	}
	p := period{sql: "a.completed_at IS NOT NULL", values: pg.Named{}, week: completionWeek, end: t.db.Now()}
	if since := within.Since; since != nil {
		p.sql += " AND a.completed_at >= ?since"
		p.values["since"], p.from = *since, *since
	}
	if until := within.Until; until != nil {
		p.sql += " AND a.completed_at < ?until"
		p.values["until"] = *until
		if until.Before(p.end) {
			p.end, p.closed = *until, true // sql excludes later times
		}
	}
	return eitherPeriod{p}
}

// withStatus adds the condition that an assignment has one of the statuses today; nothing if there are no statuses. The
// index assignments_open_by_assigned holds the open assignments in the order of the list. IS TRUE keeps the planner
// from using the indexes of due dates, whose order is another.
func (t *Tenant) withStatus(where *pg.Conditions, statuses []domain.AssignmentStatus) {
	assigned, overdue := slices.Contains(statuses, domain.TrainingAssigned), slices.Contains(statuses, domain.TrainingOverdue)
	completed := slices.Contains(statuses, domain.TrainingCompleted)
	today := domain.DateOf(t.db.Now())
	due := pg.SQL("(a.due_on < ?::date) IS TRUE", today)
	if assigned {
		due = pg.SQL("(a.due_on >= ?::date) IS TRUE", today)
	}
	switch {
	case len(statuses) == 0, assigned && overdue && completed: // any status
	case assigned && overdue: // open, whatever the due date
		where.Add("a.completed_at IS NULL")
	case !assigned && !overdue: // completed only
		where.Add("a.completed_at IS NOT NULL")
	case completed: // and either assigned or overdue
		where.Add("(a.completed_at IS NOT NULL OR ?)", due)
	default: // either assigned or overdue
		where.Add("a.completed_at IS NULL AND ?", due)
	}
}

// maxGatheredUsers bounds the number of users with a status whose assignments are all read, and sorted, for a page.
const maxGatheredUsers = 400

// ofUsers returns the condition that an assignment belongs to a user with a status. For up to maxGatheredUsers such
// users, PostgreSQL reads all of their assignments. Otherwise it reads the ids of the users with the rarer of the two
// statuses once for a page. Without IS TRUE it would plan a join.
func (t *Tenant) ofUsers(status domain.UserStatus) pg.Query {
	other := domain.Inactive
	if status == domain.Inactive {
		other = domain.Active
	}
	users := map[domain.UserStatus]int{domain.Active: t.ActiveUsers, domain.Inactive: t.InactiveUsers}
	const ids = "SELECT u.id FROM users AS u WHERE u.client_id = ? AND u.status = ?"
	switch {
	case users[status] <= maxGatheredUsers:
		return pg.SQL("a.user_id = ANY(ARRAY("+ids+"))", t.ID, status)
	case users[status] <= users[other]:
		return pg.SQL("(a.user_id IN ("+ids+")) IS TRUE", t.ID, status)
	}
	return pg.SQL("(a.user_id IN ("+ids+")) IS NOT TRUE", t.ID, other)
}

// sinceFirstAssigned returns the condition that assigned_at is not before that of the oldest assignment with the status
// assigned. Most of these are recent, so a page need not search the list from its start. The recursive query goes from
// week to week of due dates, and takes the oldest assignment of each from the index assignments_by_due_week. After
// maxWeeks weeks it stops, and the condition is true for all assignments.
func (t *Tenant) sinceFirstAssigned() pg.Query {
	const first = `SELECT ` + dueWeek + ` AS week, a.assigned_at FROM assignments AS a
		WHERE a.client_id = ?client AND NOT a.superseded AND a.completed_at IS NULL AND a.due_on >= ?today::date
		AND ` + dueWeek
	return pg.SQL(`a.assigned_at >= (
		WITH RECURSIVE weeks (week, assigned_at, n) AS (
			SELECT first.*, 1 FROM (`+first+` >= date_trunc('week', ?today::timestamp) ORDER BY week, a.assigned_at LIMIT 1) AS first
			UNION ALL
			SELECT next.*, weeks.n + 1
			FROM weeks CROSS JOIN LATERAL (`+first+` > weeks.week ORDER BY week, a.assigned_at LIMIT 1) AS next
			WHERE weeks.n < ?weeks
		)
		SELECT CASE WHEN count(*) < ?weeks THEN min(assigned_at) ELSE '-infinity' END FROM weeks)`,
		pg.Named{"client": t.ID, "today": domain.DateOf(t.db.Now()), "weeks": maxWeeks})
}
