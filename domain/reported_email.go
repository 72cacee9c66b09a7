package domain

import (
	"slices"
	"strings"
	"time"
)

// ReportedEmail is a real mail that a user reported (decisions 7.10).
type ReportedEmail struct {
	ID         ReportedEmailID
	Client     ClientID
	User       UserID
	ReportedAt time.Time
	Subject    string // may be empty
	Sender     string
	Classification
	// ClassifiedAt is nil while the classification is pending.
	ClassifiedAt *time.Time
	UpdatedAt    time.Time
}

// Classification is what triage made of a mail, and what was done with it.
type Classification struct {
	Class EmailClass
	// Action is empty where it is not known.
	Action MailboxAction
}

// EmailClass says what a reported mail turned out to be.
type EmailClass string

// The classes. Pending is the one before triage, and is accepted from no caller.
const (
	ClassPhishing EmailClass = "phishing"
	ClassSpam     EmailClass = "spam"
	ClassSafe     EmailClass = "safe"
	ClassPending  EmailClass = "pending"
)

// Values lists the classes.
func (EmailClass) Values() []string { return texts(ClassPhishing, ClassSpam, ClassSafe, ClassPending) }

// MailboxAction says what the mailbox integration did with a mail.
type MailboxAction string

// Values lists the actions.
func (MailboxAction) Values() []string { return []string{"none", "moved_to_junk", "deleted"} }

// ReportedEmailFilter says which reported mails are wanted.
type ReportedEmailFilter struct {
	Period       // of reporting
	Class        *EmailClass
	UpdatedSince *time.Time
}

// ClassificationLife is how long a classification is kept for those who report
// its message later.
const ClassificationLife = 400 * 24 * time.Hour

// MessageKey returns the text that a Message-ID is compared by: without angle brackets
// and white space around it.
func MessageKey(id string) string {
	id = strings.TrimSpace(id)
	if inner, ok := strings.CutPrefix(id, "<"); ok {
		id = strings.TrimSuffix(inner, ">")
	}
	return strings.TrimSpace(id)
}

// SimulatedMessage returns the id of the simulated mail in a message key; the zero id
// if there is none. The caller checks that such a mail exists.
func SimulatedMessage(key string) ResultID {
	local, _, _ := strings.Cut(key, "@")
	id, err := ParseUUID[ResultKind](strings.ToLower(local))
	if err != nil {
		return ResultID{}
	}
	return id
}

// SentClass is a class that a signal may name.
type SentClass EmailClass

// Values lists the classes but for ClassPending.
func (SentClass) Values() []string {
	return slices.DeleteFunc(ClassPending.Values(), func(c string) bool { return c == string(ClassPending) })
}
