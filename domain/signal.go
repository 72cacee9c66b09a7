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
// At it has depends on its type.
type Signal struct {
	// ID is the sender's own, of 1 to 255 characters; a signal is applied once.
	ID   string
	Type SignalType
	At   time.Time // whole microseconds

	Result  ResultID // of what happened to a simulated mail
	User    UserID
	Course  CourseID
	Policy  PolicyID
	Version int    // of the policy that was signed, from 1
	Breach  string // its name
	// Severity is empty where the finding does not say it.
	Severity Severity
	// DataClasses is nil where the finding does not say them.
	DataClasses []string

	// Message is the MessageKey of a real mail. Client is whose rows of it a
	// classification is for; zero for all.
	Message         string
	Client          ClientID
	Subject, Sender string
	Classification  Classification
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
