package seed

import (
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// serviceSender is the sender of all emails that are not simulated.
const serviceSender = "training@awareness.example"

// subjects are the subjects of the service's emails, by message type. A simulated email has the subject of its
// template.
var subjects = map[domain.MessageType]string{
	"training-invite": "New training for you",
	"phish-reminder":  "What to look for next time",
	"certificate":     "Your certificate",
	"monthly-report":  "Your monthly report",
	"welcome":         "Welcome to your training",
	"policy-reminder": "A policy waits for your signature",
	"admin-invite":    "You are invited to the dashboard",
}

// recordEmails adds the emails that the service sent to users of a client: about their training and simulations, a
// welcome to users created by hand, and monthly reports to executives.
func (g *generator) recordEmails(c *client, users []*user) {
	for _, u := range users {
		var invited time.Time
		for i := range u.training {
			a := &u.training[i]
			if !a.AssignedAt.Equal(invited) { // one email for courses assigned at the same time
				g.recordEmail(c, u, "training-invite", a.AssignedAt)
				invited = a.AssignedAt
			}
			if !a.CompletedAt.IsZero() {
				g.recordEmail(c, u, "certificate", a.CompletedAt)
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

// recordSimulation adds a simulated email, if it was sent. If the user fell for it, it also adds the reminder two days
// later, unless that is today or later.
func (g *generator) recordSimulation(c *client, u *user, m *simulation) {
	if m.SentAt == nil {
		return
	}
	g.recordEmail(c, u, "phishing", *m.SentAt)
	simulated := &u.sent[len(u.sent)-1]
	simulated.From, simulated.Subject = m.template.from, m.template.subject
	if reminded := m.SentAt.AddDate(0, 0, 2); m.countsAsClick() && reminded.Before(g.today.Time()) {
		g.recordEmail(c, u, "phish-reminder", reminded)
	}
}

// recordMonthlyReports adds the emails of monthly reports to a user, on the first day of each of the last six months.
func (g *generator) recordMonthlyReports(c *client, u *user) {
	today := g.today.Time()
	first := time.Date(today.Year(), today.Month(), 1, 6, 0, 0, 0, time.UTC)
	for months := range 6 {
		if at := first.AddDate(0, -months, 0); at.Before(today) && at.After(u.CreatedAt) {
			g.recordEmail(c, u, "monthly-report", at)
		}
	}
}

// sendMethods are the methods by which emails reach the users of a client, by its directory.
var sendMethods = map[domain.Directory]domain.SendMethod{
	domain.Microsoft: domain.ByMicrosoft, domain.Google: domain.ByGmail, "": domain.BySMTP,
}

// recordEmail adds an email that was sent to a user at a time.
func (g *generator) recordEmail(c *client, u *user, kind domain.MessageType, at time.Time) {
	u.sent = append(u.sent, db.SentEmailRow{ClientID: u.Client, SentEmail: domain.SentEmail{
		User: u.ID, ID: newID[domain.MessageKind](g.random, at), SentAt: at, From: serviceSender,
		Subject: subjects[kind], Method: sendMethods[domain.OrZero(c.DirectorySync)], Type: kind,
	}})
}
