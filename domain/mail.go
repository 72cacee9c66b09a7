package domain

import "time"

// Mail is a requested email with the data from which it is rendered.
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

	// ClientName and PartnerName are display names, if brands have them.
	ClientName  string
	PartnerName string
	// Brand is the client's, resolved. It is not set for an email that is not sent.
	Brand Brand

	// Of an invite.
	Invite         InviteID
	InviteRole     InviteRole
	ExpiresAt      time.Time
	InviteAccepted bool
	InviteExpired  bool
	// Of a reminder of a policy.
	Policy         PolicyID
	PolicyTitle    string
	PolicyArchived bool
	PolicySigned   bool
	// Of an invite to a course, and of a certificate. DueOn is zero if the course is not open, and CompletedOn if it is
	// not completed.
	Course      CourseID
	CourseTitle string
	DueOn       Date
	CompletedOn Date
	// Of a reminder of overdue courses, sorted by due date.
	Overdue []OverdueCourse
	// Of a reminder of a simulation that the user fell for.
	Simulated SimulatedMail
	// Of a notice. Exposure is zero if its breach is not in the catalogue any more.
	Exposure          Exposure
	DarkWebMonitoring bool
	// Of a report. MonthOf is a day of the month that it is about.
	Report       ReportID
	MonthOf      Date
	AdminRemoved bool

	// Unwanted is the reason why the email must not be sent any more; empty if it may be sent.
	Unwanted string
	// SwitchedOff is true if the client has switched off email of the type.
	SwitchedOff bool
}

// SimulatedMail is a simulated email as the user saw it, with the clues in it. The sender and the subject may be empty.
type SimulatedMail struct {
	From, Subject string
	SentOn        Date
	Clues         []Indicator
}

// Certificate is what the certificate of a completed course shows, in the language of the user.
type Certificate struct {
	Language                                        Language
	Heading, Presented, Name, Completed, Course, On string
	Client, Partner                                 string
	// Email is the user's address. It stands for a name that a file's fonts cannot show.
	Email string
	Brand Brand
	// At is the time at which the file was written.
	At time.Time
}

// MailLife is how long an email that cannot be delivered is retried.
const MailLife = 3 * 24 * time.Hour

// MailPauses are the pauses after failed attempts at an email, without jitter. The last one repeats until MailLife.
var MailPauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour,
}

// MailCauseLife is the maximum age of the cause of an email that the service sends without a request (decisions 7.11):
// no email is requested about an older one.
const MailCauseLife = 7 * 24 * time.Hour

// MailSwitch reports whether email of a type is on for a client or partner.
type MailSwitch struct {
	Type MessageType
	On   bool
}

// SendMethod is the method by which an email was sent.
type SendMethod string

// The methods. An email that was written to a file counts as sent by SMTP.
const (
	ByMicrosoft SendMethod = "microsoft-api"
	BySMTP      SendMethod = "smtp"
	ByGmail     SendMethod = "gmail-api"
)

// Values lists the methods.
func (SendMethod) Values() []string { return texts(ByMicrosoft, BySMTP, ByGmail) }

// SentEmail is the record of an email that was sent to a user.
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

// EmailFilter selects sent emails.
type EmailFilter struct {
	Types  []MessageType // empty for all types
	Period               // the period of sending
}
