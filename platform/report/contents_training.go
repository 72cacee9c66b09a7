package report

import (
	"fmt"
	"slices"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// noCourses is shown instead of courses if there are none.
const noCourses = "No active employee has an assigned course."

// trainingOverview returns the contents of a training overview: by course, and by month of the period.
func trainingOverview(r *reading) []Section {
	t, months := r.tenant, r.period.Months()
	courses := read(r, reports.CourseProgress.All)
	byMonth := fillMonths(months, read(r, reports.TrainingMonths.All),
		func(m *domain.TrainingMonth) *domain.Date { return &m.Month })
	total, earlier := trainingTotal(byMonth), trainingTotal(before(r, reports.TrainingMonths.All))
	figures := append(onTrackFigures(t),
		trainedFigure("Courses completed", total.Completed, earlier.Completed, earlier, "in this period"),
		trainedFigure("Courses assigned", total.Assigned, earlier.Assigned, earlier, "in this period"))
	return []Section{
		section("Summary", onTrackText(t), figures, onTrackChart(t)),
		section("By course", courseChart(courses),
			courseTable("Training by course", courses, t.ActiveUsers, "In this period")),
		section("By month",
			lineChart("Courses by month", "", months, byMonth, []string{"Completed", "Assigned"},
				func(m *domain.TrainingMonth) []float64 {
					return []float64{float64(m.Completed), float64(m.Assigned)}
				}),
			Table{
				Title:   "Training by month",
				Columns: slices.Concat([]Column{{Title: "Month"}}, numberColumns("Assigned", "Completed")),
				Rows: listRows(byMonth, func(m *domain.TrainingMonth) []any {
					return []any{monthText(m.Month), m.Assigned, m.Completed}
				}),
			}),
	}
}

// trainingTotal returns the sum of the counts of months.
func trainingTotal(months []domain.TrainingMonth) (total domain.TrainingMonth) {
	for _, m := range months {
		total.Assigned += m.Assigned
		total.Completed += m.Completed
	}
	return total
}

// trainedFigure returns the figure of a count of courses in the period. earlierCount is the count in the period before,
// whose totals are earlier. note and args are the format and the operands of the figure's note.
func trainedFigure(label string, n, earlierCount int, earlier domain.TrainingMonth, note string, args ...any) Figure {
	return countFigure(label, n, note, args...).
		against(countOr(earlierCount, earlier.Assigned+earlier.Completed > 0), neither)
}

// trainingPerformance returns the contents of a report of every user's courses, without their titles.
func trainingPerformance(r *reading) []Section {
	return []Section{
		section("Summary", onTrackText(r.tenant), onTrackFigures(r.tenant), onTrackChart(r.tenant)),
		section("All employees", Table{
			Title: "Training by user", Empty: "There are no active employees.",
			Columns: slices.Concat(personColumns, numberColumns("Completed", "Open", "Overdue"),
				[]Column{{Title: "Next course", Width: 3}, {Title: "Due on", Kind: DateColumn, Width: 2}}),
			Rows: statementRows(r, reports.TrainedUsers, func(u *domain.TrainedUser) []any {
				return personCells(&u.Person, u.Completed, u.Open, u.Overdue, valueOrNil(u.NextTitle), dateOrNil(u.NextDueOn))
			}),
		}, Text("Completed: courses completed in this period. Open: courses not completed, including overdue ones.")),
	}
}

// trainingStatus returns the contents of a report of every user's courses, one by one.
func trainingStatus(r *reading) []Section {
	courses := read(r, reports.CourseProgress.All)
	return []Section{
		section("Summary", noUsersNote(r.tenant.ActiveUsers), courseText(courses), courseTotals(courses)),
		overdueSection(r),
		sectionAfter(r.tenant.Summary.OverdueUsers, "All employees and courses", Table{
			Title: "Training status", GroupBy: len(personColumns), Empty: noCourses,
			Columns: slices.Concat(personColumns, courseColumns),
			Rows: statementRows(r, reports.UserCourses, func(c *domain.UserCourse) []any {
				return personCells(&c.Person, courseCells(r.tenant, &c.Assignment)...)
			}),
		}),
	}
}

// courseDetails returns the contents of a report of the users of each course: those who have not completed it, and
// those who have.
func courseDetails(r *reading) []Section {
	courses, users := read(r, reports.CourseProgress.All), r.tenant.ActiveUsers
	// table returns a table of users by course, with the columns courseColumns[from:to] after the users.
	table := func(title, empty string, of reports.Statement[domain.UserCourse], from, to int) Table {
		return Table{
			Title: title, Empty: empty, GroupBy: 1,
			Columns: slices.Concat(courseColumns[:1], personColumns, courseColumns[from:to]),
			Rows: statementRows(r, of, func(c *domain.UserCourse) []any {
				cells := courseCells(r.tenant, &c.Assignment)
				return slices.Concat(cells[:1], personCells(&c.Person, cells[from:to]...))
			}),
		}
	}
	return []Section{
		section("Summary", noUsersNote(users), courseText(courses), courseTotals(courses)),
		overdueSection(r),
		sectionAfter(r.tenant.Summary.OverdueUsers, "Courses", courseDonut(courses), courseChart(courses),
			courseTable("Courses", courses, users, "In 365 days")),
		// Without the columns that would be the same in all rows: "Completed on" here, and the status below.
		section("Open courses",
			table("Not completed", "No employee has an open course.", reports.OpenCourses, 1, 4)),
		section("Completed courses",
			table("Completed", "No employee has completed a course.", reports.CompletedCourses, 2, 5)),
	}
}

// teamTraining returns the contents of a report of training by manager and by department.
func teamTraining(r *reading) []Section {
	managers, departments := read(r, reports.TrainingByManager.All), read(r, reports.TrainingByDepartment.All)
	numbers := numberColumns("Users", "On track", "On-track rate", "Completed", "Open", "Overdue")
	cells := func(t *domain.TeamTraining, names ...any) []any {
		return append(names, t.Users, t.OnTrack, rateCell(t.OnTrack, t.Users), t.Completed, t.Open, t.Overdue)
	}
	department := func(t *domain.TeamTraining) string {
		if t.Name == nil {
			return "(no department)"
		}
		return *t.Name
	}
	return []Section{
		section("Summary", onTrackText(r.tenant), onTrackFigures(r.tenant),
			Text("On track: employees without overdue courses. Completed: courses completed in the last 365 days.")),
		section("By manager", Table{
			Title: "Training by manager", Empty: "There are no active employees.",
			Columns: slices.Concat([]Column{{Title: "Manager", Width: 3}, {Title: "Email", Width: 3}}, numbers),
			Rows: listRows(managers, func(t *domain.TeamTraining) []any {
				switch {
				case t.Name == nil:
					return cells(t, "(no manager)", nil)
				case t.Manager == "": // the manager is no user of the client: only the address, Name, is known
					return cells(t, nil, *t.Name)
				}
				return cells(t, t.Manager, *t.Name)
			}),
		}),
		section("By department",
			barChart("On-track rate by department", "%", departments, department,
				func(t *domain.TeamTraining) any { return rateCell(t.OnTrack, t.Users) }),
			Table{
				Title: "Training by department", Empty: "There are no active employees.",
				Columns: slices.Concat([]Column{{Title: "Department", Width: 3}}, numbers),
				Rows:    listRows(departments, func(t *domain.TeamTraining) []any { return cells(t, department(t)) }),
			}),
	}
}

// onTrackFigures returns the figures of the rate of users on track, and of the number of users with overdue courses,
// from the client's summary. Without active users, the rate is the summary's OnTrackRate, without a tone.
func onTrackFigures(t *db.Tenant) Figures {
	overdue := t.Summary.OverdueUsers
	onTrack := rateFigure("On track", t.ActiveUsers-overdue, t.ActiveUsers, 95 /* good */, 80 /* fair */, "employee")
	if t.ActiveUsers == 0 {
		onTrack.Value, onTrack.Note = Percent(t.Summary.OnTrackRate), "no active employees"
	}
	return Figures{onTrack, badIfAny(countFigure("With overdue courses", overdue, "employees today"), overdue)}
}

// onTrackText returns a text that says how many employees have no overdue courses, and what to do for the others.
func onTrackText(t *db.Tenant) Block {
	if t.ActiveUsers == 0 {
		return noUsersNote(0)
	}
	overdue := t.Summary.OverdueUsers
	return sentences(english.Sprintf("%d of %s (%s) %s no overdue courses.", t.ActiveUsers-overdue,
		quantity(t.ActiveUsers, "active employee"), textOf(rateCell(t.ActiveUsers-overdue, t.ActiveUsers)),
		choose(t.ActiveUsers, "has", "have")),
		remindOverdue(overdue))
}

// onTrackChart returns a chart of the users on track and the users with overdue courses; nil without active users.
func onTrackChart(t *db.Tenant) Block {
	overdue := t.Summary.OverdueUsers
	return donutChart("Users on track", []string{"On track", "Overdue"}, []Tone{Good, Bad}, t.ActiveUsers-overdue, overdue)
}

// courseSum returns the sum of the counts of courses.
func courseSum(courses []domain.CourseProgress) (n domain.CourseProgress) {
	for _, c := range courses {
		n.Users += c.Users
		n.Completed += c.Completed
		n.Open += c.Open
		n.Overdue += c.Overdue
	}
	return n
}

// courseText returns a text that says how many assigned courses are completed and overdue, or that none is assigned.
func courseText(courses []domain.CourseProgress) Block {
	n := courseSum(courses)
	if n.Users == 0 {
		return Text(noCourses)
	}
	return sentences(english.Sprintf("%d of %s (%s) %s completed.", n.Completed, quantity(n.Users, "assigned course"),
		textOf(rateCell(n.Completed, n.Users)), choose(n.Users, "is", "are")),
		ifAny(n.Overdue, "%d %s overdue.", n.Overdue, choose(n.Overdue, "is", "are")))
}

// courseTotals returns figures of the courses of all users together, or nil if there are none.
func courseTotals(courses []domain.CourseProgress) Block {
	n := courseSum(courses)
	if n.Users == 0 {
		return nil
	}
	return Figures{
		countFigure("Assigned courses", n.Users, "across %s", quantity(len(courses), "course")),
		rateFigure("Completed", n.Completed, n.Users, 95 /* good */, 80 /* fair */, "course"),
		countFigure("Open", n.Open, "not due yet"),
		badIfAny(countFigure("Overdue", n.Overdue, "past the due date"), n.Overdue),
	}
}

// courseDonut returns a chart of the courses of all users by their state; nil if there are none.
func courseDonut(courses []domain.CourseProgress) Block {
	n := courseSum(courses)
	return donutChart("Where the courses stand", []string{"Completed", "Assigned", "Overdue"}, []Tone{Good, Neutral, Bad},
		n.Completed, n.Open, n.Overdue)
}

// overdueSection returns a section with the employees who have the most overdue courses.
func overdueSection(r *reading) Section {
	list := read(r, reports.OverdueUsers.All)
	return section(attentionHeading, attentionText(r.tenant.Summary.OverdueUsers, len(list),
		"%s overdue courses.", remindOverdue(r.tenant.Summary.OverdueUsers)), Table{
		Title: attentionHeading, Empty: "No active employee has an overdue course.",
		Columns: slices.Concat(personColumns, numberColumns("Overdue courses"),
			[]Column{{Title: "Oldest due on", Kind: DateColumn}, {Title: "Courses", Width: 4}}),
		Rows: listRows(list, func(u *domain.OverdueUser) []any {
			return personCells(&u.Person, u.Overdue, u.OldestDueOn, firstTitle(u.Titles))
		}),
	})
}

// firstTitle returns the first title, and how many more there are, so that a cell of a page has room for the text.
func firstTitle(titles []string) string {
	if more := len(titles) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", titles[0], more)
	}
	return titles[0]
}

