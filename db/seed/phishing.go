package seed

import (
	"fmt"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// addSimulations adds simulated emails sent to a user. every is the average number of days between two emails. An
// inactive user got none in the last 60 days.
func (g *generator) addSimulations(u *user, b behavior, every int) {
	end := g.today
	if u.Status != domain.Active {
		end = g.today.AddDays(-60)
	}
	day := domain.DateOf(u.CreatedAt).AddDays(g.between(5, every))
	for ; day.Before(end); day = day.AddDays(g.between(every*2/3, every*4/3)) {
		u.simulations = append(u.simulations, g.sentSimulation(u, g.at(day), g.outcome(b)))
	}
}

// outcome is the actions of a user on a simulated email. automated is the reason if a mail scanner acted, or empty.
type outcome struct {
	opened, attachment, clicked, credentials, reported bool
	automated                                          domain.AutomatedReason
}

// scannerReasons are the reasons by which a mail scanner is detected.
var scannerReasons = []domain.AutomatedReason{domain.ByHead, domain.ByNetwork, domain.ByHaste}

// outcome returns a random outcome of an email to a user with a behavior.
func (g *generator) outcome(b behavior) (r outcome) {
	if g.chance(0.02) {
		return outcome{automated: oneOf(g.random, scannerReasons)}
	}
	r.opened = g.chance(0.55)
	if r.opened && g.chance(b.gullible) {
		r.attachment = g.chance(0.25)
		r.clicked = !r.attachment || g.chance(0.5)
		r.credentials = r.clicked && g.chance(0.3)
	}
	r.reported = g.chance(b.alert)
	return r
}

// sentSimulation creates an email that was sent to a user at a time. The times of its outcome follow within hours, each
// after the one before.
func (g *generator) sentSimulation(u *user, at time.Time, r outcome) simulation {
	m := g.scheduledSimulation(u, at)
	m.SentAt = &at
	m.Automated, m.AutomatedReason = r.automated != "", r.automated
	last := at
	mark := func(condition bool, minutes int) *time.Time { // a time up to minutes after the last one
		if !condition {
			return nil
		}
		last = last.Add(time.Duration(g.between(10, minutes*60)) * time.Second)
		return new(last)
	}
	m.OpenedAt = mark(r.opened, 120)
	m.AttachmentOpenedAt = mark(r.attachment, 10)
	m.ClickedAt = mark(r.clicked, 10)
	m.CredentialsSubmittedAt = mark(r.credentials, 3)
	m.ReportedAt = mark(r.reported, 60)
	m.Reported, m.Status = r.reported, r.status()
	m.UpdatedAt = latestTime(m.CreatedAt, last)
	return m
}

// status returns the status of an email with the outcome.
func (r outcome) status() domain.ResultStatus {
	switch {
	case r.credentials:
		return domain.ResultCredentialsSubmitted
	case r.clicked:
		return domain.ResultClicked
	case r.attachment:
		return domain.ResultAttachmentOpened
	case r.opened:
		return domain.ResultOpened
	default:
		return domain.ResultSent
	}
}

// scheduledSimulation creates an email to a user that is to be sent at a time. It was created an hour before or, if the
// time is after today, an hour before today.
func (g *generator) scheduledSimulation(u *user, at time.Time) simulation {
	created := at
	if start := g.today.Time(); created.After(start) {
		created = start
	}
	created = created.Add(-time.Hour)
	id, template := newID[domain.ResultKind](g.random, created), oneOf(g.random, g.catalogue.templates[u.Language])
	return simulation{template: template, ResultRow: db.ResultRow{ClientID: u.Client, Result: domain.Result{
		ID: id, User: u.ID, Template: template.id, Status: domain.ResultScheduled, SendAt: at,
		CreatedAt: created, UpdatedAt: created,
	}}}
}

// labeled returns the email with a label.
func (s simulation) labeled(label string) simulation {
	s.Label, s.LabelKey = label, domain.SortKey(label)
	return s
}

// suspiciousEmails are real emails that users report, with their classifications.
var suspiciousEmails = []struct {
	subject, sender string
	class           domain.EmailClass
	action          domain.MailboxAction
}{
	{"Urgent: change of bank details", "treasurer@pay-update.example", domain.ClassPhishing, "deleted"},
	{"Shared document: Q3 plan", "no-reply@doc-share.example", domain.ClassPhishing, "moved_to_junk"},
	{"Win a weekend away", "offers@prize-draw.example", domain.ClassSpam, "moved_to_junk"},
	{"Minutes of Tuesday's meeting", "office@neighbor.example", domain.ClassSafe, "none"},
	{"Voicemail from unknown number", "voice@call-notice.example", domain.ClassPending, ""},
}

// addReportedEmails adds random reports of real emails by a user.
func (g *generator) addReportedEmails(u *user, b behavior) {
	for g.chance(b.alert * 0.3) {
		g.addReportedEmail(u, g.between(0, len(suspiciousEmails)-1), g.between(1, 500))
	}
}

// addReportedEmail adds the report of suspiciousEmails[index] by a user, daysAgo days ago. It adds none if the user did
// not exist then.
func (g *generator) addReportedEmail(u *user, index, daysAgo int) {
	at, mail := g.at(g.today.AddDays(-daysAgo)), suspiciousEmails[index]
	if at.Before(u.CreatedAt) {
		return
	}
	id := newID[domain.ReportedEmailKind](g.random, at)
	r := reportedEmail{
		owner: u.owner(), ID: id, MessageID: fmt.Sprintf("%x@mail.example", id[6:]), Subject: mail.subject,
		Sender: mail.sender, Classification: mail.class, MailboxAction: mail.action, ReportedAt: at,
	}
	if mail.class != domain.ClassPending {
		r.ClassifiedAt = at.Add(time.Duration(g.between(5, 300)) * time.Minute)
	}
	r.UpdatedAt = latestTime(r.ReportedAt, r.ClassifiedAt)
	u.reported = append(u.reported, r)
}
