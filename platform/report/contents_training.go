package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

const noCourses = "No active user was given a course."

func (m *Renderer) trainingOverview(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	courses, err := reports.CourseProgress(ctx, t, p)
	if err != nil {
		return nil, err
	}
	byMonth, err := reports.TrainingMonths(ctx, t, p)
	if err != nil {
		return nil, err
	}

	months := p.Months()
	byMonth = monthly(months, byMonth, func(r *domain.TrainingMonth) *domain.Date { return &r.Month })
	assigned, completed := 0, 0
	for _, month := range byMonth {
		assigned += month.Assigned
		completed += month.Completed
	}
	figures := append(onTrackFigures(t),
		countFigure("Courses completed", completed, "in this period"),
		countFigure("Courses assigned", assigned, "in this period"))
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), one(figures), onTrackChart(t)),
		section("By course", courseChart(courses),
			one(courseTable("Training by course", courses, t.ActiveUsers, "In this period"))),
		section("By month",
			lines("Courses by month", "", months, byMonth, []string{"Completed", "Assigned"},
				func(r *domain.TrainingMonth) []float64 {
					return []float64{float64(r.Completed), float64(r.Assigned)}
				}),
			one(Table{
				Title: "Training by month",
				Columns: []Column{{Title: "Month"}, {Title: "Assigned", Kind: IntegerColumn},
					{Title: "Completed", Kind: IntegerColumn}},
				Rows: cellsOf(listed(byMonth), func(r *domain.TrainingMonth) []any {
					return []any{monthText(r.Month), r.Assigned, r.Completed}
				}),
			})),
	}, nil
}

func (m *Renderer) trainingPerformance(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), one(onTrackFigures(t)), onTrackChart(t)),
		section("Every user", one(Table{
			Title: "Training by user", Empty: "There are no active users.",
			Columns: personColumns(Column{Title: "Completed", Kind: IntegerColumn}, Column{Title: "Open", Kind: IntegerColumn},
				Column{Title: "Overdue", Kind: IntegerColumn}, Column{Title: "Next course", Width: 3},
				Column{Title: "Due on", Kind: DateColumn, Width: 2}),
			Rows: cellsOf(reports.TrainedUsers(ctx, t, p), func(r *domain.TrainedUser) []any {
				return personCells(&r.Person, r.Completed, r.Open, r.Overdue, optional(r.NextTitle), optionalDate(r.NextDueOn))
			}),
		}), one(Text("Completed are the courses completed in this period; open ones include those that are overdue."))),
	}, nil
}

func (m *Renderer) trainingStatus(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	courses, err := reports.CourseProgress(ctx, t, p)
	if err != nil {
		return nil, err
	}
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), courseTotals(courses)),
		section("Every user and course", one(Table{
			Title: "Training status", Once: personCount, Columns: personColumns(courseColumns...), Empty: noCourses,
			Rows: cellsOf(reports.UserCourses(ctx, t), func(r *domain.UserCourse) []any {
				return personCells(&r.Person, courseCells(t, &r.Assignment)...)
			}),
		})),
	}, nil
}

func (m *Renderer) courseDetails(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	courses, err := reports.CourseProgress(ctx, t, p)
	if err != nil {
		return nil, err
	}
	users := func(title, empty string, completed bool) []Block {
		from, to := 1, 4 // who has not completed a course has no day of it
		if completed {
			from, to = 2, 5
		}
		return one(Table{
			Title: title, Empty: empty, Once: 1,
			Columns: append(courseColumns[:1:1], personColumns(courseColumns[from:to]...)...),
			Rows: cellsOf(reports.CourseUsers(ctx, t, completed), func(r *domain.UserCourse) []any {
				cells := courseCells(t, &r.Assignment)
				return append(cells[:1:1], personCells(&r.Person, cells[from:to]...)...)
			}),
		})
	}
	return []Section{
		section("Courses", noUsers(t.ActiveUsers), courseTotals(courses), courseChart(courses),
			one(courseTable("Courses", courses, t.ActiveUsers, "In 365 days"))),
		section("Who has not completed them", users("Not completed", "Nobody has an open course.", false)),
		section("Who has completed them", users("Completed", "Nobody has completed a course.", true)),
	}, nil
}