// courseChart returns a chart of the completion rates of courses (see barChart).
func courseChart(courses []domain.CourseProgress) Block {
	return barChart("Completion by course", "%", courses,
		func(r *domain.CourseProgress) string { return r.Title },
		func(r *domain.CourseProgress) any { return rateCell(r.Completed, r.Users) })
}

// courseTable returns a table of courses with the active users by state: Assigned is open and not overdue. The last
// column, titled within, counts the completions in the report's period. users is the number of active users.
func courseTable(title string, courses []domain.CourseProgress, users int, within string) Table {
	return Table{
		Title: title, Empty: noCourses,
		Columns: slices.Concat([]Column{{Title: "Course", Width: 4}},
			numberColumns("Users", "Not given", "Completed", "Assigned", "Overdue", "Completion", within)),
		Rows: listRows(courses, func(r *domain.CourseProgress) []any {
			return []any{r.Title, r.Users, users - r.Users, r.Completed, r.Open, r.Overdue,
				rateCell(r.Completed, r.Users), r.CompletedWithin}
		}),
	}
}

// courseColumns are the columns of a user's course.
var courseColumns = []Column{{Title: "Course", Width: 3}, {Title: "Status", Width: 2},
	{Title: "Assigned on", Kind: DateColumn, Width: 2}, {Title: "Due on", Kind: DateColumn, Width: 2},
	{Title: "Completed on", Kind: DateColumn, Width: 2}}

// courseCells returns the cells of courseColumns for a course that was assigned to a user.
func courseCells(t *db.Tenant, a *domain.Assignment) []any {
	cells := []any{a.Title, enumText(a.Status(domain.DateOf(t.Now()))), domain.DateOf(a.AssignedAt), a.DueOn, nil}
	if a.CompletedAt != nil {
		cells[4] = domain.DateOf(*a.CompletedAt)
	}
	return cells
}
