package report

import (
	"fmt"
	"slices"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// globalHealth returns the contents of a report that compares the client with the average of the partner's other
// clients. There is no average of fewer than domain.LeastPeers clients.
func globalHealth(r *reading) []Section {
	t, n := r.tenant, numbersIn(r, r.period)
	n.standing(r)
	others := read(r, reports.HealthOfPeers)
	intro := fmt.Sprintf("The average is that of the %s with active users that your provider serves, each of them "+
		"counted alike. A client that no simulated mail was sent to counts with rates of 0%%.",
		plural(others.Clients, "other client"))
	if others.Clients < domain.LeastPeers {
		intro = fmt.Sprintf("There are too few other clients with active users for an average: it takes %d.",
			domain.LeastPeers)
	}
	own := n.health(t)
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), Text(intro), Figures{
			scoreFigure(t), highRiskFigure(t), onTrackFigure(t),
			clickFigure(n.phishing.Clicked, n.phishing.Sent, "simulated mail"),
		}, healthChart(&own, &others.Health)),
		section("Compared with other clients", healthTable(&own, &others.Health)),
		section("Numbers", Figures{
			countFigure("Active users", t.ActiveUsers, ""),
			countFigure("Courses completed", n.training.Completed, "in this period"),
			countFigure("Simulated mails sent", n.phishing.Sent, "in this period"),
			reportFigure(n.phishing.Reported, n.phishing.Sent, "simulated mail"),
		}, append(n.exposureFigures(t),
			signedFigure(n.signed, n.asked),
			met("Framework requirements", n.met, n.requirements))),
	}
}

// percentage returns part of whole in percent; nil if whole is 0.
func percentage(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	return new(domain.Percent(part, whole))
}

// health returns the client's values for the comparison; nil for values without a base, such as active users.
func (n *numbers) health(t *db.Tenant) domain.Health {
	h := domain.Health{
		HighRisk: percentage(n.score.HighRiskUsers, n.users),
		Signed:   percentage(n.signed, n.asked), FrameworksMet: percentage(n.met, n.requirements),
	}
	if n.users > 0 {
		h.AverageScore, h.OnTrack = new(float64(n.score.AverageScore)), &n.score.OnTrackRate
		h.ClickRate, h.ReportRate = &n.score.ClickRate90d, &n.score.ReportRate90d
		h.MailsPerUser = new(float64(n.phishing.Sent) / float64(n.users))
		if t.DarkWebMonitoring {
			h.ExposuresPer100 = new(100 * float64(n.darkWeb.Unresolved) / float64(n.users))
		}
	}
	return h
}

// area is an area of a comparison. short is the name in the chart; own and other are nil for no value.
type area struct {
	name, short   string
	unit          string
	lowerIsBetter bool
	own, other    *float64
}

// areas returns all areas, with the client's values and the averages of the others.
func areas(own, others *domain.Health) []area {
	return []area{
		{"Average risk score", "", "points", false, own.AverageScore, others.AverageScore},
		{"High-risk users", "High-risk users", "%", true, own.HighRisk, others.HighRisk},
		{"Users on track with training", "On track", "%", false, own.OnTrack, others.OnTrack},
		{"Simulated mails sent per user", "", "mails", false, own.MailsPerUser, others.MailsPerUser},
		{"Click rate of the last 90 days", "Click rate", "%", true, own.ClickRate, others.ClickRate},
		{"Report rate of the last 90 days", "Report rate", "%", false, own.ReportRate, others.ReportRate},
		{"Unresolved exposures of 100 users", "", "exposures", true, own.ExposuresPer100, others.ExposuresPer100},
		{"Policies signed", "Policies signed", "%", false, own.Signed, others.Signed},
		{"Framework requirements met", "Requirements met", "%", false, own.FrameworksMet, others.FrameworksMet},
	}
}

// healthTable returns a table of the areas.
func healthTable(own, others *domain.Health) Table {
	return Table{
		Title: "Areas compared",
		Columns: slices.Concat([]Column{{Title: "Area", Width: 4}, {Title: "Unit"}},
			numberColumns("This client", "Average of others"), []Column{{Title: "Compared", Width: 2}}),
		Rows: listed(areas(own, others), func(a *area) []any {
			return []any{a.name, a.unit, optional(a.own), optional(a.other), a.compared()}
		}),
	}
}

// compared returns the cell of the comparison: better, worse or, if both values are equal as text, like others; nil if
// a value is missing.
func (a *area) compared() any {
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

// healthChart returns a chart of the areas that are percentages and have both values; nil if there are fewer than two.
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
	return unlessEmpty(c)
}
