package seed

import (
	"cmp"
	"slices"
	"time"

	"partnerapi/domain"
)

// computeTotals derives what is stored of a client and its users beside their rows:
// scores, counters, next courses and the summary. The rules are those by which db keeps
// the same values.
func (c *client) computeTotals(today domain.Date) {
	for _, u := range c.users {
		u.computeTotals(today)
		c.UpdatedAt = latestTime(c.UpdatedAt, u.UpdatedAt)
	}
	for _, f := range c.frameworks {
		c.FrameworkIDs = append(c.FrameworkIDs, f.FrameworkID)
	}
	slices.Sort(c.FrameworkIDs)
	c.FrameworkIDs = slices.Compact(c.FrameworkIDs)

	scores := 0
	for _, u := range c.users {
		if u.Status != domain.Active {
			c.UsersInactive++
			continue
		}
		c.UsersActive++
		scores += u.Score
		countIf(&c.HighRiskUsers, u.Score < domain.HighRiskBelow)
		countIf(&c.OverdueUsers, !u.NextDueOn.IsZero() && u.NextDueOn.Before(today))
	}
	empty := domain.EmptySummary(today.AddDays(-1).Time()) // stale: the first read stores what the risk is made of
	c.SummarizedAt, c.OnTrackRate = empty.At, empty.OnTrackRate
	c.AverageScore = domain.AverageScore(scores, c.UsersActive)
	if c.UsersActive > 0 {
		c.OnTrackRate = domain.Percent(c.UsersActive-c.OverdueUsers, c.UsersActive)
		c.ClickRate90d, c.ReportRate90d = c.phishingRates(today, 90)
		c.ClickRate365d, _ = c.phishingRates(today, 365)
		c.ClickRateTotal, _ = c.phishingRates(today, 1<<20)
	}
}

func countIf(n *int, happened bool) {
	if happened {
		*n++
	}
}

// phishingRates are those of the mails of the last days, today included.
func (c *client) phishingRates(today domain.Date, days int) (clicks, reports float64) {
	var sent, clicked, reported int
	for _, u := range c.users {
		for i := range u.simulations {
			if mail := &u.simulations[i]; mail.sentWithin(days, today) {
				sent++
				countIf(&clicked, mail.countsAsClick())
				countIf(&reported, mail.Reported)
			}
		}
	}
	return domain.Percent(clicked, sent), domain.Percent(reported, sent)
}

func (s *simulation) sentWithin(days int, today domain.Date) bool {
	return s.SentAt != nil && domain.DateOf(*s.SentAt).DaysUntil(today) < days
}

func (u *user) computeTotals(today domain.Date) {
	u.NameKey, u.UpdatedAt = domain.SortKey(domain.FullName(u.FirstName, u.LastName)), u.CreatedAt
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

func (u *user) countSimulations(s *domain.RiskSignals, today domain.Date) {
	for i := range u.simulations {
		mail := &u.simulations[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, mail.UpdatedAt)
		if mail.SentAt == nil {
			continue
		}
		thisYear := mail.sentWithin(365, today)
		u.PhishedSent++
		countIf(&u.PhishedSentYear, thisYear)
		countIf(&u.PhishedClicked, mail.countsAsClick())
		countIf(&u.PhishedClickedYear, thisYear && mail.countsAsClick())
		appendDay(&s.Reports, mail.ReportedAt)
		appendDay(&s.Clicks, mail.ClickedAt)
		appendDay(&s.Attachments, mail.AttachmentOpenedAt)
		appendDay(&s.Credentials, mail.CredentialsSubmittedAt)
	}
}

// appendDay adds the day of what happened to a list.
func appendDay(days *[]domain.Date, at *time.Time) {
	if at != nil {
		*days = append(*days, domain.DateOf(*at))
	}
}

func (u *user) countTraining(s *domain.RiskSignals, today domain.Date) {
	var next *assignment
	for i := range u.training {
		a := &u.training[i]
		a.OverdueNoted = a.DueOn.Before(today) // what is overdue by now is history, and no event
		u.UpdatedAt = latestTime(u.UpdatedAt, a.AssignedAt, a.CompletedAt)
		if !a.CompletedAt.IsZero() {
			appendDay(&s.Completions, &a.CompletedAt)
			continue
		}
		if a.OverdueNoted {
			u.UpdatedAt = latestTime(u.UpdatedAt, a.DueOn.AddDays(1).Time()) // when it became overdue
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

// compareDue orders incomplete assignments: the first is the user's next.
func (a *assignment) compareDue(b *assignment) int {
	return cmp.Or(b.DueOn.DaysUntil(a.DueOn), cmp.Compare(a.Position, b.Position),
		slices.Compare(a.CourseID[:], b.CourseID[:]))
}

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

func (u *user) countExposures(s *domain.RiskSignals, today domain.Date) {
	for i := range u.exposures {
		e := &u.exposures[i]
		u.UpdatedAt = latestTime(u.UpdatedAt, e.FirstSeenAt, e.ResolvedAt)
		open := e.ResolvedAt.IsZero()
		seen := domain.DateOf(e.FirstSeenAt).DaysUntil(today) <= 365
		switch e.Severity {
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
