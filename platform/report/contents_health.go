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
	t, n := r.tenant, readNumbers(r, r.period)
	n.readState(r)
	others := read(r, reports.HealthOfPeers)
	intro := fmt.Sprintf("The average is that of the %s with active users that your provider serves, each of them "+
		"counted alike. A client that no simulated mail was sent to counts with rates of 0%%.",
		quantity(others.Clients, "other client"))
	if others.Clients < domain.LeastPeers {
		intro = fmt.Sprintf("There are too few other clients with active users for an average: it takes %d.",
			domain.LeastPeers)
	}
	own := n.health()
	return []Section{
		section("Summary", noUsersNote(t.ActiveUsers), Text(intro), Figures{
			scoreFigure(t), highRiskFigure(t), onTrackFigure(t),
			clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
		}, healthChart(&own, &others.Health)),
		section("Compared with other clients", healthTable(&own, &others.Health)),
		section("Numbers", Figures{
			countFigure("Active users", t.ActiveUsers, ""),
			countFigure("Courses completed", n.training.Completed, "in this period"),
			countFigure("Simulated mails sent", n.phishing.Sent, "in this period"),
			reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
		}, append(n.exposureFigures(),
			signedFigure(n.signed, n.asked),
			metFigure("Framework requirements", n.met, n.requirements))),
	}
}

// percentage returns part as a percentage of whole, or nil if whole is 0.
func percentage(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	return new(domain.Percent(part, whole))
}

// health returns the client's values for the comparison. A value is nil if there is nothing to relate it to, such as
// users, or if it needs Dark Web Monitoring, which is off.
func (n *numbers) health() domain.Health {
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
	return h
}

// area is an area in which clients are compared. short is its name in the chart, for percentages. own is the client's
// value, and other the average of the other clients; nil for no value.
type area struct {
	name, short   string
	unit          string
	lowerIsBetter bool
	own, other    *float64
}

// areas returns all areas, with the client's values and the averages of the others. Only percentages have a short name.
func areas(own, others *domain.Health) []area {
	const higher, lower = false, true // the values of lowerIsBetter
	return []area{
		{"Average risk score", "", "points", higher, own.AverageScore, others.AverageScore},
		{"High-risk users", "High-risk users", "%", lower, own.HighRisk, others.HighRisk},
		{"Users on track with training", "On track", "%", higher, own.OnTrack, others.OnTrack},
		{"Simulated mails sent per user", "", "mails", higher, own.MailsPerUser, others.MailsPerUser},
		{"Click rate of the last 90 days", "Click rate", "%", lower, own.ClickRate, others.ClickRate},
		{"Report rate of the last 90 days", "Report rate", "%", higher, own.ReportRate, others.ReportRate},
		{"Unresolved exposures of 100 users", "", "exposures", lower, own.ExposuresPer100, others.ExposuresPer100},
		{"Policies signed", "Policies signed", "%", higher, own.Signed, others.Signed},
		{"Framework requirements met", "Requirements met", "%", higher, own.FrameworksMet, others.FrameworksMet},
	}
}

// healthTable returns a table of the areas.
func healthTable(own, others *domain.Health) Table {
	return Table{
		Title: "Areas compared",
		Columns: slices.Concat([]Column{{Title: "Area", Width: 4}, {Title: "Unit"}},
			numberColumns("This client", "Average of others"), []Column{{Title: "Compared", Width: 2}}),
		Rows: listRows(areas(own, others), func(a *area) []any {
			return []any{a.name, a.unit, valueOrNil(a.own), valueOrNil(a.other), a.compare()}
		}),
	}
}

// compare returns a cell that says whether the client is better or worse than others, or like others if both values are
// shown with the same text. It returns nil if a value is missing.
func (a *area) compare() any {
	if a.own == nil || a.other == nil {
		return nil
	}
	switch {
	case textOf(*a.own) == textOf(*a.other):
		return "Like others"
	case *a.own < *a.other == a.lowerIsBetter:
		return "Better"
	}
	return "Worse"
}

// healthChart returns a chart of the areas that are percentages and have both values. It returns nil if there are fewer
// than two such areas, or if all values are 0.
func healthChart(own, others *domain.Health) Block {
	c := Chart{
		Kind: Bar, Title: "Rates compared", Unit: "%", Series: []Series{{Name: "This client"}, {Name: "Average of others"}},
	}
	for _, a := range areas(own, others) {
		if a.unit == "%" && a.own != nil && a.other != nil {
			c.Labels = append(c.Labels, a.short)
			c.Series[0].Values = append(c.Series[0].Values, *a.own)
			c.Series[1].Values = append(c.Series[1].Values, *a.other)
		}
	}
	if len(c.Labels) < 2 {
		return nil
	}
	return chartOrNil(c)
}
