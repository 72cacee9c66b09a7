package seed

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// addShowcaseReports adds a failed report and several pending ones. The process that serves the demonstration makes the
// reports that are older than a day before it starts to serve, and yesterday's report in the background.
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
		report := db.ReportRow{Report: domain.Report{
			Client: c.ID, ID: newID[domain.ReportKind](g.random, at), Type: r.kind, Format: r.format, Status: r.status,
			CreatedAt: at, UpdatedAt: at,
		}}
		if r.kind.HasPeriod() {
			period := r.kind.DefaultPeriod(day)
			report.PeriodStart, report.PeriodEnd = period.Start, period.End
		}
		c.reports = append(c.reports, report)
	}

	// The documentation names a report, but the values of g depend on leap years. So the ids and times above are
	// replaced with those of another stream. They are drawn nevertheless, to keep the later values of g as they were.
	ids := newRandom(reportStream, 0)
	ids.shift = g.shift
	for i := range c.reports {
		r := &c.reports[i]
		r.CreatedAt = ids.at(domain.DateOf(r.CreatedAt))
		r.ID, r.UpdatedAt = newID[domain.ReportKind](ids, r.CreatedAt), r.CreatedAt
	}
}
