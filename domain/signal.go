package domain

import (
	"slices"
	"time"
)

// SignalType says what happened on the platform (decisions 7.9).
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

// SignalLead is how far ahead of the service's clock a signal may be dated.
const SignalLead = 5 * time.Minute

// signalFields are the fields of each type of signals, beside those of all: type, id and
// at (decisions 7.9).
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

var signalTypes = func() (all []string) {
	for t := range signalFields {
		all = append(all, string(t))
	}
	slices.Sort(all)
	return all
}()

// Values lists the types. It must not be changed.
func (SignalType) Values() []string { return signalTypes }

// Fields returns the fields of signals of the type.
func (t SignalType) Fields() []string {
	return append([]string{"type", "id", "at"}, signalFields[t]...)
}

// Signal is something that happened on the platform. Which of the fields below
// At it has depends on its type. The tags are those of records (PartnerRecord and the
// others); a field that is not new may be left out.
type Signal struct {
	// ID is the sender's own; a signal is applied once.
	ID   string     `json:"id" rule:"new" validate:"filled,max=255"`
	Type SignalType `json:"type" rule:"new"`
	At   time.Time  `json:"at" rule:"new" validate:"epoch,past"` // whole microseconds

	Result  ResultID `json:"result_id" rule:"new"` // of what happened to a simulated mail
	User    UserID   `json:"user_id" rule:"new"`
	Course  CourseID `json:"course_id" rule:"new"`
	Policy  PolicyID `json:"policy_id" rule:"new"`
	Version int      `json:"version" rule:"new" validate:"between=1 2147483647"` // of the policy that was signed
	Breach  string   `json:"breach_name" rule:"new" validate:"filled,max=255"`
	// Severity is empty where the finding does not say it.
	Severity Severity `json:"severity"`
	// DataClasses is nil where the finding does not say them.
	DataClasses []string `json:"data_classes" validate:"min=1,max=100,dive,filled,max=255"`

	// Message is the MessageKey of a real mail. Client is the client whose rows of it
	// a classification applies to; zero for all.
	Message string    `json:"message_id" rule:"new" validate:"message_id,max=500"`
	Client  ClientID  `json:"client_id" validate:"required"`
	Subject string    `json:"subject" rule:"new" validate:"max=500"`
	Sender  string    `json:"sender" rule:"new" validate:"max=500"`
	Class   SentClass `json:"classification" rule:"new"`
	// Action is empty where it is not known.
	Action MailboxAction `json:"mailbox_action"`
}

// AboutMail says what happened to a simulated mail; false for a signal of
// another kind.
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

// IngestResult is what became of a signal.
type IngestResult struct {
	// Repeated says that a signal of that id was applied before: this one is a
	// no-op.
	Repeated bool
	// Refusal says, for the sender, why the signal cannot be applied; empty if it
	// was, now or before. A refused signal may be sent again.
	Refusal string
}

// NoSuchObject is the refusal of a signal that names an object that does not
// exist.
func NoSuchObject(noun string) string { return "there is no such " + noun }
