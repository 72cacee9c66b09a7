package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// refreshes are functions to call before the snapshot of a report of a type. They refresh stored results that the
// report shows: evaluations of frameworks, or what averages of other clients are computed from.
var refreshes = map[domain.ReportType]func(t *db.Tenant, ctx context.Context) error{
	domain.ExecutiveSummary: (*db.Tenant).EvaluateStale,
	domain.ComplianceReport: (*db.Tenant).EvaluateStale,
	domain.GlobalHealth:     func(t *db.Tenant, ctx context.Context) error { return reports.RefreshPeers(ctx, t) },
}

// numbers are numbers of a client that several reports show: counts of events in a period (set by readNumbers), and the
// current state (set by readState).
type numbers struct {
	tenant *db.Tenant

	// in the period
	phishing   domain.PhishingCounts
	training   domain.TrainingMonth
	exposures  domain.ExposureMonth
	scores     []domain.AverageOn
	signatures int // the number given

	// current
	darkWeb           domain.DarkWeb
	frameworks        []framework
	requirements, met int // of frameworks
	asked, signed     int // the signatures that policies require, and the valid ones
}

// readNumbers reads the counts of events in p; r.period is p meanwhile. It reads exposures only with Dark Web
// Monitoring.
func readNumbers(r *reading, p domain.ReportPeriod) (n numbers) {
	period := r.period
	n.tenant, r.period = r.tenant, p
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

// readState reads the client's current state into n. It reads exposures only with Dark Web Monitoring.
func (n *numbers) readState(r *reading) {
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

// completedFigure returns the figure of the courses completed in the period, compared with the period before.
func (n *numbers) completedFigure(earlier *numbers) Figure {
	return trainedFigure("Courses completed", n.training.Completed, earlier.training.Completed, earlier.training,
		"%d assigned in this period", n.training.Assigned)
}

// clickFigure and reportFigure return the figures of the click and the report rate, compared with the period before.
func (n *numbers) clickFigure(earlier *numbers) Figure {
	return clickFigures(n.phishing, earlier.phishing)[0]
}
func (n *numbers) reportFigure(earlier *numbers) Figure {
	return clickFigures(n.phishing, earlier.phishing)[1]
}

// scoreFigure returns the figure of the average score, with the tone and the grade of the score. Without active users
// it has neither.
func scoreFigure(t *db.Tenant) Figure {
	if t.ActiveUsers == 0 {
		return Figure{Label: "Average risk score", Value: t.Summary.AverageScore, Note: "no active employees"}
	}
	grade := domain.GradeOf(t.Summary.AverageScore)
	return Figure{
		Label: "Average risk score", Value: t.Summary.AverageScore, Tone: gradeTone(grade),
		Note: "grade " + string(grade) + " on a scale of A to F",
	}
}

// gradeTones are the tones of the grades A, B, C, D and F in a chart, where A and B differ.
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

// onTrackFigure returns the first figure of onTrackFigures, the rate of users on track, with a note that says what it
// means.
func onTrackFigure(t *db.Tenant) Figure {
	f := onTrackFigures(t)[0]
	if t.ActiveUsers > 0 {
		f.Note = "of active employees"
	}
	return f
}

// highRiskFigure returns the figure of the number of high-risk users.
func highRiskFigure(t *db.Tenant) Figure {
	users := t.Summary.HighRiskUsers
	return badIfAny(countFigure("High-risk employees", users, "of %s", quantity(t.ActiveUsers, "active employee")), users)
}

// scoreChart returns a chart of average scores by day. It returns nil for fewer than two days, and if there are no
// active users: the average is then only the initial score.
func scoreChart(t *db.Tenant, scores []domain.AverageOn) Block {
	if len(scores) < 2 || t.ActiveUsers == 0 {
		return nil
	}
	c := Chart{
		Kind: Line, Title: "Average risk score by day", By: "Day", Series: []Series{{Name: "Average score"}}, Grades: true,
	}
	for _, s := range scores {
		c.Labels, c.Keys = append(c.Labels, s.Date.Time().Format("2 Jan")), append(c.Keys, s.Date)
		c.Series[0].Values = append(c.Series[0].Values, float64(s.AverageScore))
	}
	return chartOrNil(c)
}
