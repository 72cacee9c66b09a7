package report

import (
	"fmt"
	"slices"
	"strings"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

// attentionHeading is the heading of the section about the people who matter, with which long reports begin.
const attentionHeading = "Employees who need attention"

// attentionText returns a text that says how many employees need attention and, if the table has fewer, how many it
// shows; then what to do. why is the format of the first sentence after the number of employees, such as
// "%s overdue courses.", whose operand is the verb. It returns nil if no employee needs attention.
func attentionText(employees, shown int, why string, steps ...string) Block {
	if employees == 0 {
		return nil
	}
	text := []string{quantity(employees, "employee") + " " + fmt.Sprintf(why, choose(employees, "has", "have"))}
	if shown < employees {
		text = append(text, fmt.Sprintf("The table shows the %d most urgent.", shown))
	}
	return sentences(append(text, steps...)...)
}

// attentionSections returns a section with the employees who need attention, why, and how many there are for each reason,
// one with what to do, and the number of these employees.
func attentionSections(r *reading) (sections []Section, employees int) {
	t := r.tenant
	list := read(r, reports.UsersInNeed.All)
	var n domain.NeedCounts
	if len(list) > 0 {
		n = list[0].NeedCounts
	}
	figures := Figures{
		badIfAny(countFigure("High-risk employees", n.HighRisk, "risk score below %d", domain.HighRiskBelow), n.HighRisk),
		badIfAny(countFigure("With overdue courses", n.WithOverdue, "employees today"), n.WithOverdue),
		badIfAny(countFigure("Repeat clickers", n.RepeatClickers, "two or more clicks"), n.RepeatClickers),
	}
	if t.DarkWebMonitoring {
		figures = append(figures,
			badIfAny(countFigure("With critical exposures", n.WithCritical, "employees today"), n.WithCritical))
	}
	attention := section(attentionHeading, noUsersNote(t.ActiveUsers), attentionText(n.Users, len(list),
		"%s at least one of the issues below."), figures, Table{
		Title: attentionHeading, Empty: "No active employee needs attention.",
		Columns: slices.Concat(personColumns, numberColumns("Score"), []Column{{Title: "Reasons", Width: 5}}),
		Rows: listRows(list, func(u *domain.UserInNeed) []any {
			return personCells(&u.Person, u.Score, reasonsText(u))
		}),
	})
	return []Section{attention, section("Next steps", numberedSteps(resolveCritical(domain.OrZero(n.AllCritical)),
		trainHighRisk(n.HighRisk), remindOverdue(n.WithOverdue), trainRepeatClickers(n.RepeatClickers)))}, n.Users
}

// reasonsText returns the reasons why a user needs attention, with counts.
func reasonsText(u *domain.UserInNeed) string {
	var reasons []string
	add := func(needed bool, reason string) {
		if needed {
			reasons = append(reasons, reason)
		}
	}
	add(u.Score < domain.HighRiskBelow, "high risk (grade "+string(domain.GradeOf(u.Score))+")")
	add(u.Critical > 0, quantity(u.Critical, "critical exposure"))
	add(u.Clicked > 1, quantity(u.Clicked, "simulated email")+" clicked")
	add(u.Overdue > 0, quantity(u.Overdue, "overdue course"))
	text := strings.Join(reasons, ", ")
	return strings.ToUpper(text[:1]) + text[1:]
}
