package domain

import "time"

// Mail is a requested mail, with all data needed to write it.
type Mail struct {
	Client ClientID
	ID     MessageID
	// Type is any but PhishingMail.
	Type MessageType
	// DueAt is the time of the first attempt to send it.
	DueAt time.Time

	To string // an address
	// User is the client's user with the address; it may be nil for an invite or a
	// report.
	User     *UserID
	Name     string // the user's first name; may be empty
	FullName string // likewise, with the last name
	Language Language

	ClientName  string
	PartnerName string

	// Of an invite.
	Invite     InviteID
	InviteRole InviteRole
	ExpiresAt  time.Time
	// Of a reminder of a policy.
	Policy      PolicyID
	PolicyTitle string
	// Of an assignment, and of a certificate.
	Course      CourseID
	CourseTitle string
	DueOn       Date
	CompletedOn Date
	// Of a reminder of overdue courses, sorted by due date.
	Overdue []OverdueCourse
	// Of a reminder of a simulation that the user fell for.
	Simulated SimulatedMail
	// Of a notice.
	Exposure Exposure
	// Of a report, and a day of the month that it is about.
	Report  ReportID
	MonthOf Date

	// Unwanted says why it must not be sent any more; empty if it may be.
	Unwanted string
	// SwitchedOff says that the client does not want mail of this type.
	SwitchedOff bool
}

// SimulatedMail is a simulated mail as its reader saw it, and what gave it away.
// The sender and the subject may be unknown.
type SimulatedMail struct {
	From, Subject string
	SentOn        Date
	Clues         []Indicator
}

// MailLife is how long an undeliverable mail is retried.
const MailLife = 3 * 24 * time.Hour

// Mail that the service sends without a request (decisions 7.11).
const (
	// MailCauseLife is how long after an event a mail about it is still requested.
	MailCauseLife = 7 * 24 * time.Hour
	// ReminderAfter is how long after a user fell for a simulation the reminder is
	// due.
	ReminderAfter = 2 * 24 * time.Hour
)

// ServiceMails are the types of mail that the service sends without a request. Each can
// be switched on and off for a client.
var ServiceMails = []MessageType{CertificateMail, PhishReminder, ExposureNotice, MonthlyReportMail}

// OnByDefault reports whether clients get mail of the type unless they have it
// switched off.
func (t MessageType) OnByDefault() bool { return t != MonthlyReportMail }

// MailSwitch says whether a client gets mail of a type.
type MailSwitch struct {
	Type MessageType
	On   bool
}

// MessageType says what a mail to a user is for.
type MessageType string

// The types of mail.
const (
	TrainingInvite    MessageType = "training-invite"
	PhishingMail      MessageType = "phishing"
	PhishReminder     MessageType = "phish-reminder"
	CertificateMail   MessageType = "certificate"
	MonthlyReportMail MessageType = "monthly-report"
	WelcomeMail       MessageType = "welcome"
	PolicyReminder    MessageType = "policy-reminder"
	AdminInviteMail   MessageType = "admin-invite"
	ExposureNotice    MessageType = "exposure-notice"
	TrainingReminder  MessageType = "training-reminder"
)

// Values lists the types.
func (MessageType) Values() []string {
	return texts(
		TrainingInvite, PhishingMail, PhishReminder, CertificateMail, MonthlyReportMail, WelcomeMail,
		PolicyReminder, AdminInviteMail, ExposureNotice, TrainingReminder,
	)
}

// SendMethod is how a mail was sent.
type SendMethod string

// The ways. A mail that was written to a file counts as sent by SMTP.
const (
	ByMicrosoft SendMethod = "microsoft-api"
	BySMTP      SendMethod = "smtp"
	ByGmail     SendMethod = "gmail-api"
)

// Values lists the ways.
func (SendMethod) Values() []string { return texts(ByMicrosoft, BySMTP, ByGmail) }

// SentEmail is the record of a mail that was sent to a user.
type SentEmail struct {
	ID      MessageID
	User    UserID
	SentAt  time.Time
	From    string
	Subject string
	Method  SendMethod
	Type    MessageType
}

// UserKey is a user with the client that the user belongs to.
type UserKey struct {
	Client ClientID
	User   UserID
}

// EmailFilter says which sent mails are wanted.
type EmailFilter struct {
	Types  []MessageType // none for every type
	Period               // of sending
}
