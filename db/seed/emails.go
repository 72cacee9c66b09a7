package seed

import (
	"time"

	"partnerapi/domain"
)

// serviceSender is the address of all mail that is not simulated.
const serviceSender = "training@awareness.example"

// subjects are those of the mails that the service sends, by message type; a
// simulated mail has its template's.
var subjects = map[string]string{
	"training-invite": "New training for you",
	"phish-reminder":  "What to look for next time",
	"certificate":     "Your certificate",
	"monthly-report":  "Your monthly report",
	"welcome":         "Welcome to your training",
	"policy-reminder": "A policy waits for your signature",
	"admin-invite":    "You are invited to the dashboard",
}

// recordEmails records the mails that the service sent to the users of a client
// because of what happened to them.
func (g *generator) recordEmails(c *client) {
	for _, u := range c.users {
		var invited time.Time
		for i := range u.training {
			a := &u.training[i]
			if !a.assignedAt.Equal(invited) { // one mail for the courses given at once
				g.recordEmail(c, u, "training-invite", a.assignedAt)
				invited = a.assignedAt
			}
			if !a.completedAt.IsZero() {
				g.recordEmail(c, u, "certificate", a.completedAt)
			}
		}
		for i := range u.simulations {
			g.recordSimulation(c, u, &u.simulations[i])
		}
		if u.Source == domain.FromHand {
			g.recordEmail(c, u, "welcome", u.CreatedAt)
		}
		if u.Role == domain.RoleExecutive {
			g.recordMonthlyReports(c, u)
		}
	}
}

// recordSimulation records a simulated mail, and the reminder to who fell for it.
func (g *generator) recordSimulation(c *client, u *user, m *simulation) {
	if m.sentAt.IsZero() {
		return
	}
	g.recordEmail(c, u, "phishing", m.sentAt)
	simulated := &u.sent[len(u.sent)-1]
	simulated.from, simulated.subject = m.template.from, m.template.subject
	if reminded := m.sentAt.AddDate(0, 0, 2); m.countsAsClick() && reminded.Before(g.today.Time()) {
		g.recordEmail(c, u, "phish-reminder", reminded)
	}
}

// recordMonthlyReports records a user's reports of the last half year, one on the first day
// of each month.
func (g *generator) recordMonthlyReports(c *client, u *user) {
	today := g.today.Time()
	first := time.Date(today.Year(), today.Month(), 1, 6, 0, 0, 0, time.UTC)
	for back := range 6 {
		if at := first.AddDate(0, -back, 0); at.Before(today) && at.After(u.CreatedAt) {
			g.recordEmail(c, u, "monthly-report", at)
		}
	}
}

// recordEmail records that a mail was sent to a user.
func (g *generator) recordEmail(c *client, u *user, kind string, at time.Time) {
	method := "smtp"
	if c.DirectorySync != nil {
		method = map[domain.Directory]string{domain.Microsoft: "microsoft-api", domain.Google: "gmail-api"}[*c.DirectorySync]
	}
	u.sent = append(u.sent, sentEmail{
		id: newID[domain.MessageKind](g.random, at), at: at, from: serviceSender, subject: subjects[kind], method: method,
		kind: kind,
	})
}
