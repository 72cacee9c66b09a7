package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// refreshes are called before the snapshot of a report of a type. They refresh stored
// results that the type shows: evaluations of frameworks, or other clients' averages.
var refreshes = map[domain.ReportType]func(t *db.Tenant, ctx context.Context) error{
	domain.ExecutiveSummary: (*db.Tenant).EvaluateStale,
	domain.ComplianceReport: (*db.Tenant).EvaluateStale,
	domain.GlobalHealth:     func(t *db.Tenant, ctx context.Context) error { return reports.RefreshPeers(ctx, t) },
}

// numbers are numbers of a client that several reports show: events of a period (set by
// numbersIn) and the current state (set by standing).
type numbers struct {
	score             domain.ClientSummary
	users             int
	phishing          domain.PhishingCounts
	training          domain.TrainingMonth
	exposures         domain.ExposureMonth
	scores            []domain.AverageOn
	signatures        int // given in the period
	darkWeb           domain.DarkWeb
	frameworks        []domain.FrameworkAssignment
	requirements, met int
	asked, signed     int
}

// numbersIn reads the numbers of events in p, which need not be the reading's period. Exposures are read only with Dark
// Web Monitoring.
func numbersIn(r *reading, p domain.ReportPeriod) (n numbers) {
	period := r.period
	r.period = p
	n.phishing = phishingTotal(read(r, reports.PhishedMonths.All))
	n.training = trainingTotal(read(r, reports.TrainingMonths.All))
	n.signatures = read(r, reports.SignatureCount.One)
	n.scores = read(r, reports.Scores.All)
	if r.tenant.DarkWebMonitoring {
		n.exposures = exposureTotal(read(r, reports.ExposureMonths.All))
	}
	r.period = period
	return n
}

// standing sets the numbers of the client's current state.
func (n *numbers) standing(r *reading) {
	n.score, n.users = r.tenant.Summary, r.tenant.ActiveUsers
	if r.tenant.DarkWebMonitoring {
		n.darkWeb = current(r, (*db.Tenant).DarkWeb)
	}
	for _, p := range policiesOf(r) {
		if p.SignOff != nil {
			n.asked += p.SignOff.Audience
			n.signed += p.SignOff.Acknowledged
		}
	}
	n.frameworks = frameworksOf(r)
	for _, f := range n.frameworks {
		n.met += f.Evaluation.Met
		n.requirements += f.Evaluation.Total
	}
}

// frameworksOf reads all framework assignments of the client.
func frameworksOf(r *reading) (all []domain.FrameworkAssignment) {
	for w := (domain.Window{Limit: 100}); ; {
		page := current(r, func(t *db.Tenant, ctx context.Context) (domain.Slice[domain.FrameworkAssignment], error) {
			return t.Frameworks(ctx, nil, w)
		})
		all = append(all, page.Rows...)
		if !page.More {
			return all
		}
		w.After = page.End
	}
}

// scoreFigure returns the average score with its grade; without active users, without tone and grade.
func scoreFigure(t *db.Tenant) Figure {
	if t.ActiveUsers == 0 {
		return Figure{Label: "Average risk score", Value: t.Summary.AverageScore, Note: "no active users"}
	}
	grade := domain.GradeOf(t.Summary.AverageScore)
	return Figure{
		Label: "Average risk score", Value: t.Summary.AverageScore, Tone: gradeTone(grade),
		Note: "grade " + string(grade) + " of A to F",
	}
}

// gradeTones are the tones of the grades A, B, C, D and F in a chart.
var gradeTones = []Tone{Good, Neutral, Warning, Bad, Bad}

// gradeTone returns the tone of a figure with a grade.
func gradeTone(grade domain.Grade) Tone {
	switch grade {
	case domain.GradeA, domain.GradeB:
		return Good
	case domain.GradeC:
		return Warning
	}
	return Bad
}

// onTrackFigure returns the rate of active users on track, with another note than onTrackFigures.
func onTrackFigure(t *db.Tenant) Figure {
	f := onTrackFigures(t)[0]
	if t.ActiveUsers > 0 {
		f.Note = "of active users, nothing overdue"
	}
	return f
}

// highRiskFigure returns the number of high-risk users, which is bad unless it is 0.
func highRiskFigure(t *db.Tenant) Figure {
	return badIfAny(countFigure("High-risk users", t.Summary.HighRiskUsers, "of %s", plural(t.ActiveUsers, "active user")),
		t.Summary.HighRiskUsers)
}

// scoreChart returns a chart of average scores by day. It returns nil for fewer than two
// days, and without active users, because the average is then only the initial score.
func scoreChart(t *db.Tenant, scores []domain.AverageOn) Block {
	if len(scores) < 2 || t.ActiveUsers == 0 {
		return nil
	}
	c := Chart{Kind: Line, Title: "Average risk score by day", By: "Day", Series: []Series{{Name: "Average score"}}}
	for _, s := range scores {
		c.Labels, c.Keys = append(c.Labels, s.Date.Time().Format("2 Jan")), append(c.Keys, s.Date)
		c.Series[0].Values = append(c.Series[0].Values, float64(s.AverageScore))
	}
	return unlessEmpty(c)
}
