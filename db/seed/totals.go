package seed

import (
	"cmp"
	"slices"
	"time"

	"partnerapi/domain"
)

// figures are the sums from which the summary of a client is computed, in addition to the counters of its row.
type figures struct {
	scores               int   // the sum of the scores of active users
	days90, days365, all mails // the emails sent in the last 90 and 365 days, and all
	// joined[n] is the number of active users who were created n days ago; the last element includes all older ones.
	joined [historyDays]int
}

// emails are numbers of simulated emails.
type mails struct{ sent, clicked, reported int }

// count computes the totals of users, and adds them to the counters of the client and to the sums for its summary. Each
// user must be counted once.
func (c *client) count(users []*user, today domain.Date) {
	for _, u := range users {
		u.computeTotals(today)
		c.UpdatedAt = latestTime(c.UpdatedAt, u.UpdatedAt)
		c.countMails(u.simulations, today)
		if u.Status != domain.Active {
			c.InactiveUsers++
			continue
		}
		c.ActiveUsers++
		age := max(domain.DateOf(u.CreatedAt).DaysUntil(today), 0) // an index of c.joined
		c.joined[min(age, historyDays-1)]++                        // the last element includes all older users
		c.scores += u.Score
		countIf(&c.Summary.HighRiskUsers, u.Score < domain.HighRiskBelow)
		countIf(&c.Summary.OverdueUsers, !u.NextDueOn.IsZero() && u.NextDueOn.Before(today))
	}
}

// countMails adds simulated emails to the sums of their periods.
func (c *client) countMails(simulations []simulation, today domain.Date) {
	for i := range simulations {
		s := &simulations[i]
		c.all.count(s, 1<<20, today) // more days than an email can be old
		c.days365.count(s, 365, today)
		c.days90.count(s, 90, today)
	}
}

// count adds an email if it was sent within the last days, including today.
func (m *mails) count(s *simulation, days int, today domain.Date) {
	if s.sentWithin(days, today) {
		m.sent++
		countIf(&m.clicked, s.countsAsClick())
		countIf(&m.reported, s.Reported)
	}
}

// computeTotals computes the totals in the client's row, after all of its users were counted. The rules are those by
// which package db computes them.
func (c *client) computeTotals(today domain.Date) {
	for _, f := range c.frameworks {
		c.Frameworks = append(c.Frameworks, f.FrameworkID)
	}
	slices.Sort(c.Frameworks)
	c.Frameworks = slices.Compact(c.Frameworks)

	s := &c.Summary
	empty := domain.EmptySummary(today.AddDays(-1).Time()) // stale, so that the first read stores the client's risk
	s.At, s.OnTrackRate = empty.At, empty.OnTrackRate
	s.AverageScore = domain.AverageScore(c.scores, c.ActiveUsers)
	if c.ActiveUsers > 0 {
		s.OnTrackRate = domain.Percent(c.ActiveUsers-s.OverdueUsers, c.ActiveUsers)
		s.ClickRate90d = domain.Percent(c.days90.clicked, c.days90.sent)
		s.ReportRate90d = domain.Percent(c.days90.reported, c.days90.sent)
		s.ClickRate365d = domain.Percent(c.days365.clicked, c.days365.sent)
		s.ClickRateTotal = domain.Percent(c.all.clicked, c.all.sent)
	}
}

// countIf increments n if condition is true.
func countIf(n *int, condition bool) {
	if condition {
		*n++
	}
}

// sentWithin reports whether the email was sent within the last days, including today.
func (s *simulation) sentWithin(days int, today domain.Date) bool {
	return s.SentAt != nil && domain.DateOf(*s.SentAt).DaysUntil(today) < days
}

// computeTotals computes the totals in the user's row, and the risk, from the user's other rows. It also sets the row's
// NameKey and UpdatedAt.
func (u *user) computeTotals(today domain.Date) {
	u.NameKey, u.UpdatedAt = domain.SortKey(domain.FullName(u.FirstName, u.LastName)), u.CreatedAt
	u.SetSortKeys()
	var s domain.RiskSignals
	u.countSimulations(&s, today)
	u.countTraining(&s, today)
	u.countReports(&s)
	u.countExposures(&s, today)

	a := domain.Assess(u.Role, s, today)
	u.Score = a.Score
	u.risk = risk{owner: u.owner(), Model: domain.RiskModelVersion, Baseline: a.Baseline, Tallies: a.Tallies,
		ComputedOn: today, ComputedAt: today.Time()}
	for _, delta := range a.Deltas {
		u.risk.Deltas = append(u.risk.Deltas, int16(delta))
	}
}

