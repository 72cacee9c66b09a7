package report

import (
	"fmt"
	"math"
	"slices"

	"partnerapi/db"
	"partnerapi/domain"
)

// monthlyReport compares a period with the one before: a month with the month
// before.
func monthlyReport(r *reading) []Section {
	p, previous := r.period, r.period.Previous()
	now, before := numbersIn(r, p), numbersIn(r, previous)
	return []Section{
		section("Summary", noUsers(r.tenant.ActiveUsers),
			Text(fmt.Sprintf("This report compares %s with %s.", periodText(p), periodText(previous))),
			now.monthFigures(&before)),
		section("Risk score", scoresCompared(p, previous, now.scores, before.scores)),
		section("Numbers", countsCompared(r.tenant, &now, &before), ratesCompared(&now, &before)),
	}
}

// periodText is a calendar month by its name, and another period by its ends.
func periodText(p domain.ReportPeriod) string {
	if months := p.Months(); len(months) == 1 && p.Start == months[0] && p.End.AddDays(1).Time().Day() == 1 {
		return p.Start.Time().Format("January 2006")
	}
	return p.Start.String() + " to " + p.End.String()
}

// lastScore is the average score at the end of a period, or nil.
func (n *numbers) lastScore() any {
	if len(n.scores) == 0 {
		return nil
	}
	return n.scores[len(n.scores)-1].AverageScore
}

func (n *numbers) monthFigures(before *numbers) Figures {
	score := Figure{Label: "Average risk score", Note: "no score in this period"}
	if last, ok := n.lastScore().(int); ok {
		grade := domain.GradeOf(last)
		score.Value, score.Note, score.Tone = last, "grade "+string(grade)+" at the end", gradeTone(grade)
	}
	was := func(f Figure, part, whole int) Figure {
		if whole > 0 && f.Value != nil {
			f.Note = "before: " + rateText(domain.Percent(part, whole))
		}
		return f
	}
	return Figures{
		score,
		countFigure("Courses completed", n.training.Completed, "before: %d", before.training.Completed),
		was(clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
			before.phishing.Clicked, before.phishing.Sent),
		was(reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
			before.phishing.Reported, before.phishing.Sent),
	}
}

// scoresCompared charts the average scores of two periods on one axis, the day of the period (1 is its first).
func scoresCompared(p, previous domain.ReportPeriod, now, before []domain.AverageOn) Block {
	days := max(p.Start.DaysUntil(p.End), previous.Start.DaysUntil(previous.End)) + 1
	c := Chart{Kind: Line, Title: "Average risk score by day", By: "Day of the period"}
	for d := range days {
		c.Labels, c.Keys = append(c.Labels, countText(d+1)), append(c.Keys, d+1)
	}
	add := func(of domain.ReportPeriod, scores []domain.AverageOn) {
		values := slices.Repeat([]float64{math.NaN()}, days)
		for _, s := range scores {
			values[of.Start.DaysUntil(s.Date)] = float64(s.AverageScore)
		}
		c.Series = append(c.Series, Series{Name: periodText(of), Values: values})
	}
	add(p, now)
	add(previous, before)

	if chart := unlessEmpty(c); chart != nil {
		return chart
	}
	return Text("No score was computed in either period.")
}

// compared is a number in two periods, nil for none.
type compared struct {
	name        string
	now, before any
}

func countsCompared(t *db.Tenant, now, before *numbers) Table {
	list := []compared{
		{"Average risk score at the end", now.lastScore(), before.lastScore()},
		{"Courses assigned", now.training.Assigned, before.training.Assigned},
		{"Courses completed", now.training.Completed, before.training.Completed},
		{"Simulated mails sent", now.phishing.Sent, before.phishing.Sent},
		{"Clicked", now.phishing.Clicked, before.phishing.Clicked},
		{"Credentials submitted", now.phishing.CredentialsSubmitted, before.phishing.CredentialsSubmitted},
		{"Reported", now.phishing.Reported, before.phishing.Reported},
		{"Policy signatures", now.signatures, before.signatures},
	}
	if t.DarkWebMonitoring {
		list = append(list, compared{"Exposures found", now.exposures.Found, before.exposures.Found},
			compared{"Exposures resolved", now.exposures.Resolved, before.exposures.Resolved})
	}

	return comparison("Counts compared", "What", list, IntegerColumn, Column{Title: "Change", Kind: IntegerColumn})
}

func ratesCompared(now, before *numbers) Table {
	is, was := now.phishing, before.phishing
	return comparison("Rates compared", "Rate", []compared{
		{"Click rate", rateOf(is.Clicked, is.Sent), rateOf(was.Clicked, was.Sent)},
		{"Report rate", rateOf(is.Reported, is.Sent), rateOf(was.Reported, was.Sent)},
	}, PercentColumn, Column{Title: "Change in points", Kind: NumberColumn})
}

// comparison lists numbers of a kind with their change, where both periods have them.
func comparison(title, name string, list []compared, kind ColumnKind, change Column) Table {
	return Table{
		Title: title,
		Columns: slices.Concat([]Column{{Title: name, Width: 3}}, columns(kind, "This period", "Period before"),
			[]Column{change}),
		Rows: listed(list, func(c *compared) []any {
			cells := []any{c.name, c.now, c.before, nil}
			switch before := c.before.(type) {
			case int:
				if now, ok := c.now.(int); ok {
					cells[3] = now - before
				}
			case float64:
				if now, ok := c.now.(float64); ok {
					cells[3] = now - before
				}
			}
			return cells
		}),
	}
}
