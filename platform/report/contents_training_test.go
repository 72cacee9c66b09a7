package report_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestTraining: figures are those of the client that is read and of its list of courses,
// and sums are those of these lists. Months count what was assigned and completed in them.
func TestTraining(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.TrainingPerformance, &period)
	var c api.Client
	w.Get(w.path(""), w.tenant.Key).Want(200).Into(&c)
	d.figure(t, "On track", c.Training.OnTrackRate)
	d.figure(t, "With overdue courses", c.Training.OverdueUsers)

	var performance, status, done, open []row
	byCourse := map[string]*domain.CourseProgress{}
	for _, u := range w.active() {
		r := who(u, row{"Completed": w.completed(u, period), "Open": 0, "Overdue": u.Training.OverdueCount,
			"Next course": nil, "Due on": nil})
		if next := u.Training.NextCourse; next != nil {
			r["Next course"], r["Due on"] = next.Title, next.DueOn
		}
		for _, a := range list[api.Assignment](w, "/v2/users/"+u.ID.String()+"/training") {
			course := at(byCourse, a.Title)
			course.Users++
			cells := who(u, row{"Course": a.Title, "Status": capital(a.Status), "Assigned on": domain.DateOf(a.AssignedAt.Time),
				"Due on": a.DueOn, "Completed on": nil})
			switch a.Status {
			case domain.TrainingCompleted:
				cells["Completed on"] = domain.DateOf(a.CompletedAt.Time)
				course.Completed++
				done = append(done, cells)
			case domain.TrainingOverdue:
				course.Overdue++
			default:
				course.Open++
			}
			if a.CompletedAt == nil {
				r["Open"] = r["Open"].(int) + 1
				open = append(open, cells)
			}
			status = append(status, cells)
		}
		performance = append(performance, r)
	}
	same(t, "users", d.tables["Training by user"], performance)
	same(t, "status", w.document(domain.TrainingStatus, nil).tables["Training status"], status)

	details := w.document(domain.CourseDetails, nil)
	byTitle := func(a, b row) int { return strings.Compare(a["Course"].(string), b["Course"].(string)) }
	slices.SortStableFunc(done, byTitle)
	slices.SortStableFunc(open, byTitle)
	for _, r := range done {
		delete(r, "Status")
	}
	for _, r := range open {
		delete(r, "Completed on")
	}
	same(t, "who has", details.tables["Completed"], done)
	same(t, "who has not", details.tables["Not completed"], open)
	w.sameCourses(t, details, byCourse, domain.YearTo(today), "Courses", "In 365 days")
	d = w.document(domain.TrainingOverview, &period)
	w.sameCourses(t, d, byCourse, period, "Training by course", "In this period")

	var months []row
	assigned, completed := 0, 0
	for _, month := range []string{"Feb 2026", "Mar 2026", "Apr 2026", "May 2026"} {
		in := func(column string) int {
			return w.Number(`SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id
				WHERE u.client_id = $1 AND u.status = 'active' AND a.`+column+` >= $2 AND a.`+column+` < $3
					AND to_char(a.`+column+`, 'Mon YYYY') = $4`,
				w.client, period.Start.Time(), period.End.AddDays(1).Time(), month)
		}
		months = append(months, row{"Month": month, "Assigned": in("assigned_at"), "Completed": in("completed_at")})
		assigned, completed = assigned+in("assigned_at"), completed+in("completed_at")
	}
	same(t, "months", d.tables["Training by month"], months)
	d.figure(t, "Courses assigned", assigned)
	d.figure(t, "Courses completed", completed)
}

// completed counts the rounds that a user completed in a period.
func (w *world) completed(u api.User, p domain.ReportPeriod) int {
	return w.Number("SELECT count(*) FROM assignments WHERE user_id = $1 AND completed_at >= $2 AND completed_at < $3",
		u.ID, p.Start.Time(), p.End.AddDays(1).Time())
}

