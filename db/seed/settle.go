package seed

import (
	"cmp"
	"slices"
	"time"

	"partnerapi/domain"
)

// settle derives what is stored of a client and its users beside their rows:
// scores, counters, next courses, counts by day and the summary. The rules are
// those by which db keeps the same values.
func (c *client) settle(today domain.Date) {
	days := make(map[domain.Date]*phishingDay)
	for _, u := range c.users {
		u.settle(today)
		for i := range u.mails {
			count(days, &u.mails[i])
		}
		c.UpdatedAt = latest(c.UpdatedAt, u.UpdatedAt)
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
	c.summarize(today)
}

// count adds a mail to the day that it was sent on. What a mail scanner did
// counts nowhere, the mail and its report do (decisions 7.3).
func count(days map[domain.Date]*phishingDay, s *simulation) {
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
	tally(&day.reported, !s.reportedAt.IsZero())
	if s.automated == "" {
		tally(&day.opened, !s.openedAt.IsZero())
		tally(&day.clicked, s.fellFor())
		tally(&day.attachments, !s.attachmentAt.IsZero())
		tally(&day.credentials, !s.credentialsAt.IsZero())
	}
}

func tally(n *int, happened bool) {
	if happened {
		*n++
	}
}

func (c *client) summarize(today domain.Date) {
	s := domain.EmptySummary(today.AddDays(-1).Time()) // stale: the first read stores what the risk is made of
	scores := 0
	for _, u := range c.users {
		if u.Status != domain.Active {
			c.InactiveUsers++
			continue
		}
		c.ActiveUsers++
		scores += u.Score
		tally(&s.HighRiskUsers, u.Score < domain.HighRiskBelow)
		tally(&s.OverdueUsers, u.Training.Next != nil && u.Training.Next.DueOn.Before(today))
	}
	s.AverageScore = domain.AverageScore(scores, c.ActiveUsers)
	if c.Summary = s; c.ActiveUsers == 0 {
		return
	}
	s.OnTrackRate = domain.Percent(c.ActiveUsers-s.OverdueUsers, c.ActiveUsers)
	quarter, year, ever := c.phished(today, 90), c.phished(today, 365), c.phished(today, 1<<20)
	s.ClickRate90d = domain.Percent(quarter.clicked, quarter.sent)
	s.ReportRate90d = domain.Percent(quarter.reported, quarter.sent)
	s.ClickRate365d = domain.Percent(year.clicked, year.sent)
	s.ClickRateTotal = domain.Percent(ever.clicked, ever.sent)
	c.Summary = s
}

// phished adds up the last days, today included.
func (c *client) phished(today domain.Date, days int) (sum phishingDay) {
	for i := range c.days {
		if day := &c.days[i]; day.day.DaysUntil(today) < days {
			sum.sent += day.sent
			sum.clicked += day.clicked
			sum.reported += day.reported
		}
	}
	return sum
}

func (u *user) settle(today domain.Date) {
	u.UpdatedAt = u.CreatedAt
	var s domain.RiskSignals
	u.settleMails(&s, today)
	u.settleTraining(&s, today)
	u.settleReports(&s)
	u.settleExposures(&s, today)
	u.risk = domain.Assess(u.Role, s, today)
	u.Score = u.risk.Score
}

func (u *user) settleMails(s *domain.RiskSignals, today domain.Date) {
	for i := range u.mails {
		mail := &u.mails[i]
		u.UpdatedAt = latest(u.UpdatedAt, mail.latest())
		if mail.sentAt.IsZero() {
			continue
		}
		thisYear := domain.DateOf(mail.sentAt).DaysUntil(today) < 365
		u.Phishing.Sent++
		tally(&u.Phishing.SentYear, thisYear)
		tally(&u.Phishing.Clicked, mail.fellFor())
		tally(&u.Phishing.ClickedYear, thisYear && mail.fellFor())
		note(&s.Reports, mail.reportedAt)
		if mail.automated == "" {
			note(&s.Clicks, mail.clickedAt)
			note(&s.Attachments, mail.attachmentAt)
			note(&s.Credentials, mail.credentialsAt)
		}
	}
}

// note adds the day of what happened to a list.
func note(days *[]domain.Date, at time.Time) {
	if !at.IsZero() {
		*days = append(*days, domain.DateOf(at))
	}
}

func (u *user) settleTraining(s *domain.RiskSignals, today domain.Date) {
	var next *assignment
	for i := range u.training {
		a := &u.training[i]
		u.UpdatedAt = latest(u.UpdatedAt, a.assignedAt, a.completedAt)
		if a.completedAt.IsZero() && a.dueOn.Before(today) {
			u.UpdatedAt = latest(u.UpdatedAt, a.dueOn.AddDays(1).Time()) // when it became overdue
		}
		note(&s.Completions, a.completedAt)
		if a.completedAt.IsZero() && (next == nil || a.compare(next) < 0) {
			next = a
		}
	}
	if next != nil {
		u.Training.Next = &domain.NextCourse{Course: next.course, DueOn: next.dueOn}
	}
	s.Dormant = domain.DormantOnTraining(next != nil, s.Completions, domain.DateOf(u.CreatedAt), today)
}

// compare orders incomplete assignments: the first is the user's next.
func (a *assignment) compare(b *assignment) int {
	return cmp.Or(b.dueOn.DaysUntil(a.dueOn), cmp.Compare(a.position, b.position),
		slices.Compare(a.course[:], b.course[:]))
}

func (u *user) settleReports(s *domain.RiskSignals) {
	for i := range u.reported {
		mail := &u.reported[i]
		u.UpdatedAt = latest(u.UpdatedAt, mail.reportedAt, mail.classified)
		switch mail.classification {
		case "phishing":
			note(&s.RealPhishing, mail.reportedAt)
		case "pending":
			note(&s.RealPending, mail.reportedAt)
		default:
			note(&s.RealHarmless, mail.reportedAt)
		}
	}
}

func (u *user) settleExposures(s *domain.RiskSignals, today domain.Date) {
	for i := range u.exposures {
		e := &u.exposures[i]
		u.UpdatedAt = latest(u.UpdatedAt, e.seenAt, e.resolved)
		open := e.resolved.IsZero()
		seen := domain.DateOf(e.seenAt).DaysUntil(today) <= 365
		switch e.breach.severity {
		case domain.SeverityCritical:
			tally(&s.UnresolvedCritical, open)
			tally(&s.SeenPasswordActive, open && seen)
			tally(&s.SeenPasswordResolved, !open && seen)
		case domain.SeverityHigh:
			tally(&s.UnresolvedHigh, open)
			tally(&s.SeenPII, open && seen)
		case domain.SeverityMedium:
			tally(&s.UnresolvedMedium, open)
			tally(&s.SeenBasic, open && seen)
		}
	}
}
