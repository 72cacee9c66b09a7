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
	t, n := r.tenant, numbersIn(r, r.period)
	n.standing(r)
	return []Section{
		section("Where you stand", Text(standingText(t)), Figures{
			scoreFigure(t), highRiskFigure(t), onTrackFigure(t),
			met("Framework requirements", n.met, n.requirements),
		}, scoreChart(t, n.scores), frameworksMet(n.frameworks)),
		section("Training and phishing", Figures{
			countFigure("Courses completed", n.training.Completed, "%d assigned in this period", n.training.Assigned),
			badIfAny(countFigure("Users with overdue courses", n.score.OverdueUsers, "today"), n.score.OverdueUsers),
			clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
			reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
		}),
		section("Exposures and policies", append(n.exposureFigures(t),
			signedFigure(n.signed, n.asked),
			countFigure("Signatures given", n.signatures, "in this period"))),
		section("What to do next", n.nextSteps()),
	}
}

// frameworksMet returns a table of the met requirements of each framework, which a PDF shows as a paragraph; nil if
// there are no frameworks.
func frameworksMet(list []domain.FrameworkAssignment) Block {
	if len(list) == 0 {
		return nil
	}
	names := uniqueNames(list)
	return Table{
		Title:   "Frameworks",
		Line:    func(cells []any) string { return fmt.Sprintf("%s %d of %d (%.1f%%)", cells...) },
		Columns: slices.Concat([]Column{{Title: "Framework", Width: 4}}, numberColumns("Met", "Of", "Share")),
		Rows: listed(names, func(name *string) []any {
			e := &list[slices.Index(names, *name)].Evaluation
			return []any{*name, e.Met, e.Total, Percent(e.Percentage())}
		}),
	}
}

// standingText explains the client's average score.
func standingText(t *db.Tenant) string {
	if t.ActiveUsers == 0 {
		return "The client has no active users."
	}
	return fmt.Sprintf("The risk score tells how safely people act, from 0 to 1,000; higher is better. "+
		"The average of %s is %d, which is grade %s.",
		plural(t.ActiveUsers, "active user"), t.Summary.AverageScore, domain.GradeOf(t.Summary.AverageScore))
}

// plural returns a number with a noun, which is given in the singular: "1 user", "2 users".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return countText(n) + " " + plurals(noun)
}

// plurals returns the plural of a noun, with "ies" for a final "y".
func plurals(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}

// met returns the figure of the number of met requirements; without a value if there are no requirements. It is Good if
// all are met, else Warning.
func met(label string, met, total int) Figure {
	if total == 0 {
		return Figure{Label: label, Note: "no framework is followed"}
	}
	f := Figure{Label: label, Value: met, Note: fmt.Sprintf("of %d are met", total), Tone: Warning}
	if met == total {
		f.Tone = Good
	}
	return f
}

// exposureFigures returns figures of exposures; without values if Dark Web Monitoring is off.
func (n *numbers) exposureFigures(t *db.Tenant) Figures {
	if !t.DarkWebMonitoring {
		return Figures{
			{Label: "Exposures", Note: "Dark Web Monitoring is off"},
			{Label: "Exposures found", Note: "Dark Web Monitoring is off"},
		}
	}
	return Figures{
		badIfAny(countFigure("Unresolved exposures", n.darkWeb.Unresolved, "%d critical, %s",
			n.darkWeb.By.Critical, plural(n.darkWeb.Affected, "affected user")), n.darkWeb.Unresolved),
		countFigure("Exposures found", n.exposures.Found, "%d resolved in this period", n.exposures.Resolved),
	}
}

// maxSteps is the maximum number of next steps, so that the summary fits on one page.
const maxSteps = 5

// nextSteps returns the steps that a client should take, at most maxSteps, the most urgent first; a text if there are
// none, or if the client has no users.
func (n *numbers) nextSteps() Block {
	if n.users == 0 {
		return Text("Add users, by hand or from a directory, and assign training to them.")
	}

	clickRate := domain.Percent(n.phishing.Clicked, n.phishing.Sent)
	var steps blocks
	for _, step := range []struct {
		needed bool
		text   string
	}{
		{n.darkWeb.By.Critical > 0, "Have passwords changed that are known from breaches: " +
			plural(n.darkWeb.By.Critical, "critical exposure") + " not resolved."},
		{n.score.HighRiskUsers > 0, "Give extra training to the users of high risk (" + countText(n.score.HighRiskUsers) +
			"); the risk overview lists them."},
		{n.score.OverdueUsers > 0, "Remind the users whose courses are overdue (" + countText(n.score.OverdueUsers) + ")."},
		{n.phishing.Sent > 0 && clickRate > 5, "Bring the click rate below 5%: send simulations, and courses to who clicks."},
		{n.phishing.Sent == 0, "Send simulated phishing: none was sent in this period."},
		{n.signed < n.asked, "Ask for the signatures of policies that are missing (" + countText(n.asked-n.signed) + ")."},
		{n.met < n.requirements, "See the compliance report for the framework requirements that are not met (" +
			countText(n.requirements-n.met) + ")."},
		{n.darkWeb.Unresolved > n.darkWeb.By.Critical, "Resolve the exposures of other data (" +
			countText(n.darkWeb.Unresolved-n.darkWeb.By.Critical) + ")."},
	} {
		if step.needed && len(steps) < maxSteps {
			steps = append(steps, Text(fmt.Sprintf("%d. %s", len(steps)+1, step.text)))
		}
	}
	if steps == nil {
		return Text("Nothing is urgent. Keep training and simulations going.")
	}
	return steps
}
