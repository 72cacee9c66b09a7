package report

import (
	"fmt"
	"math"
	"slices"

	"partnerapi/db"
	"partnerapi/domain"
)

// monthlyReport returns the contents of a report that compares a period, such as a month, with the period before.
func monthlyReport(r *reading) []Section {
	p, previous := r.period, r.period.Previous()
	current, earlier := readNumbers(r, p), readNumbers(r, previous)
	return []Section{
		section("Summary", noUsersNote(r.tenant.ActiveUsers),
			Text(fmt.Sprintf("This report compares %s with %s.", periodText(p), periodText(previous))),
			current.monthFigures(&earlier)),
		section("Risk score", scoreComparison(p, previous, current.scores, earlier.scores)),
		section("Numbers", countComparison(r.tenant, &current, &earlier), rateComparison(&current, &earlier)),
	}
}

// periodText returns the month of a period that is a calendar month ("June 2026"), or else its first and last day.
func periodText(p domain.ReportPeriod) string {
	if months := p.Months(); len(months) == 1 && p.Start == months[0] && p.End.AddDays(1).Time().Day() == 1 {
		return p.Start.Time().Format("January 2006")
	}
	return p.Start.String() + " to " + p.End.String()
}

// lastScore returns the last average score of the period; nil if it has none.
func (n *numbers) lastScore() any {
	if len(n.scores) == 0 {
		return nil
	}
	return n.scores[len(n.scores)-1].AverageScore
}

// monthFigures returns figures of the period. Their notes have the figures of the earlier period, except that of the
// score, which has the grade.
func (n *numbers) monthFigures(earlier *numbers) Figures {
	score := Figure{Label: "Average risk score", Note: "no score in this period"}
	if last, ok := n.lastScore().(int); ok {
		grade := domain.GradeOf(last)
		score.Value, score.Note, score.Tone = last, "grade "+string(grade)+" at the end", gradeTone(grade)
	}
	// withEarlier sets the note of a rate to the earlier rate, if there are both.
	withEarlier := func(f Figure, part, whole int) Figure {
		if whole > 0 && f.Value != nil {
			f.Note = "before: " + rateText(domain.Percent(part, whole))
		}
		return f
	}
	return Figures{
		score,
		countFigure("Courses completed", n.training.Completed, "before: %d", earlier.training.Completed),
		withEarlier(clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
			earlier.phishing.Clicked, earlier.phishing.Sent),
		withEarlier(reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
			earlier.phishing.Reported, earlier.phishing.Sent),
	}
}

// scoreComparison returns a chart of the average scores of two periods by the day of the period, from 1. If neither has
// scores, it returns a text.
func scoreComparison(p, previous domain.ReportPeriod, current, earlier []domain.AverageOn) Block {
	days := max(p.Start.DaysUntil(p.End), previous.Start.DaysUntil(previous.End)) + 1
	c := Chart{Kind: Line, Title: "Average risk score by day", By: "Day of the period"}
	for d := range days {
		c.Labels, c.Keys = append(c.Labels, countText(d+1)), append(c.Keys, d+1)
	}
	add := func(period domain.ReportPeriod, scores []domain.AverageOn) {
		values := slices.Repeat([]float64{math.NaN()}, days)
		for _, s := range scores {
			values[period.Start.DaysUntil(s.Date)] = float64(s.AverageScore)
		}
		c.Series = append(c.Series, Series{Name: periodText(period), Values: values})
	}
	add(p, current)
	add(previous, earlier)

	if chart := chartOrNil(c); chart != nil {
		return chart
	}
	return Text("No score was computed in either period.")
}

// numberPair is a number in two periods; nil for no value.
type numberPair struct {
	name             string
	current, earlier any
}

// countComparison returns a table of counts of two periods; of exposures only with Dark Web Monitoring.
func countComparison(t *db.Tenant, current, earlier *numbers) Table {
	list := []numberPair{
		{"Average risk score at the end", current.lastScore(), earlier.lastScore()},
		{"Courses assigned", current.training.Assigned, earlier.training.Assigned},
		{"Courses completed", current.training.Completed, earlier.training.Completed},
		{"Simulated mails sent", current.phishing.Sent, earlier.phishing.Sent},
		{"Clicked", current.phishing.Clicked, earlier.phishing.Clicked},
		{"Credentials submitted", current.phishing.CredentialsSubmitted, earlier.phishing.CredentialsSubmitted},
		{"Reported", current.phishing.Reported, earlier.phishing.Reported},
		{"Policy signatures", current.signatures, earlier.signatures},
	}
	if t.DarkWebMonitoring {
		list = append(list, numberPair{"Exposures found", current.exposures.Found, earlier.exposures.Found},
			numberPair{"Exposures resolved", current.exposures.Resolved, earlier.exposures.Resolved})
	}

	return comparison("Counts compared", "What", list, "Change")
}

// rateComparison returns a table of rates of two periods.
func rateComparison(current, earlier *numbers) Table {
	c, e := current.phishing, earlier.phishing
	return comparison("Rates compared", "Rate", []numberPair{
		{"Click rate", rateCell(c.Clicked, c.Sent), rateCell(e.Clicked, e.Sent)},
		{"Report rate", rateCell(c.Reported, c.Sent), rateCell(e.Reported, e.Sent)},
	}, "Change in points")
}

// comparison returns a table of numbers of two periods. name and change are the titles of the columns of names and of
// differences. A difference is empty unless both periods have a value.
func comparison(title, name string, list []numberPair, change string) Table {
	return Table{
		Title:   title,
		Columns: slices.Concat([]Column{{Title: name, Width: 3}}, numberColumns("This period", "Period before", change)),
		Rows: listRows(list, func(n *numberPair) []any {
			cells := []any{n.name, n.current, n.earlier, nil}
			switch earlier := n.earlier.(type) {
			case int:
				if current, ok := n.current.(int); ok {
					cells[3] = current - earlier
				}
			case Percent:
				if current, ok := n.current.(Percent); ok {
					cells[3] = float64(current - earlier)
				}
			}
			return cells
		}),
	}
}