// sameCourses compares the courses of a document with those of the users' lists.
func (w *world) sameCourses(
	t *testing.T, d read, byCourse map[string]*domain.CourseProgress, p domain.ReportPeriod, title, column string,
) {
	t.Helper()
	var want []row
	for name, c := range byCourse {
		done := w.Number(`
			SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id JOIN courses AS c ON c.id = a.course_id
			WHERE u.client_id = $1 AND u.status = 'active' AND c.title = $2 AND a.completed_at >= $3 AND a.completed_at < $4`,
			w.client, name, p.Start.Time(), p.End.AddDays(1).Time())
		want = append(want, row{"Course": name, "Users": c.Users, "Completed": c.Completed, "Assigned": c.Open,
			"Overdue": c.Overdue, "Not given": len(w.active()) - c.Users,
			"Completion": rate(c.Completed, c.Users), column: done})
	}
	slices.SortFunc(want, func(a, b row) int { return strings.Compare(a["Course"].(string), b["Course"].(string)) })
	same(t, title, d.tables[title], want)
}

// TestTeams: users are counted by their manager and by their department.
func TestTeams(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.ManagerTraining, nil)
	names := map[string]string{}
	for _, u := range list[api.User](w, w.path("/users")) {
		names[u.Email] = domain.FullName(u.FirstName, u.LastName)
	}
	managers, departments := map[string]*row{}, map[string]*row{}
	count := func(r row, u api.User) {
		add := func(column string, n int) { before, _ := r[column].(int); r[column] = before + n }
		add("Users", 1)
		add("On track", map[bool]int{true: 1}[u.Training.OnTrack])
		add("Overdue", u.Training.OverdueCount)
		add("Open", w.Number("SELECT count(*) FROM assignments WHERE user_id = $1 AND completed_at IS NULL", u.ID))
		add("Completed", w.completed(u, domain.YearTo(today)))
		r["On-track rate"] = rate(r["On track"].(int), r["Users"].(int))
	}
	for _, u := range w.active() {
		manager, department := "~", "~(no department)"
		cells := row{"Manager": "(no manager)", "Email": nil}
		if u.ManagerEmail != nil {
			manager = *u.ManagerEmail
			cells = row{"Manager": nil, "Email": manager}
			if name, ok := names[manager]; ok {
				cells["Manager"] = name
			}
		}
		if u.Department != nil {
			department = *u.Department
		}
		if managers[manager] == nil {
			managers[manager] = &cells
		}
		if departments[department] == nil {
			departments[department] = &row{"Department": strings.TrimPrefix(department, "~")}
		}
		count(*managers[manager], u)
		count(*departments[department], u)
	}
	same(t, "managers", d.tables["Training by manager"], inOrder(managers))
	same(t, "departments", d.tables["Training by department"], inOrder(departments))
}

