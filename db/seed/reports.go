package seed

import "partnerapi/domain"

// addShowcaseReports adds a report that failed, and some that wait to be made.
// Whoever serves the demonstration makes those of earlier days before it begins, so
// that they are ready, and the one of yesterday in the background.
func (g *generator) addShowcaseReports(c *client) {
	for _, r := range []struct {
		kind    domain.ReportType
		format  domain.ReportFormat
		status  domain.ReportStatus
		daysAgo int
	}{
		{domain.ExecutiveSummary, domain.PDF, domain.ReportPending, 40},
		{domain.PhishingPerformance, domain.XLSX, domain.ReportPending, 20},
		{domain.TrainingPerformance, domain.XLSX, domain.ReportFailed, 12},
		{domain.MonthlyReport, domain.PDF, domain.ReportPending, 4},
		{domain.RiskOverview, domain.PDF, domain.ReportPending, 1},
	} {
		day := g.today.AddDays(-r.daysAgo)
		at := g.at(day)
		report := domain.Report{
			ID: newID[domain.ReportKind](g.random, at), Client: c.ID, Type: r.kind, Format: r.format, Status: r.status,
			CreatedAt: at, UpdatedAt: at,
		}
		if r.kind.HasPeriod() {
			report.Period = new(r.kind.DefaultPeriod(day))
		}
		c.reports = append(c.reports, report)
	}
}
