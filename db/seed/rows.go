package seed

import (
	"time"

	"partnerapi/domain"
)

// client is a client with all that belongs to it. What its own row sums up is
// filled in by computeTotals.
type client struct {
	domain.Client
	domain      string // of its users' emails
	groups      []group
	users       []*user
	collections []collection
	// dissolved are collections that were deleted again: rows may still name
	// them, and what watches the table knows of them.
	deletedCollections []collection
	policies           []policy
	uses               []frameworkUse
	admins             []domain.Admin
	invites            []invite
	reports            []domain.Report
	days               []phishingDay
	history            []dayScore // the average scores of the last days, today's last
}

type group struct {
	domain.Group
	manual bool
}

// user is a user with all signals about them. Score, Training.Next, Phishing
// and risk are filled in by computeTotals.
type user struct {
	domain.User
	training    []assignment
	simulations []simulation
	reported    []reportedEmail
	exposures   []exposure
	sent        []sentEmail
	risk        domain.Assessment
}

type assignment struct {
	courseSpec
	round       int
	program     bool
	frameworks  [][16]byte // the assignments that ask for it
	assignedAt  time.Time
	dueOn       domain.Date
	completedAt time.Time // zero while it is not
}

// simulation is one simulated mail. Its times are zero for what did not happen.
type simulation struct {
	id        domain.ResultID
	template  *template
	automated domain.AutomatedReason // how a scanner was told that opened or clicked it; empty for none
	failure   string                 // why it will never be sent; empty where it was or will be

	sendAt, sentAt, openedAt, attachmentAt, clickedAt, credentialsAt, reportedAt time.Time

	createdAt time.Time
}

// status is how far the mail got.
func (s *simulation) status() string {
	switch {
	case s.failure != "":
		return "failed"
	case !s.credentialsAt.IsZero():
		return "credentials_submitted"
	case !s.clickedAt.IsZero():
		return "clicked"
	case !s.attachmentAt.IsZero():
		return "attachment_opened"
	case !s.openedAt.IsZero():
		return "opened"
	case !s.sentAt.IsZero():
		return "sent"
	default:
		return "scheduled"
	}
}

// failedAt is when the mail failed; zero where it did not.
func (s *simulation) failedAt() (at time.Time) {
	if s.failure != "" {
		at = s.sendAt
	}
	return at
}

// countsAsClick reports whether a human fell for the mail, in any way (decisions
// 3.10).
func (s *simulation) countsAsClick() bool {
	return !(s.clickedAt.IsZero() && s.attachmentAt.IsZero() && s.credentialsAt.IsZero())
}

// updatedAt is when something last happened to the mail.
func (s *simulation) updatedAt() time.Time {
	return latestTime(s.createdAt, s.sentAt, s.openedAt, s.attachmentAt, s.clickedAt, s.credentialsAt, s.reportedAt)
}

func latestTime(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// phishingDay counts the mails that were sent on one day.
type phishingDay struct {
	day                                                       domain.Date
	sent, opened, clicked, reported, credentials, attachments int
}

// templateUse is how many mails were made of a template.
type templateUse struct {
	id   domain.TemplateID
	used int
}

// templateUses are those of the client's users.
func (c *client) templateUses() (list []templateUse) {
	uses := map[domain.TemplateID]int{}
	for _, u := range c.users {
		for i := range u.simulations {
			uses[u.simulations[i].template.id]++
		}
	}
	for id, used := range uses {
		list = append(list, templateUse{id, used})
	}
	return list
}

// dayScore is a client's average score on a day.
type dayScore struct {
	day   domain.Date
	score int
}

type reportedEmail struct {
	id                       domain.ReportedEmailID
	messageID                string
	subject, sender          string
	classification           string
	action                   string // of the mailbox integration; empty for none known
	reportedAt, classifiedAt time.Time
}

type exposure struct {
	breach                         *breach
	seenAt, notifiedAt, resolvedAt time.Time
}

type sentEmail struct {
	id            domain.MessageID
	at            time.Time
	from, subject string
	method, kind  string
}

type collection struct {
	id          domain.CollectionID
	name        string
	description string
	createdBy   string
	createdAt   time.Time
	updatedAt   time.Time
	members     []member
}

type member struct {
	of   domain.CollectionID
	user *user
	at   time.Time
}

type policy struct {
	id           domain.PolicyID
	title        string
	description  string
	version      int
	scope        string
	scopeID      [16]byte
	acknowledged bool // whether it is to be signed
	renewal      int  // days
	reviewedAt   time.Time
	archivedAt   time.Time
	createdAt    time.Time
	signatures   []signature
}

type signature struct {
	of      domain.PolicyID
	user    domain.UserID
	version int
	at      time.Time
}

type frameworkUse struct {
	id         domain.FrameworkAssignmentID
	framework  string
	audience   string
	audienceID *[16]byte // nil for all users
	policies   bool
	createdAt  time.Time
}

type invite struct {
	domain.Invite
	acceptedAt time.Time
}

func laterDate(a, b domain.Date) domain.Date {
	if a.After(b) {
		return a
	}
	return b
}
