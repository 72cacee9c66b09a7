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
	t, n := r.tenant, readNumbers(r, r.period)
	n.readState(r)
	return []Section{
		section("Where you stand", Text(standingText(t)), Figures{
			scoreFigure(t), highRiskFigure(t), onTrackFigure(t),
			metFigure("Framework requirements", n.met, n.requirements),
		}, scoreChart(t, n.scores), metTable(n.frameworks)),
		section("Training and phishing", Figures{
			countFigure("Courses completed", n.training.Completed, "%d assigned in this period", n.training.Assigned),
			badIfAny(countFigure("Users with overdue courses", n.tenant.Summary.OverdueUsers, "today"), n.tenant.Summary.OverdueUsers),
			clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
			reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
		}),
		section("Exposures and policies", append(n.exposureFigures(),
			signedFigure(n.signed, n.asked),
			countFigure("Signatures given", n.signatures, "in this period"))),
		section("What to do next", n.nextSteps()),
	}
}

// metTable returns a table of the met requirements of each framework assignment, or nil if there are none. A PDF shows
// it as a paragraph.
func metTable(list []framework) Block {
	if len(list) == 0 {
		return nil
	}
	return Table{
		Title:   "Frameworks",
		Line:    func(cells []any) string { return fmt.Sprintf("%s %d of %d (%.1f%%)", cells...) },
		Columns: slices.Concat([]Column{{Title: "Framework", Width: 4}}, numberColumns("Met", "Of", "Share")),
		Rows: listRows(list, func(f *framework) []any {
			return []any{f.title, f.Evaluation.Met, f.Evaluation.Total, Percent(f.Evaluation.Percentage())}
		}),
	}
}

// standingText returns a text that explains the client's average score, or that there are no active users.
func standingText(t *db.Tenant) string {
	if t.ActiveUsers == 0 {
		return "The client has no active users."
	}
	return fmt.Sprintf("The risk score tells how safely people act, from 0 to 1,000; higher is better. "+
		"The average of %s is %d, which is grade %s.",
		quantity(t.ActiveUsers, "active user"), t.Summary.AverageScore, domain.GradeOf(t.Summary.AverageScore))
}

// quantity returns a number with a noun, which is passed in the singular: "1 user", "2 users".
func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return countText(n) + " " + pluralOf(noun)
}

// pluralOf returns the plural of a noun, with "ies" for a final "y".
func pluralOf(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}

// metFigure returns the figure of the number of met requirements. Its tone is Good if all are met, else Warning. If
// there are no requirements, it has no value and no tone.
func metFigure(label string, met, total int) Figure {
	if total == 0 {
		return Figure{Label: label, Note: "no framework is followed"}
	}
	f := Figure{Label: label, Value: met, Note: fmt.Sprintf("of %d are met", total), Tone: Warning}
	if met == total {
		f.Tone = Good
	}
	return f
}

// exposureFigures returns figures of exposures. They have no values if Dark Web Monitoring is off.
func (n *numbers) exposureFigures() Figures {
	if !n.tenant.DarkWebMonitoring {
		return Figures{
			{Label: "Exposures", Note: "Dark Web Monitoring is off"},
			{Label: "Exposures found", Note: "Dark Web Monitoring is off"},
		}
	}
	return Figures{
		badIfAny(countFigure("Unresolved exposures", n.darkWeb.Unresolved, "%d critical, %s",
			n.darkWeb.By.Critical, quantity(n.darkWeb.Affected, "affected user")), n.darkWeb.Unresolved),
		countFigure("Exposures found", n.exposures.Found, "%d resolved in this period", n.exposures.Resolved),
	}
}

// maxSteps is the maximum number of next steps, so that the summary fits on one page.
const maxSteps = 5

// nextSteps returns texts with the steps that the client should take, at most maxSteps, the most urgent first. If there
// are none, or if the client has no users, it returns a text that says what to do instead.
func (n *numbers) nextSteps() Block {
	if n.tenant.ActiveUsers == 0 {
		return Text("Add users, by hand or from a directory, and assign training to them.")
	}

	clickRate := domain.Percent(n.phishing.Clicked, n.phishing.Sent)
	var steps blocks
	for _, step := range []struct {
		needed bool
		text   string
	}{
		{n.darkWeb.By.Critical > 0, "Have passwords changed that are known from breaches: " +
			quantity(n.darkWeb.By.Critical, "critical exposure") + " not resolved."},
		{n.tenant.Summary.HighRiskUsers > 0, "Give extra training to the users of high risk (" +
			countText(n.tenant.Summary.HighRiskUsers) + "); the risk overview lists them."},
		{n.tenant.Summary.OverdueUsers > 0, "Remind the users whose courses are overdue (" + countText(n.tenant.Summary.OverdueUsers) + ")."},
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
