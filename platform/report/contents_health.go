package report

import (
	"fmt"
	"slices"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

// globalHealth returns the contents of a report that compares the client with the average of the partner's other
// clients. There is no average of fewer than domain.LeastPeers clients.
func globalHealth(r *reading) []Section {
	t, n, earlier := r.tenant, readNumbers(r, r.period), readNumbers(r, r.period.Previous())
	n.readState(r)
	others := read(r, reports.HealthOfPeers)
	own := n.health(recentlySent(r))
	return []Section{
		section("Summary", noUsersNote(t.ActiveUsers), healthText(&own, &others), Figures{
			scoreFigure(t).against(earlier.lastScore(), higherIsBetter), highRiskFigure(t), onTrackFigure(t),
			n.clickFigure(&earlier),
		}, healthChart(&own, &others.Health)),
		section("Comparison with other clients", healthTable(&own, &others.Health)),
		section("Numbers", Figures{
			countFigure("Active employees", t.ActiveUsers, ""),
			n.completedFigure(&earlier),
			sentFigure(n.phishing, earlier.phishing, "in this period"),
			n.reportFigure(&earlier),
		}, append(n.exposureFigures(&earlier),
			signedFigure(n.signed, n.asked),
			metFigure("Framework requirements", n.met, n.requirements))),
	}
}

// healthText returns a text that counts the areas in which the client is better or worse than the average of others, and
// says what that average is; or that the others are too few.
func healthText(own *ownHealth, others *reports.PeerHealth) Block {
	if others.Clients < domain.LeastPeers {
		return Text(fmt.Sprintf("There are too few other clients with active employees to compute an average. "+
			"At least %d are needed.", domain.LeastPeers))
	}
	counts, compared := map[any]int{}, 0
	for _, a := range areas(own, &others.Health) {
		if verdict := a.compare(); verdict != nil {
			counts[verdict]++
			compared++
		}
	}
	return sentences(
		ifAny(compared, "This client is better than the average of other clients in %d of %s and worse in %d.",
			counts[betterWord], quantity(compared, "area"), counts[worseWord]),
		fmt.Sprintf("The average covers your provider’s %s with active employees and weights them equally. "+
			"For a client without simulated emails, the click and report rates count as 0%%.", quantity(others.Clients, "other client")))
}

// percentage returns part as a percentage of whole, or nil if whole is 0.
func percentage(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	return new(domain.Percent(part, whole))
}

// recentlySent returns the number of simulated emails that the client's rates of the last 90 days are of.
func recentlySent(r *reading) int {
	recent := *r
	recent.period = domain.GlobalHealth.DefaultPeriod(domain.DateOf(r.tenant.Now()))
	sent := phishingTotal(read(&recent, reports.PhishedMonths.All)).Sent
	r.err = recent.err
	return sent
}

// ownHealth is the client's values for the comparison, and what its percentages are of: users, simulated emails of the
// last 90 days, signatures and requirements.
type ownHealth struct {
	domain.Health
	users, sent, asked, requirements int
}

// health returns the client's values. sent is the number of simulated emails of the last 90 days. A value is nil if there is nothing to relate it to, such as
// users, or if it needs Dark Web Monitoring, which is off.
func (n *numbers) health(sent int) ownHealth {
	users, summary := n.tenant.ActiveUsers, &n.tenant.Summary
	h := domain.Health{
		HighRisk: percentage(summary.HighRiskUsers, users),
		Signed:   percentage(n.signed, n.asked), FrameworksMet: percentage(n.met, n.requirements),
	}
	if users > 0 {
		h.AverageScore, h.OnTrack = new(float64(summary.AverageScore)), &summary.OnTrackRate
		h.ClickRate, h.ReportRate = &summary.ClickRate90d, &summary.ReportRate90d
		h.MailsPerUser = new(float64(n.phishing.Sent) / float64(users))
		if n.tenant.DarkWebMonitoring {
			h.ExposuresPer100 = new(100 * float64(n.darkWeb.Unresolved) / float64(users))
		}
	}
	return ownHealth{h, users, sent, n.asked, n.requirements}
}

// area is an area in which clients are compared. short is its name in the chart, for percentages, and of is the number
// of things that the client's percentage is of. own is the client's value, and other the average of the other clients;
// nil for no value.
type area struct {
	name, short Word
	unit        Word
	of          int
	better      direction
	own, other  *float64
}

// areas returns all areas, with the client's values and the averages of the others. Only percentages have a short name.
func areas(own *ownHealth, others *domain.Health) []area {
	const higher, lower = higherIsBetter, lowerIsBetter
	return []area{
		{"Average risk score", "", "points", 0, higher, own.AverageScore, others.AverageScore},
		{"High-risk users", "High risk", "%", own.users, lower, own.HighRisk, others.HighRisk},
		{"Users on track with training", "On track", "%", own.users, higher, own.OnTrack, others.OnTrack},
		{"Simulated mails sent per user", "", "mails", 0, higher, own.MailsPerUser, others.MailsPerUser},
		{"Click rate of the last 90 days", "Click rate", "%", own.sent, lower, own.ClickRate, others.ClickRate},
		{"Report rate of the last 90 days", "Report rate", "%", own.sent, higher, own.ReportRate, others.ReportRate},
		{"Unresolved exposures of 100 users", "", "exposures", 0, lower, own.ExposuresPer100, others.ExposuresPer100},
		{"Policies signed", "Policies signed", "%", own.asked, higher, own.Signed, others.Signed},
		{"Framework requirements met", "Requirements met", "%", own.requirements, higher, own.FrameworksMet, others.FrameworksMet},
	}
}

// healthTable returns a table of the areas.
func healthTable(own *ownHealth, others *domain.Health) Table {
	return Table{
		Title: "Areas compared",
		Columns: slices.Concat([]Column{{Title: "Area", Width: 4}, {Title: "Unit"}},
			numberColumns("This client", "Average of others"), []Column{{Title: "Compared", Width: 2}}),
		Rows: listRows(areas(own, others), func(a *area) []any {
			return []any{a.name, a.unit, a.cell(a.own), a.cell(a.other), a.compare()}
		}),
	}
}

// cell returns a value as a cell; nil for no value. Both percentages of an area are without decimals if the client's is
// of fewer than leastForDecimals things.
func (a *area) cell(value *float64) any {
	if value != nil && a.unit == "%" && a.of < leastForDecimals {
		return Whole(*value)
	}
	return valueOrNil(value)
}

// compare returns a cell that says whether the client is better or worse than others, or like others if both values are
// shown with the same text. It returns nil if a value is missing.
func (a *area) compare() any {
	switch {
	case a.own == nil || a.other == nil:
		return nil
	case textOf(a.cell(a.own)) == textOf(a.cell(a.other)):
		return Word("Like others")
	}
	return verdictCell(a.better.verdict(*a.own, *a.other))
}

// healthChart returns a chart of the areas that are percentages and have both values. It returns nil if there are fewer
// than two such areas, or if all values are 0.
func healthChart(own *ownHealth, others *domain.Health) Block {
	c := Chart{
		Kind: Bar, Title: "Rates compared", Unit: "%", Series: []Series{{Name: "This client"}, {Name: "Average of others"}},
	}
	for _, a := range areas(own, others) {
		if a.unit == "%" && a.own != nil && a.other != nil {
			c.Labels = append(c.Labels, textOf(a.short))
			c.Series[0].Values = append(c.Series[0].Values, *a.own)
			c.Series[1].Values = append(c.Series[1].Values, *a.other)
		}
	}
	if len(c.Labels) < 2 {
		return nil
	}
	return chartOrNil(c)
}
