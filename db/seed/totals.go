package seed

import (
	"cmp"
	"slices"
	"time"

	"partnerapi/domain"
)

// computeTotals derives what is stored of a client and its users beside their rows:
// scores, counters, next courses, counts by day and the summary. The rules are
// those by which db keeps the same values.
func (c *client) computeTotals(today domain.Date) {
	days := make(map[domain.Date]*phishingDay)
	for _, u := range c.users {
		u.computeTotals(today)
		for i := range u.simulations {
			countByDay(days, &u.simulations[i])
		}
		c.UpdatedAt = latestTime(c.UpdatedAt, u.UpdatedAt)
	}
	for _, day := range days {
		c.days = append(c.days, *day)
	}
	slices.SortFunc(c.days, func(a, b phishingDay) int { return b.day.DaysUntil(a.day) })
	for i := range c.uses {
		c.Frameworks = append(c.Frameworks, c.uses[i].framework)
	}
	slices.Sort(c.Frameworks)
	c.Frameworks = slices.Compact(c.Frameworks)
	c.computeSummary(today)
}

// countByDay adds a mail to the day that it was sent on. What a mail scanner did
// counts nowhere, the mail and its report do (decisions 7.3).
func countByDay(days map[domain.Date]*phishingDay, s *simulation) {
	if s.sentAt.IsZero() {
		return
	}
	on := domain.DateOf(s.sentAt)
	day := days[on]
	if day == nil {
		day = &phishingDay{day: on}
		days[on] = day
	}
	day.sent++
	countIf(&day.reported, !s.reportedAt.IsZero())
	countIf(&day.opened, !s.openedAt.IsZero() || s.countsAsClick())
	countIf(&day.clicked, s.countsAsClick())
	countIf(&day.attachments, !s.attachmentAt.IsZero())
	countIf(&day.credentials, !s.credentialsAt.IsZero())
}

func countIf(n *int, happened bool) {
	if happened {
		*n++
	}
}

func (c *client) computeSummary(today domain.Date) {
	s := domain.EmptySummary(today.AddDays(-1).Time()) // stale: the first read stores what the risk is made of
	scores := 0
	for _, u := range c.users {
		if u.Status != domain.Active {
			c.InactiveUsers++
			continue
		}
		c.ActiveUsers++
		scores += u.Score
		countIf(&s.HighRiskUsers, u.Score < domain.HighRiskBelow)
		countIf(&s.OverdueUsers, u.Training.Next != nil && u.Training.Next.DueOn.Before(today))
	}
	s.AverageScore = domain.AverageScore(scores, c.ActiveUsers)
	if c.Summary = s; c.ActiveUsers == 0 {
		return
	}
	s.OnTrackRate = domain.Percent(c.ActiveUsers-s.OverdueUsers, c.ActiveUsers)
	quarter, year, ever := c.phishingTotals(today, 90), c.phishingTotals(today, 365), c.phishingTotals(today, 1<<20)
	s.ClickRate90d = domain.Percent(quarter.clicked, quarter.sent)
	s.ReportRate90d = domain.Percent(quarter.reported, quarter.sent)
	s.ClickRate365d = domain.Percent(year.clicked, year.sent)
	s.ClickRateTotal = domain.Percent(ever.clicked, ever.sent)
	c.Summary = s
}

// phishingTotals adds up the last days, today included.
func (c *client) phishingTotals(today domain.Date, days int) (sum phishingDay) {
	for i := range c.days {
		if day := &c.days[i]; day.day.DaysUntil(today) < days {
			sum.sent += day.sent
			sum.clicked += day.clicked
			sum.reported += day.reported
		}
	}
	return sum
}

func (u *user) computeTotals(today domain.Date) {
	u.UpdatedAt = u.CreatedAt
	var s domain.RiskSignals
	u.countSimulations(&s, today)
	u.countTraining(&s, today)
	u.countReports(&s)
	u.countExposures(&s, today)
	u.risk = domain.Assess(u.Role, s, today)
	u.Score = u.risk.Score
}

func (u *user) countSimulations(s *domain.RiskSignals, today domain.Date) {
	for i := range u.simulations {
		mail := &u.simulations[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, mail.updatedAt())
		if mail.sentAt.IsZero() {
			continue
		}
		thisYear := domain.DateOf(mail.sentAt).DaysUntil(today) < 365
		u.Phishing.Sent++
		countIf(&u.Phishing.SentYear, thisYear)
		countIf(&u.Phishing.Clicked, mail.countsAsClick())
		countIf(&u.Phishing.ClickedYear, thisYear && mail.countsAsClick())
		appendDay(&s.Reports, mail.reportedAt)
		appendDay(&s.Clicks, mail.clickedAt)
		appendDay(&s.Attachments, mail.attachmentAt)
		appendDay(&s.Credentials, mail.credentialsAt)
	}
}

// appendDay adds the day of what happened to a list.
func appendDay(days *[]domain.Date, at time.Time) {
	if !at.IsZero() {
		*days = append(*days, domain.DateOf(at))
	}
}

func (u *user) countTraining(s *domain.RiskSignals, today domain.Date) {
	var next *assignment
	for i := range u.training {
		a := &u.training[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, a.assignedAt, a.completedAt)
		if a.completedAt.IsZero() && a.dueOn.Before(today) {
			u.UpdatedAt = latestTime(u.UpdatedAt, a.dueOn.AddDays(1).Time()) // when it became overdue
		}
		appendDay(&s.Completions, a.completedAt)
		if a.completedAt.IsZero() && (next == nil || a.compareDue(next) < 0) {
			next = a
		}
	}
	if next != nil {
		u.Training.Next = &domain.NextCourse{Course: next.course, DueOn: next.dueOn}
	}
	s.Dormant = domain.DormantOnTraining(next != nil, s.Completions, domain.DateOf(u.CreatedAt), today)
}

// compareDue orders incomplete assignments: the first is the user's next.
func (a *assignment) compareDue(b *assignment) int {
	return cmp.Or(b.dueOn.DaysUntil(a.dueOn), cmp.Compare(a.position, b.position),
		slices.Compare(a.course[:], b.course[:]))
}

func (u *user) countReports(s *domain.RiskSignals) {
	for i := range u.reported {
		mail := &u.reported[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, mail.reportedAt, mail.classifiedAt)
		switch mail.classification {
		case "phishing":
			appendDay(&s.RealPhishing, mail.reportedAt)
		case "pending":
			appendDay(&s.RealPending, mail.reportedAt)
		default:
			appendDay(&s.RealHarmless, mail.reportedAt)
		}
	}
}

func (u *user) countExposures(s *domain.RiskSignals, today domain.Date) {
	for i := range u.exposures {
		e := &u.exposures[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, e.seenAt, e.resolvedAt)
		open := e.resolvedAt.IsZero()
		seen := domain.DateOf(e.seenAt).DaysUntil(today) <= 365
		switch e.breach.severity {
		case domain.SeverityCritical:
			countIf(&s.UnresolvedCritical, open)
			countIf(&s.SeenPasswordActive, open && seen)
			countIf(&s.SeenPasswordResolved, !open && seen)
		case domain.SeverityHigh:
			countIf(&s.UnresolvedHigh, open)
			countIf(&s.SeenPII, open && seen)
		case domain.SeverityMedium:
			countIf(&s.UnresolvedMedium, open)
			countIf(&s.SeenBasic, open && seen)
		}
	}
}
