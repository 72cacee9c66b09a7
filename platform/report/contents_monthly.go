package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
)

// monthlyReport returns the contents of a report that compares a period, such as a month, with the period before.
func monthlyReport(r *reading) []Section {
	p, previous := r.period, r.period.Previous()
	current, earlier := readNumbers(r, p), readNumbers(r, previous)
	return []Section{
		section("Summary", noUsersNote(r.tenant.ActiveUsers), monthlyText(r.tenant, p, &current, &earlier),
			current.monthFigures(&earlier)),
		section("Risk score", scoreComparison(p, previous, current.scores, earlier.scores)),
		section("Numbers", countComparison(r.tenant, &current, &earlier), rateComparison(&current, &earlier)),
	}
}

// monthlyText returns a text that says what got better and what got worse, or that nothing did.
func monthlyText(t *db.Tenant, p domain.ReportPeriod, current, earlier *numbers) Block {
	if text := verdicts(countPairs(t, current, earlier), ratePairs(current, earlier)); text != "" {
		return Text(text)
	}
	return Text(fmt.Sprintf("Nothing got better or worse compared with %s.", periodText(p.Previous())))
}

// lastScore returns the last average score of the period; nil if it has none.
func (n *numbers) lastScore() any {
	if len(n.scores) == 0 {
		return nil
	}
	return n.scores[len(n.scores)-1].AverageScore
}

// monthFigures returns figures of the period, compared with the earlier period.
func (n *numbers) monthFigures(earlier *numbers) Figures {
	score := Figure{Label: "Average risk score", Note: "no score in this period"}
	if last, ok := n.lastScore().(int); ok {
		grade := domain.GradeOf(last)
		score.Value, score.Note, score.Tone = last, "grade "+string(grade)+" at the period’s end", gradeTone(grade)
	}
	return Figures{
		score.against(earlier.lastScore(), higherIsBetter),
		n.completedFigure(earlier), n.clickFigure(earlier), n.reportFigure(earlier),
	}
}

// scoreComparison returns a chart of the average scores of two periods by the day of the period, from 1. If neither has
// scores, it returns a text.
func scoreComparison(p, previous domain.ReportPeriod, current, earlier []domain.AverageOn) Block {
	days := max(p.Start.DaysUntil(p.End), previous.Start.DaysUntil(previous.End)) + 1
	c := Chart{Kind: Line, Title: "Average risk score by day", By: "Day of the period", Grades: true}
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
	name             Word
	current, earlier any
	better           direction
}

// countPairs returns the counts of two periods; of exposures only with Dark Web Monitoring.
func countPairs(t *db.Tenant, current, earlier *numbers) []numberPair {
	list := []numberPair{
		{"Average risk score at the end", current.lastScore(), earlier.lastScore(), higherIsBetter},
		{"Courses assigned", current.training.Assigned, earlier.training.Assigned, neither},
		{"Courses completed", current.training.Completed, earlier.training.Completed, neither},
		{"Simulated mails sent", current.phishing.Sent, earlier.phishing.Sent, neither},
		{"Clicked", current.phishing.Clicked, earlier.phishing.Clicked, neither},
		{"Credentials submitted", current.phishing.CredentialsSubmitted, earlier.phishing.CredentialsSubmitted, lowerIsBetter},
		{"Reported", current.phishing.Reported, earlier.phishing.Reported, neither},
		{"Policy signatures", current.signatures, earlier.signatures, neither},
	}
	if t.DarkWebMonitoring {
		list = append(list, numberPair{"Exposures found", current.exposures.Found, earlier.exposures.Found, lowerIsBetter},
			numberPair{"Exposures resolved", current.exposures.Resolved, earlier.exposures.Resolved, neither})
	}
	return list
}

// ratePairs returns the rates of two periods.
func ratePairs(current, earlier *numbers) []numberPair {
	c, e := current.phishing, earlier.phishing
	return []numberPair{
		{"Click rate", rateCell(c.Clicked, c.Sent), rateCell(e.Clicked, e.Sent), lowerIsBetter},
		{"Report rate", rateCell(c.Reported, c.Sent), rateCell(e.Reported, e.Sent), higherIsBetter},
	}
}

// verdict returns Good or Bad if the number got better or worse, otherwise Neutral.
func (n *numberPair) verdict() Tone {
	current, _, ok := amount(n.current)
	earlier, _, had := amount(n.earlier)
	if !ok || !had {
		return Neutral
	}
	return n.better.verdict(current, earlier)
}

// verdicts returns sentences with the names of the numbers that got better, and of those that got worse.
func verdicts(lists ...[]numberPair) string {
	names := map[Tone][]string{}
	for _, n := range slices.Concat(lists...) {
		name := textOf(n.name)
		names[n.verdict()] = append(names[n.verdict()], strings.ToLower(name[:1])+name[1:])
	}
	var text []string
	for _, verdict := range []struct {
		tone Tone
		word Word
	}{{Good, betterWord}, {Bad, worseWord}} {
		if list := names[verdict.tone]; len(list) > 0 {
			text = append(text, textOf(verdict.word)+": "+strings.Join(list, ", ")+".")
		}
	}
	return strings.Join(text, " ")
}

// countComparison returns a table of the counts of two periods.
func countComparison(t *db.Tenant, current, earlier *numbers) Table {
	return comparison("Counts compared", "What", countPairs(t, current, earlier), "Change")
}

// rateComparison returns a table of rates of two periods.
func rateComparison(current, earlier *numbers) Table {
	return comparison("Rates compared", "Rate", ratePairs(current, earlier), "Change in points")
}

// comparison returns a table of numbers of two periods. name and change are the titles of the columns of names and of
// differences. A difference is empty unless both periods have a value.
func comparison(title, name string, list []numberPair, change string) Table {
	return Table{
		Title: title,
		Columns: slices.Concat([]Column{{Title: name, Width: 3}}, numberColumns("This period", "Period before", change),
			[]Column{{Title: "Compared"}}),
		Rows: listRows(list, func(n *numberPair) []any {
			return []any{n.name, n.current, n.earlier, n.change(), verdictCell(n.verdict())}
		}),
	}
}

// change returns the cell of the difference between the two values as shown, with the decimals of a figure's change
// (see against). It returns nil unless both periods have a value.
func (n *numberPair) change() any {
	by, decimals, ok := difference(n.current, n.earlier)
	if _, count := n.current.(int); count && ok {
		return int(by)
	}
	switch {
	case !ok:
		return nil
	case decimals == 0:
		return Whole(int(math.RoundToEven(by))) // as strconv.FormatFloat rounds
	}
	return by
}