func (m *Renderer) teamTraining(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	managers, err := reports.TrainingByManager(ctx, t, p)
	if err != nil {
		return nil, err
	}
	departments, err := reports.TrainingByDepartment(ctx, t, p)
	if err != nil {
		return nil, err
	}

	columns := []Column{{Title: "Users", Kind: IntegerColumn}, {Title: "On track", Kind: IntegerColumn},
		{Title: "On-track rate", Kind: PercentColumn}, {Title: "Completed", Kind: IntegerColumn},
		{Title: "Open", Kind: IntegerColumn}, {Title: "Overdue", Kind: IntegerColumn}}
	cells := func(r *domain.TeamTraining, before ...any) []any {
		return append(before, r.Users, r.OnTrack, rateOf(r.OnTrack, r.Users), r.Completed, r.Open, r.Overdue)
	}
	department := func(r *domain.TeamTraining) string { return named(r, "(no department)") }
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), one(onTrackFigures(t)),
			one(Text("A user is on track who has no overdue course. "+
				"Completed are the courses completed in the last 365 days."))),
		section("By manager", one(Table{
			Title: "Training by manager", Empty: "There are no active users.",
			Columns: append([]Column{{Title: "Manager", Width: 3}, {Title: "Email", Width: 3}}, columns...),
			Rows: cellsOf(listed(managers), func(r *domain.TeamTraining) []any {
				switch {
				case r.Name == nil:
					return cells(r, "(no manager)", nil)
				case r.Manager == "":
					return cells(r, nil, *r.Name)
				}
				return cells(r, r.Manager, *r.Name)
			}),
		})),
		section("By department",
			bars("On-track rate by department", "%", departments, department,
				func(r *domain.TeamTraining) float64 { return rateIn(r.OnTrack, r.Users) }),
			one(Table{
				Title: "Training by department", Empty: "There are no active users.",
				Columns: append([]Column{{Title: "Department", Width: 3}}, columns...),
				Rows: cellsOf(listed(departments), func(r *domain.TeamTraining) []any {
					return cells(r, department(r))
				}),
			})),
	}, nil
}

func named(r *domain.TeamTraining, instead string) string {
	if r.Name == nil {
		return instead
	}
	return *r.Name
}

// onTrackFigures are those of the client's summary.
func onTrackFigures(t *db.Tenant) Figures {
	overdue := t.Summary.OverdueUsers
	onTrack := rateFigure("On track", t.ActiveUsers-overdue, t.ActiveUsers, 95, 80, "user")
	if t.ActiveUsers == 0 {
		onTrack.Value, onTrack.Note = rateText(t.Summary.OnTrackRate), "no active users"
	}
	return Figures{onTrack, badIfAny(countFigure("Users with overdue courses", overdue, ""), overdue)}
}

func onTrackChart(t *db.Tenant) []Block {
	overdue := t.Summary.OverdueUsers
	return donut("Users on track", []string{"On track", "Overdue"}, []Tone{Good, Bad}, t.ActiveUsers-overdue, overdue)
}

func courseTotals(courses []domain.CourseProgress) []Block {
	var n domain.CourseProgress
	for _, c := range courses {
		n.Users += c.Users
		n.Completed += c.Completed
		n.Open += c.Open
		n.Overdue += c.Overdue
	}
	if n.Users == 0 {
		return []Block{Text(noCourses)}
	}
	return append([]Block{Figures{
		countFigure("Courses of users", n.Users, "%s", plural(len(courses), "course")),
		rateFigure("Completed", n.Completed, n.Users, 95, 80, "course"),
		countFigure("Assigned", n.Open, "not due yet"),
		badIfAny(countFigure("Overdue", n.Overdue, ""), n.Overdue),
	}}, donut("Where the courses stand", []string{"Completed", "Assigned", "Overdue"}, []Tone{Good, Neutral, Bad},
		n.Completed, n.Open, n.Overdue)...)
}

func courseChart(courses []domain.CourseProgress) []Block {
	return bars("Completion by course", "%", courses,
		func(r *domain.CourseProgress) string { return r.Title },
		func(r *domain.CourseProgress) float64 { return rateIn(r.Completed, r.Users) })
}

// courseTable says where the client's active users stand with each course,
// and how often it was completed within a period.
func courseTable(title string, courses []domain.CourseProgress, users int, within string) Table {
	return Table{
		Title: title, Empty: noCourses,
		Columns: []Column{{Title: "Course", Width: 4}, {Title: "Users", Kind: IntegerColumn},
			{Title: "Not given", Kind: IntegerColumn}, {Title: "Completed", Kind: IntegerColumn},
			{Title: "Assigned", Kind: IntegerColumn}, {Title: "Overdue", Kind: IntegerColumn},
			{Title: "Completion", Kind: PercentColumn}, {Title: within, Kind: IntegerColumn}},
		Rows: cellsOf(listed(courses), func(r *domain.CourseProgress) []any {
			return []any{r.Title, r.Users, users - r.Users, r.Completed, r.Open, r.Overdue,
				rateOf(r.Completed, r.Users), r.CompletedWithin}
		}),
	}
}

// courseColumns are the state of a user's course.
var courseColumns = []Column{{Title: "Course", Width: 3}, {Title: "Status", Width: 2},
	{Title: "Assigned on", Kind: DateColumn, Width: 2}, {Title: "Due on", Kind: DateColumn, Width: 2},
	{Title: "Completed on", Kind: DateColumn, Width: 2}}

func courseCells(t *db.Tenant, a *domain.Assignment) []any {
	cells := []any{a.Title, word(a.Status(domain.DateOf(t.Now()))), domain.DateOf(a.AssignedAt), a.DueOn, nil}
	if a.CompletedAt != nil {
		cells[4] = domain.DateOf(*a.CompletedAt)
	}
	return cells
}
