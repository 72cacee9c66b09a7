package domain

// Previous is the period of the same length before p: the month before, where p is
// a calendar month.
func (p ReportPeriod) Previous() ReportPeriod {
	end := p.Start.AddDays(-1)
	if p.Start == monthOf(p.Start) && p.End.AddDays(1) == monthOf(p.Start.AddDays(31)) {
		return ReportPeriod{Start: monthOf(end), End: end}
	}
	return ReportPeriod{Start: end.AddDays(-p.Start.DaysUntil(p.End)), End: end}
}

// Health is what clients are compared by. A field is nil where there is nothing to
// compare; rates are percentages.
type Health struct {
	AverageScore *float64
	// HighRisk is how many of the active users are of high risk.
	HighRisk, OnTrack *float64
	// The phishing rates are those of the client's summary, of the last 90 days;
	// MailsPerUser is how many mails an active user was sent in a period.
	MailsPerUser, ClickRate, ReportRate *float64
	// ExposuresPer100 are the unresolved exposures of 100 active users, of clients
	// with Dark Web Monitoring.
	ExposuresPer100 *float64
	// Signed is how many of the signatures that policies ask for are there.
	Signed *float64
	// FrameworksMet is how many of the requirements of frameworks are met.
	FrameworksMet *float64
}

// LeastPeers is how many other clients it takes to show their averages.
const LeastPeers = 3