// TestTeamsAreComparedByKey verifies that one manager, and one department, is one row however users spell it, also with
// white space that older versions stored around it. The row has the spelling of most users, or else the first.
func TestTeamsAreComparedByKey(t *testing.T) {
	w := newWorld(t)
	users := w.active()
	w.Exec("UPDATE users SET email = 'straße@ex.example', first_name = 'Stra', last_name = 'Boss' WHERE id = $1", users[0].ID)
	w.Exec("UPDATE users SET email_key = 'strasse@ex.example', email_state = NULL WHERE id = $1", users[0].ID)
	w.Exec("UPDATE users SET manager_email = NULL, department = NULL WHERE client_id = $1", w.client)
	for i, names := range [][2]string{
		{"strasse@ex.example", "Sales"}, {"straſſe@ex.example", "SALES"}, {"strasse@ex.example", "\u00a0SALES"}, {"ada@ex.example", "Vertrieb"},
		{"ada@ex.example", "sales\u00a0 "}, {"ada@ex.example", "Field\u00a0\tSales "}, {"ada@ex.example", "field sales"}, {"ada@ex.example", "\u00a0"},
	} {
		w.Exec("UPDATE users SET manager_email = $1, department = $2 WHERE id = $3", names[0], names[1], users[i+1].ID)
	}
	d := w.document(domain.ManagerTraining, nil)
	column := func(title, name string) (cells []any) {
		for _, r := range d.tables[title] {
			cells = append(cells, r[name], r["Users"])
		}
		return cells
	}
	others := len(users) - 8
	for _, c := range []struct {
		got  []any
		want []any
	}{
		{column("Training by manager", "Email"), []any{"ada@ex.example", 5, "strasse@ex.example", 3, nil, others}},
		{column("Training by manager", "Manager"), []any{nil, 5, "Stra Boss", 3, "(no manager)", others}},
		{column("Training by department", "Department"), []any{
			"Field\u00a0\tSales", 2, "SALES", 4, "Vertrieb", 1, "(no department)", others + 1,
		}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

// inOrder are rows by their keys, of which ~ is the last.
func inOrder(rows map[string]*row) (list []row) {
	var keys []string
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(domain.SortKey(a), domain.SortKey(b)) })
	for _, k := range keys {
		list = append(list, *rows[k])
	}
	return list
}

// TestHistory: every user's events in the period are there, in the order of time.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.EmployeeHistory, &period)
	want := map[string]int{}
	add := func(u api.User, at *domain.Time, event, subject string) {
		if at != nil && within(period, &at.Time) {
			want[fmt.Sprint(u.Email, " ", at.Time.UTC(), " ", event, " ", subject)]++
		}
	}
	templates := map[domain.TemplateID]string{}
	for _, c := range list[api.PhishingTemplate](w, "/v2/phishing/templates") {
		templates[c.ID] = c.Name
	}
	results := list[api.PhishingResult](w, w.path("/phishing/results"))
	exposures := list[api.Exposure](w, w.path("/dark-web/exposures"))
	active := w.active()
	for _, u := range active {
		for _, r := range results {
			if r.UserID != u.ID {
				continue
			}
			for event, at := range map[string]*domain.Time{"sent": r.SentAt, "opened": r.OpenedAt, "reported": r.ReportedAt} {
				add(u, at, "Simulated mail "+event, templates[r.TemplateID])
			}
			for event, at := range map[string]*domain.Time{"attachment opened": r.AttachmentOpenedAt, "link clicked": r.ClickedAt,
				"credentials submitted": r.CredentialsSubmittedAt} {
				add(u, at, "Simulated mail: "+event, templates[r.TemplateID])
			}
		}
		for _, e := range exposures {
			if e.UserID == u.ID {
				add(u, &e.FirstSeenAt, "Exposure found", e.Title)
				add(u, e.ResolvedAt, "Exposure resolved", e.Title)
			}
		}
	}
	got := map[string]int{}
	before := ""
	for _, r := range d.tables["History"] {
		event := r["Event"].(string)
		if strings.HasPrefix(event, "Simulated") || strings.HasPrefix(event, "Exposure") {
			got[fmt.Sprint(r["Email"], " ", r["Time (UTC)"], " ", event, " ", r["Subject"])]++
		}
		place := fmt.Sprintf("%s\x00%s %s", domain.SortKey(r["Name"].(string)), r["Email"],
			r["Time (UTC)"].(time.Time).Format("2006-01-02T15:04:05.000000"))
		if place < before {
			t.Errorf("%s comes before %s", before, place)
		}
		before = place
	}
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%d kinds of events, not %d", len(got), len(want))
	}

	since, until := period.Start.Time(), period.End.AddDays(1).Time()
	for event, column := range map[string]string{
		"Course assigned": "assignments.assigned_at", "Course completed": "assignments.completed_at",
		"Policy signed": "policy_signatures.signed_at", "Real mail reported": "reported_emails.reported_at",
	} {
		n := 0
		for _, r := range d.tables["History"] {
			if r["Event"] == event {
				n++
			}
		}
		table, _, _ := strings.Cut(column, ".")
		want := w.Number("SELECT count(*) FROM "+table+" WHERE "+column+" >= $2 AND "+column+` < $3
			AND user_id IN (SELECT id FROM users WHERE client_id = $1 AND status = 'active')`, w.client, since, until)
		if n != want || n == 0 {
			t.Errorf("%s: %d events, not %d", event, n, want)
		}
	}
}
