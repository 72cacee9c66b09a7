package domain

import "time"

// Mail is a requested mail with the data from which it is rendered.
type Mail struct {
	Client ClientID
	ID     MessageID
	// Type is any but PhishingMail.
	Type MessageType
	// DueAt is the time of the first attempt to send it.
	DueAt time.Time

	To string // an address
	// User is the client's user with the address. It may be nil for an invite or a report.
	User     *UserID
	Name     string // the user's first name, or the admin's name; may be empty
	FullName string // the user's first and last name; may be empty
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
	// Of an invite to a course, and of a certificate.
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
	// Of a report. MonthOf is a day of the month that it is about.
	Report  ReportID
	MonthOf Date

	// Unwanted is the reason why the mail must not be sent any more; empty if it may be sent.
	Unwanted string
	// SwitchedOff is true if the client has switched off mail of the type.
	SwitchedOff bool
}

// SimulatedMail is a simulated mail as the user saw it, with the clues in it. The sender and the subject may be empty.
type SimulatedMail struct {
	From, Subject string
	SentOn        Date
	Clues         []Indicator
}

// MailLife is how long a mail that cannot be delivered is retried.
const MailLife = 3 * 24 * time.Hour

// MailPauses are the pauses after failed attempts at a mail, without jitter. The last one repeats until MailLife.
var MailPauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour,
}

// Mail that the service sends without a request (decisions 7.11).
const (
	// MailCauseLife is the maximum age of the cause of a mail: no mail is requested about an older one.
	MailCauseLife = 7 * 24 * time.Hour
	// ReminderAfter is the time from when a user fell for a simulation until the reminder is due.
	ReminderAfter = 2 * 24 * time.Hour
)

// ServiceMails are the types of mail that the service sends without a request. Each can be switched on and off for a
// client.
var ServiceMails = []MessageType{CertificateMail, PhishReminder, ExposureNotice, MonthlyReportMail}

// OnByDefault reports whether mail of the type is on for clients that have not switched it.
func (t MessageType) OnByDefault() bool { return t != MonthlyReportMail }

// MailSwitch reports whether mail of a type is on for a client or partner.
type MailSwitch struct {
	Type MessageType
	On   bool
}

// MessageType is the type of a mail.
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

// Values lists the types of mail, without those about webhooks, which go to partners.
func (MessageType) Values() []string {
	return texts(
		TrainingInvite, PhishingMail, PhishReminder, CertificateMail, MonthlyReportMail, WelcomeMail,
		PolicyReminder, AdminInviteMail, ExposureNotice, TrainingReminder,
	)
}

// SendMethod is the method by which a mail was sent.
type SendMethod string

// The methods. A mail that was written to a file counts as sent by SMTP.
const (
	ByMicrosoft SendMethod = "microsoft-api"
	BySMTP      SendMethod = "smtp"
	ByGmail     SendMethod = "gmail-api"
)

// Values lists the methods.
func (SendMethod) Values() []string { return texts(ByMicrosoft, BySMTP, ByGmail) }

// SentEmail is the record of a mail that was sent to a user.
type SentEmail struct {
	ID      MessageID `bun:",pk"`
	User    UserID    `bun:"user_id,pk"`
	SentAt  time.Time
	From    string `bun:"from_email"`
	Subject string
	Method  SendMethod  `bun:"send_method"`
	Type    MessageType `bun:"message_type"`
}

// UserKey is the key of a user: the ids of the client and the user.
type UserKey struct {
	Client ClientID
	User   UserID
}

// EmailFilter selects sent mails.
type EmailFilter struct {
	Types  []MessageType // empty for all types
	Period               // the period of sending
}
