package report_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
)

// mostShown is the number of employees on the page about those who need attention.
const mostShown = 10

// TestEmployeesWhoNeedAttention verifies that a report of many pages begins with one page about the employees who need
// attention: those with the lowest scores, each with the reasons that the API's reads show, and the number of all.
func TestEmployeesWhoNeedAttention(t *testing.T) {
	w := newWorld(t)
	clicks, critical := map[domain.UserID]int{}, map[domain.UserID]int{}
	for _, r := range list[api.PhishingResult](w, w.path("/phishing/results")) {
		if r.SentAt != nil && within(period, &r.SentAt.Time) && r.Status != domain.ResultSent && r.Status != domain.ResultOpened {
			clicks[r.UserID]++
		}
	}
	for _, e := range list[api.Exposure](w, w.path("/dark-web/exposures")) {
		if e.ResolvedAt == nil && e.Severity == domain.SeverityCritical {
			critical[e.UserID]++
		}
	}
	users := w.active()
	slices.SortStableFunc(users, func(a, b api.User) int { return cmp.Compare(a.Risk.Score, b.Risk.Score) })
	var want []row
	counts := map[string]int{}
	for _, u := range users {
		var reasons []string
		for _, reason := range []struct {
			label, text string
			n           int
		}{
			{"High-risk employees", "high risk (grade " + string(u.Risk.Grade) + ")", map[bool]int{true: 1}[u.Risk.Score < 600]},
			{"With critical exposures", "%d critical exposure", critical[u.ID]},
			{"Repeat clickers", "%d simulated email", max(clicks[u.ID]-1, 0)},
			{"With overdue courses", "%d overdue course", u.Training.OverdueCount},
		} {
			if reason.n == 0 {
				continue
			}
			counts[reason.label]++
			text, n := reason.text, reason.n
			if reason.label == "Repeat clickers" {
				n = clicks[u.ID]
			}
			if strings.Contains(text, "%d") {
				if text = fmt.Sprintf(text, n); n > 1 {
					text += "s"
				}
			}
			if reason.label == "Repeat clickers" {
				text += " clicked"
			}
			reasons = append(reasons, text)
		}
		if reasons != nil {
			text := strings.Join(reasons, ", ")
			want = append(want, who(u, row{"Score": u.Risk.Score, "Reasons": strings.ToUpper(text[:1]) + text[1:]}))
		}
	}
	if len(want) <= mostShown {
		t.Fatalf("the test is of %d employees", len(want))
	}

	d := w.document(domain.EmployeeHistory, &period)
	same(t, "employees", d.tables["Employees who need attention"], want[:mostShown])
	for label, n := range counts {
		d.figure(t, label, n)
	}
	if text := fmt.Sprintf("%d employees have at least one of the issues below. The table shows the %d most urgent.", len(want),
		mostShown); !strings.Contains(d.texts, text) {
		t.Errorf("got the texts %q, want %q among them", d.texts, text)
	}
}

// TestEmployeesWithOverdueCourses verifies the page about employees with which reports of courses begin, and that what
// follows begins on the second page.
func TestEmployeesWithOverdueCourses(t *testing.T) {
	w := newWorld(t)
	type overdue struct {
		row    row
		oldest domain.Date
		n      int
	}
	var want []overdue
	for _, u := range w.active() {
		var late []api.Assignment
		for _, a := range list[api.Assignment](w, "/v2/users/"+u.ID.String()+"/training") {
			if a.Status == domain.TrainingOverdue {
				late = append(late, a)
			}
		}
		if late == nil {
			continue
		}
		slices.SortFunc(late, func(a, b api.Assignment) int {
			return cmp.Or(strings.Compare(a.DueOn.String(), b.DueOn.String()), strings.Compare(a.Title, b.Title))
		})
		var titles []string
		for _, a := range late {
			titles = append(titles, a.Title)
		}
		courses := titles[0]
		if len(titles) > 1 {
			courses += fmt.Sprintf(" and %d more", len(titles)-1)
		}
		want = append(want, overdue{who(u, row{"Overdue courses": len(late), "Oldest due on": late[0].DueOn,
			"Courses": courses}), late[0].DueOn, len(late)})
	}
	slices.SortStableFunc(want, func(a, b overdue) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.oldest.String(), b.oldest.String()))
	})
	rows := make([]row, mostShown)
	for i := range rows {
		rows[i] = want[i].row
	}
	for typ, second := range map[domain.ReportType]string{
		domain.CourseDetails: "Courses", domain.TrainingStatus: "Allemployeesandcourses",
	} {
		d := w.document(typ, nil)
		same(t, string(typ), d.tables["Employees who need attention"], rows)
		if text := fmt.Sprintf("Remind %d employees with overdue courses.", len(want)); !strings.Contains(d.texts, text) {
			t.Errorf("%s: got the texts %q, want %q among them", typ, d.texts, text)
		}
		w.with(typ, func(d *report.Document) error {
			pages := report.PagesOf(t, d, nil)
			if !strings.Contains(pages[0], "Employeeswhoneedattention") || !strings.HasPrefix(pages[1], report.Squeeze(d.Title)+second) {
				t.Errorf("%s: the first page is %.300q, and the second %.100q", typ, pages[0], pages[1])
			}
			return nil
		})
	}
}