// countSimulations counts the user's simulated emails, ever and in 365 days, adds the signals, and raises UpdatedAt.
func (u *user) countSimulations(s *domain.RiskSignals, today domain.Date) {
	for i := range u.simulations {
		mail := &u.simulations[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, mail.UpdatedAt)
		if mail.SentAt == nil {
			continue
		}
		inYear := mail.sentWithin(365, today)
		u.Phishing.Sent++
		countIf(&u.Phishing.SentYear, inYear)
		countIf(&u.Phishing.Clicked, mail.countsAsClick())
		countIf(&u.Phishing.ClickedYear, inYear && mail.countsAsClick())
		appendDay(&s.Reports, mail.ReportedAt)
		appendDay(&s.Clicks, mail.ClickedAt)
		appendDay(&s.Attachments, mail.AttachmentOpenedAt)
		appendDay(&s.Credentials, mail.CredentialsSubmittedAt)
	}
}

// appendDay appends the day of a time, if there is one.
func appendDay(days *[]domain.Date, at *time.Time) {
	if at != nil {
		*days = append(*days, domain.DateOf(*at))
	}
}

// countTraining finds the next course, notes which due dates have passed, adds the signals, and raises UpdatedAt.
func (u *user) countTraining(s *domain.RiskSignals, today domain.Date) {
	var next *assignment
	for i := range u.training {
		a := &u.training[i]
		a.OverdueNoted = a.DueOn.Before(today) // a noted course causes no event
		u.UpdatedAt = latestTime(u.UpdatedAt, a.AssignedAt, a.CompletedAt)
		if !a.CompletedAt.IsZero() {
			appendDay(&s.Completions, &a.CompletedAt)
			continue
		}
		if a.OverdueNoted {
			u.UpdatedAt = latestTime(u.UpdatedAt, a.DueOn.AddDays(1).Time()) // the time at which it became overdue
		}
		if next == nil || a.compareDue(next) < 0 {
			next = a
		}
	}
	if next != nil {
		u.NextCourseID, u.NextDueOn = &next.CourseID, next.DueOn
	}
	s.Dormant = domain.DormantOnTraining(next != nil, s.Completions, domain.DateOf(u.CreatedAt), today)
}

// compareDue orders incomplete assignments by due date, position and course. The first one is the user's next course.
func (a *assignment) compareDue(b *assignment) int {
	return cmp.Or(b.DueOn.DaysUntil(a.DueOn), cmp.Compare(a.Position, b.Position), // negative if a is due earlier
		slices.Compare(a.CourseID[:], b.CourseID[:]))
}

// countReports adds the signals of the user's reports of real emails, and raises UpdatedAt.
func (u *user) countReports(s *domain.RiskSignals) {
	for i := range u.reported {
		mail := &u.reported[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, mail.UpdatedAt)
		days := &s.RealHarmless
		switch mail.Classification {
		case domain.ClassPhishing:
			days = &s.RealPhishing
		case domain.ClassPending:
			days = &s.RealPending
		}
		appendDay(days, &mail.ReportedAt)
	}
}

// countExposures adds the signals of the user's exposures, and raises UpdatedAt. Critical exposures are of passwords,
// high ones of personal data, medium ones of basic data.
func (u *user) countExposures(s *domain.RiskSignals, today domain.Date) {
	for i := range u.exposures {
		e := &u.exposures[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, e.FirstSeenAt, domain.OrZero(e.ResolvedAt))
		open := e.ResolvedAt == nil
		recent := domain.DateOf(e.FirstSeenAt).DaysUntil(today) <= 365
		switch e.Severity {
		case domain.SeverityCritical:
			countIf(&s.UnresolvedCritical, open)
			countIf(&s.SeenPasswordActive, open && recent)
			countIf(&s.SeenPasswordResolved, !open && recent)
		case domain.SeverityHigh:
			countIf(&s.UnresolvedHigh, open)
			countIf(&s.SeenPII, open && recent)
		case domain.SeverityMedium:
			countIf(&s.UnresolvedMedium, open)
			countIf(&s.SeenBasic, open && recent)
		}
	}
}
