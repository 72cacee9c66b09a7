package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// refreshes are what has to be made anew for a type before its snapshot, beside the
// client's summary.
var refreshes = map[domain.ReportType]func(t *db.Tenant, ctx context.Context) error{
	domain.ExecutiveSummary: (*db.Tenant).EvaluateStale,
	domain.ComplianceReport: (*db.Tenant).EvaluateStale,
	domain.GlobalHealth:     func(t *db.Tenant, ctx context.Context) error { return reports.RefreshPeers(ctx, t) },
}

// numbers are a client's numbers that several reports sum up, of a period where
// they are about one.
type numbers struct {
	score                domain.ClientSummary
	users                int
	phishing             domain.PhishingCounts
	training             domain.TrainingMonth
	exposures            domain.ExposureMonth
	scores               []domain.AverageOn
	signatures           int // that were given
	darkWeb              domain.DarkWeb
	policies             []domain.Policy
	frameworks           []domain.FrameworkAssignment
	requirements, met    int
	asked, signed        int
	policiesWithSignOffs int
}

// numbersIn reads what happened in a period.
func numbersIn(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (n numbers, err error) {
	months, err := reports.PhishedMonths(ctx, t, p)
	if err != nil {
		return n, err
	}
	n.phishing = phishingTotal(months)

	training, err := reports.TrainingMonths(ctx, t, p)
	if err != nil {
		return n, err
	}
	for _, m := range training {
		n.training.Assigned += m.Assigned
		n.training.Completed += m.Completed
	}
	if n.signatures, err = reports.CountSignatures(ctx, t, p); err != nil {
		return n, err
	}
	if n.scores, err = reports.Scores(ctx, t, p); err != nil || !t.DarkWebMonitoring {
		return n, err
	}

	exposures, err := reports.ExposureMonths(ctx, t, p)
	for _, m := range exposures {
		n.exposures.Found += m.Found
		n.exposures.Resolved += m.Resolved
	}
	return n, err
}

// standing adds where the client stands at the moment.
func (n *numbers) standing(ctx context.Context, t *db.Tenant) (err error) {
	n.score, n.users = t.Summary, t.ActiveUsers
	if t.DarkWebMonitoring {
		if n.darkWeb, err = t.DarkWeb(ctx); err != nil {
			return err
		}
	}

	if n.policies, err = reports.EveryPolicy(ctx, t); err != nil {
		return err
	}
	for _, p := range n.policies {
		if p.SignOff != nil {
			n.policiesWithSignOffs++
			n.asked += p.SignOff.Audience
			n.signed += p.SignOff.Acknowledged
		}
	}

	n.frameworks, err = frameworksOf(ctx, t)
	for _, f := range n.frameworks {
		n.met += f.Evaluation.Met
		n.requirements += f.Evaluation.Total
	}
	return err
}

// frameworksOf reads all framework assignments of the client.
func frameworksOf(ctx context.Context, t *db.Tenant) (all []domain.FrameworkAssignment, err error) {
	for w := (domain.Window{Limit: 100}); ; {
		page, err := t.Frameworks(ctx, nil, w)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Rows...)
		if !page.More {
			return all, nil
		}
		w.After = page.End
	}
}

// scoreFigure is the average score with its grade.
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

// gradeTones distinguish the grades from A to F in a chart.
var gradeTones = []Tone{Good, Neutral, Warning, Bad, Bad}

func gradeTone(grade domain.Grade) Tone {
	switch grade {
	case domain.GradeA, domain.GradeB:
		return Good
	case domain.GradeC:
		return Warning
	}
	return Bad
}

func onTrackFigure(t *db.Tenant) Figure {
	f := onTrackFigures(t)[0]
	if t.ActiveUsers > 0 {
		f.Note = "of active users, nothing overdue"
	}
	return f
}

func highRiskFigure(t *db.Tenant) Figure {
	return badIfAny(countFigure("High-risk users", t.Summary.HighRiskUsers, "of %s", plural(t.ActiveUsers, "active user")),
		t.Summary.HighRiskUsers)
}

// scoreChart draws average scores by day. One day is no trend, and without users
// there is no score but the one that every user begins with.
func scoreChart(t *db.Tenant, scores []domain.AverageOn) []Block {
	if len(scores) < 2 || t.ActiveUsers == 0 {
		return nil
	}
	c := Chart{Kind: Line, Title: "Average risk score by day", By: "Day", Series: []Series{{Name: "Average score"}}}
	for _, s := range scores {
		c.Labels, c.Keys = append(c.Labels, s.Date.Time().Format("2 Jan")), append(c.Keys, s.Date)
		c.Series[0].Values = append(c.Series[0].Values, float64(s.AverageScore))
	}
	return drawn(c)
}
