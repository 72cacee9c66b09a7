package report

import (
	"fmt"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
)

// executiveSummary returns the contents of a one-page summary for managers.
func executiveSummary(r *reading) []Section {
	t, n, earlier := r.tenant, readNumbers(r, r.period), readNumbers(r, r.period.Previous())
	n.readState(r)
	overdue := t.Summary.OverdueUsers
	return []Section{
		section("Risk and compliance", Text(standingText(t)), Figures{
			scoreFigure(t).against(earlier.lastScore(), higherIsBetter), highRiskFigure(t), onTrackFigure(t),
			metFigure("Framework requirements", n.met, n.requirements),
		}, scoreChart(t, n.scores), metTable(n.frameworks)),
		section("Training and phishing", Figures{
			n.completedFigure(&earlier),
			badIfAny(countFigure("With overdue courses", overdue, "employees today"), overdue),
			n.clickFigure(&earlier), n.reportFigure(&earlier),
		}),
		section("Exposures and policies", append(n.exposureFigures(&earlier),
			signedFigure(n.signed, n.asked),
			countFigure("Signatures added", n.signatures, "in this period").
				against(countOr(earlier.signatures, earlier.signatures > 0), neither))),
		section("Next steps", n.nextSteps()),
	}
}

// metTable returns a table of the met requirements of each framework assignment, or nil if there are none. A PDF shows
// it as a paragraph.
func metTable(list []framework) Block {
	if len(list) == 0 {
		return nil
	}
	return Table{
		Title: "Frameworks",
		Line: func(cells []any) string {
			return fmt.Sprintf("%s (%d of %d met, %s)", cells[0], cells[1], cells[2], textOf(cells[3]))
		},
		Columns: slices.Concat([]Column{{Title: "Framework", Width: 4}}, numberColumns("Met", "Of", "Share")),
		Rows: listRows(list, func(f *framework) []any {
			return []any{f.title, f.Evaluation.Met, f.Evaluation.Total, WholePercent(f.Evaluation.Percentage())}
		}),
	}
}

// standingText returns a text that says what the client's average score is, or that the client has no active employees.
func standingText(t *db.Tenant) string {
	if t.ActiveUsers == 0 {
		return "There are no active employees."
	}
	return fmt.Sprintf("The average risk score of %s is %d out of 1,000 (grade %s). A higher score means safer behavior.",
		quantity(t.ActiveUsers, "active employee"), t.Summary.AverageScore, domain.GradeOf(t.Summary.AverageScore))
}

// quantity returns a number with a noun, which is passed in the singular: "1 user", "2 users".
func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return countText(n) + " " + pluralOf(noun)
}

// choose returns one if n is 1, otherwise many: the form of a verb for a number.
func choose(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// pluralOf returns the plural of a noun, with "ies" for a final "y".
func pluralOf(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}

// metFigure returns the figure of the number of met requirements. Its tone is Good if all are met, otherwise Warning.
// If there are no requirements, it has no value and no tone.
func metFigure(label string, met, total int) Figure {
	if total == 0 {
		return Figure{Label: label, Note: "no framework assigned"}
	}
	f := Figure{Label: label, Value: met, Note: fmt.Sprintf("of %d met", total), Tone: Warning}
	if met == total {
		f.Tone = Good
	}
	return f
}

// exposureFigures returns figures of exposures, compared with the period before. They have no values if Dark Web
// Monitoring is off.
func (n *numbers) exposureFigures(earlier *numbers) Figures {
	if !n.tenant.DarkWebMonitoring {
		return Figures{
			{Label: "Exposures", Note: "Dark Web Monitoring is off"},
			{Label: "Exposures found", Note: "Dark Web Monitoring is off"},
		}
	}
	return Figures{
		badIfAny(countFigure("Unresolved exposures", n.darkWeb.Unresolved, "%d critical, %s",
			n.darkWeb.By.Critical, quantity(n.darkWeb.Affected, "employee")), n.darkWeb.Unresolved),
		foundFigure("Exposures found", n.exposures, earlier.exposures),
	}
}

// maxSteps is the maximum number of next steps, so that the summary fits on one page.
const maxSteps = 5

// The recommendations of reports: imperatives with a count, or an empty text if there is nothing to do.

// resolveCritical recommends resolving the critical exposures.
func resolveCritical(n int) string {
	return ifAny(n, "Resolve %s: have each affected employee change their passwords.", quantity(n, "critical exposure"))
}

// trainHighRisk recommends training for the high-risk employees.
func trainHighRisk(n int) string {
	return ifAny(n, "Assign extra training to %s.", quantity(n, "high-risk employee"))
}

// remindOverdue recommends reminding the employees with overdue courses.
func remindOverdue(n int) string {
	return ifAny(n, "Remind %s with overdue courses.", quantity(n, "employee"))
}

// collectSignatures recommends collecting the missing signatures of policies.
func collectSignatures(n int) string {
	return ifAny(n, "Collect %s.", quantity(n, "missing policy signature"))
}

// meetRequirements recommends meeting the other requirements of frameworks.
func meetRequirements(n int) string {
	return ifAny(n, "Meet %s.", quantity(n, "more framework requirement"))
}

// trainRepeatClickers recommends training for the employees who clicked repeatedly.
func trainRepeatClickers(n int) string {
	return ifAny(n, "Assign phishing training to %s.", quantity(n, "repeat clicker"))
}

// nextSteps returns texts with the steps that the client should take, at most maxSteps, the most urgent first. If there
// are none, or if the client has no users, it returns a text that says what to do instead.
func (n *numbers) nextSteps() Block {
	employees := n.tenant.ActiveUsers
	if employees == 0 {
		return Text("Add employees, manually or from a directory, and assign training to them.")
	}

	clicks, simulations := 0, employees // the clicks to follow up, and the employees to send a simulation to
	if n.phishing.Sent > 0 {
		simulations = 0
		if domain.Percent(n.phishing.Clicked, n.phishing.Sent) > 5 {
			clicks = n.phishing.Clicked
		}
	}
	steps := numberedSteps(
		resolveCritical(n.darkWeb.By.Critical),
		trainHighRisk(n.tenant.Summary.HighRiskUsers),
		remindOverdue(n.tenant.Summary.OverdueUsers),
		ifAny(clicks, "Follow up on %s in simulated emails to bring the click rate down to 5%% or less.", quantity(clicks, "click")),
		ifAny(simulations, "Send a phishing simulation to %s: none was sent in this period.",
			quantity(simulations, "employee")),
		collectSignatures(n.asked-n.signed),
		meetRequirements(n.requirements-n.met),
		ifAny(n.darkWeb.Unresolved-n.darkWeb.By.Critical, "Resolve %s.",
			quantity(n.darkWeb.Unresolved-n.darkWeb.By.Critical, "exposure")+" of lower severity"))
	if steps == nil {
		return Text("Nothing is urgent. Continue training and simulations.")
	}
	return steps
}

// numberedSteps returns the first maxSteps steps that are not empty as numbered texts; nil if there are none.
func numberedSteps(list ...string) (steps blocks) {
	for _, step := range list {
		if step != "" && len(steps) < maxSteps {
			steps = append(steps, Text(fmt.Sprintf("%d. %s", len(steps)+1, step)))
		}
	}
	return steps
}
