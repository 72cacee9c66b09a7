package seed

import (
	"fmt"
	"time"

	"partnerapi/domain"
)

// phish sends a user simulated mails, about so many days apart.
func (s *story) phish(u *user, t temper, every int) {
	end := s.today
	if u.Status != domain.Active {
		end = s.today.AddDays(-60)
	}
	day := domain.DateOf(u.CreatedAt).AddDays(s.between(5, every))
	for ; day.Before(end); day = day.AddDays(s.between(every*2/3, every*4/3)) {
		u.mails = append(u.mails, s.simulate(u, s.at(day), s.reaction(t)))
	}
}

// reaction is how far a mail gets, and what else happens to it.
type reaction struct {
	opened, attachment, clicked, credentials, reported bool
	automated                                          domain.AutomatedReason
}

// scannerReasons are how a mail scanner is told.
var scannerReasons = []domain.AutomatedReason{domain.ByHead, domain.ByNetwork, domain.ByHaste}

func (s *story) reaction(t temper) (r reaction) {
	if s.chance(0.02) {
		return reaction{automated: oneOf(s.dice, scannerReasons)}
	}
	r.opened = s.chance(0.55)
	if r.opened && s.chance(t.gullible) {
		r.attachment = s.chance(0.25)
		r.clicked = !r.attachment || s.chance(0.5)
		r.credentials = r.clicked && s.chance(0.3)
	}
	r.reported = s.chance(t.alert)
	return r
}

// simulate makes a mail to a user with what happened to it, all within hours.
func (s *story) simulate(u *user, at time.Time, r reaction) simulation {
	m := s.schedule(u, at)
	m.sentAt, m.automated = at, r.automated
	last := at
	mark := func(happened bool, minutes int) (t time.Time) {
		if happened {
			last = last.Add(time.Duration(s.between(10, minutes*60)) * time.Second)
			t = last
		}
		return t
	}
	m.openedAt = mark(r.opened, 120)
	m.attachmentAt = mark(r.attachment, 10)
	m.clickedAt = mark(r.clicked, 10)
	m.credentialsAt = mark(r.credentials, 3)
	m.reportedAt = mark(r.reported, 60)
	return m
}

// schedule makes a mail to a user that is to be sent at a time.
func (s *story) schedule(u *user, at time.Time) simulation {
	created := at
	if start := s.today.Time(); created.After(start) {
		created = start
	}
	created = created.Add(-time.Hour)
	return simulation{
		id: newID[domain.ResultKind](s.dice, created), template: oneOf(s.dice, s.catalogue.templates[u.Language]),
		sendAt: at, createdAt: created,
	}
}

// suspicious are real mails that users report, by what they turn out to be.
var suspicious = []struct{ subject, sender, classification, action string }{
	{"Urgent: change of bank details", "treasurer@pay-update.example", "phishing", "deleted"},
	{"Shared document: Q3 plan", "no-reply@doc-share.example", "phishing", "moved_to_junk"},
	{"Win a weekend away", "offers@prize-draw.example", "spam", "moved_to_junk"},
	{"Minutes of Tuesday's meeting", "office@neighbour.example", "safe", "none"},
	{"Voicemail from unknown number", "voice@call-notice.example", "pending", ""},
}

// alarm lets a user report real mails.
func (s *story) alarm(u *user, t temper) {
	for s.chance(t.alert * 0.3) {
		s.report(u, s.between(0, len(suspicious)-1), s.between(1, 500))
	}
}

// report lets a user report one of the suspicious mails so many days ago,
// unless that was before their time.
func (s *story) report(u *user, which, daysAgo int) {
	at, mail := s.at(s.today.AddDays(-daysAgo)), suspicious[which]
	if at.Before(u.CreatedAt) {
		return
	}
	r := reportedEmail{
		id: newID[domain.ReportedEmailKind](s.dice, at), subject: mail.subject, sender: mail.sender,
		classification: mail.classification, action: mail.action, reportedAt: at,
	}
	r.messageID = fmt.Sprintf("<%x@mail.example>", r.id[6:])
	if mail.classification != "pending" {
		r.classified = at.Add(time.Duration(s.between(5, 300)) * time.Minute)
	}
	u.reported = append(u.reported, r)
}

// expose finds a user's data in breaches; that of most in none.
func (s *story) expose(u *user) {
	for i := range s.catalogue.breaches {
		if s.chance(0.04) {
			s.discover(u, &s.catalogue.breaches[i], s.between(2, 600), s.chance(0.5))
		}
	}
}

// discover finds a user's data in a breach so many days ago.
func (s *story) discover(u *user, b *breach, daysAgo int, resolved bool) {
	e := exposure{breach: b, seenAt: s.at(s.today.AddDays(-daysAgo))}
	if e.seenAt.Before(u.CreatedAt) {
		e.seenAt = u.CreatedAt
	}
	e.notified = e.seenAt.Add(time.Hour)
	if days := domain.DateOf(e.seenAt).DaysUntil(s.today) - 1; resolved && days > 0 {
		e.resolved = s.at(domain.DateOf(e.seenAt).AddDays(s.between(1, days)))
	}
	u.exposures = append(u.exposures, e)
}
