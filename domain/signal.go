package domain

import "time"

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

// Signal is something that happened on the platform. Which of the fields below
// At it has depends on its type. The tags are those of records (PartnerRecord and the
// others); a field that is not new may be left out.
type Signal struct {
	// ID is the sender's own; a signal is applied once.
	ID   string     `record:"id" rule:"new,filled,max=255"`
	Type SignalType `record:"type" rule:"new,filled,max=255"`
	At   time.Time  `record:"at" rule:"new,filled,max=255"` // whole microseconds

	Result  ResultID `record:"result_id" rule:"new"` // of what happened to a simulated mail
	User    UserID   `record:"user_id" rule:"new"`
	Course  CourseID `record:"course_id" rule:"new"`
	Policy  PolicyID `record:"policy_id" rule:"new"`
	Version int      `record:"version" rule:"new,min=1,max=2147483647"` // of the policy that was signed
	Breach  string   `record:"breach_name" rule:"new,filled,max=255"`
	// Severity is empty where the finding does not say it.
	Severity Severity `record:"severity" rule:"filled,max=255"`
	// DataClasses is nil where the finding does not say them.
	DataClasses []string `record:"data_classes" rule:"filled,max=100"`

	// Message is the MessageKey of a real mail. Client is whose rows of it a
	// classification is for; zero for all.
	Message string   `record:"message_id" rule:"new,max=500"`
	Client  ClientID `record:"client_id"`
	Subject string   `record:"subject" rule:"new,max=500"`
	Sender  string   `record:"sender" rule:"new,max=500"`
	Classification
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
	// Refusal says, for the sender, why the signal cannot be applied; empty where
	// it was, now or before. What is refused may be sent again.
	Refusal string
}

// NoSuchObject is the refusal of a signal that names an object that does not
// exist.
func NoSuchObject(noun string) string { return "there is no such " + noun }
