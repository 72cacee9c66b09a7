package domain

import (
	"slices"
	"time"
)

// SignalType is the type of a Signal (decisions 7.9).
type SignalType string

// The types of signals.
const (
	PhishingOpened       SignalType = "phishing_opened"
	PhishingClicked      SignalType = "phishing_clicked"
	PhishingReported     SignalType = "phishing_reported"
	CredentialsSubmitted SignalType = "credentials_submitted"
	AttachmentOpened     SignalType = "attachment_opened"
	CourseStarted        SignalType = "course_started"
	CourseCompleted      SignalType = "course_completed"
	PolicySigned         SignalType = "policy_signed"
	PolicyPublished      SignalType = "policy_published"
	ExposureFound        SignalType = "exposure_found"
	ExposureResolved     SignalType = "exposure_resolved"
	EmailReported        SignalType = "email_reported"
	EmailClassified      SignalType = "email_classified"
)

// MaxReported is the maximum number of characters that are stored of the subject and of the sender of a reported email.
const MaxReported = 500

// SignalLead is how far the time of a signal may be ahead of the service's clock.
const SignalLead = 5 * time.Minute

// signalFields lists the fields of each type of signals, without the fields of all signals: type, id and at (decisions
// 7.9).
var signalFields = map[SignalType][]string{
	PhishingOpened:       {"result_id"},
	PhishingClicked:      {"result_id"},
	PhishingReported:     {"result_id"},
	CredentialsSubmitted: {"result_id"},
	AttachmentOpened:     {"result_id"},
	CourseStarted:        {"user_id", "course_id"},
	CourseCompleted:      {"user_id", "course_id"},
	PolicySigned:         {"user_id", "policy_id", "version"},
	PolicyPublished:      {"policy_id"},
	ExposureFound:        {"user_id", "breach_name", "severity", "data_classes"},
	ExposureResolved:     {"user_id", "breach_name"},
	EmailReported:        {"user_id", "subject", "sender", "message_id"},
	EmailClassified:      {"message_id", "classification", "mailbox_action", "client_id"},
}

// signalTypes lists the types in alphabetical order.
var signalTypes = func() (all []string) {
	for t := range signalFields {
		all = append(all, string(t))
	}
	slices.Sort(all)
	return all
}()

// Values lists the types. Callers must not change the list.
func (SignalType) Values() []string { return signalTypes }

// Fields returns the fields of signals of the type.
func (t SignalType) Fields() []string {
	return append([]string{"type", "id", "at"}, signalFields[t]...)
}

// Signal is an event on the platform. The type determines which of the fields after At it has. The tags are those of
// records (see PartnerRecord); a field without rule:"new" may be omitted.
type Signal struct {
	// ID is chosen by the sender; a signal is applied once.
	ID   string     `json:"id" rule:"new" validate:"filled,max=255"`
	Type SignalType `json:"type" rule:"new"`
	At   time.Time  `json:"at" rule:"new" validate:"epoch,past"` // whole microseconds

	Result  ResultID `json:"result_id" rule:"new"` // of an event of a simulated email
	User    UserID   `json:"user_id" rule:"new"`
	Course  CourseID `json:"course_id" rule:"new"`
	Policy  PolicyID `json:"policy_id" rule:"new"`
	Version int      `json:"version" rule:"new" validate:"between=1 2147483647"` // of the policy that was signed
	Breach  string   `json:"breach_name" rule:"new" validate:"filled,max=255"`
	// Severity is empty if it is not known.
	Severity Severity `json:"severity"`
	// DataClasses is nil if they are not known.
	DataClasses []string `json:"data_classes" validate:"min=1,max=100,dive,filled,max=255"`

	// Message is the MessageKey of a real email. A classification applies to the reports of this email by users of
	// Client, or by all users if Client is zero.
	Message string   `json:"message_id" rule:"new" validate:"message_id,max=500"`
	Client  ClientID `json:"client_id" validate:"required"`
	// Subject and Sender are those of the email, of any length: MaxReported characters are stored. Subject is empty for
	// an email without one.
	Subject string    `json:"subject"`
	Sender  string    `json:"sender" rule:"new"`
	Class   SentClass `json:"classification" rule:"new"`
	// Action is empty if it is not known.
	Action MailboxAction `json:"mailbox_action"`
}

// AboutMail returns the kind of the event of a simulated email; false for a signal about something else.
func (s *Signal) AboutMail() (ResultEventKind, bool) {
	switch s.Type {
	case PhishingOpened:
		return MailOpened, true
	case PhishingClicked:
		return MailClicked, true
	case PhishingReported:
		return MailReported, true
	case CredentialsSubmitted:
		return MailCredentialsSubmitted, true
	case AttachmentOpened:
		return MailAttachmentOpened, true
	}
	return "", false
}

// IngestResult is the outcome of a signal.
type IngestResult struct {
	// Repeated is true if a signal with the same id was applied before: this one has no effect.
	Repeated bool
	// Refusal is the reason, for the sender, why the signal cannot be applied; empty if it was applied, now or before.
	// A refused signal may be sent again.
	Refusal string
}

// NoSuchObject returns the refusal of a signal about an object that does not exist.
func NoSuchObject(noun string) string { return "there is no such " + noun }
