package domain

import (
	"slices"
	"strings"
	"time"
)

// ReportedEmail is a real email that a user reported (decisions 7.10).
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

// Classification is the outcome of the triage of an email, and the action of the mailbox.
type Classification struct {
	Class EmailClass
	// Action is empty if it is not known.
	Action MailboxAction
}

// EmailClass is the class that triage gives a reported email.
type EmailClass string

// The classes. ClassPending is the class before triage; no caller may send it.
const (
	ClassPhishing EmailClass = "phishing"
	ClassSpam     EmailClass = "spam"
	ClassSafe     EmailClass = "safe"
	ClassPending  EmailClass = "pending"
)

// Values lists the classes.
func (EmailClass) Values() []string { return texts(ClassPhishing, ClassSpam, ClassSafe, ClassPending) }

// MailboxAction is the action that the mailbox integration took with an email.
type MailboxAction string

// Values lists the actions.
func (MailboxAction) Values() []string { return []string{"none", "moved_to_junk", "deleted"} }

// ReportedEmailFilter selects reported emails. The zero value selects all.
type ReportedEmailFilter struct {
	Period       // of reporting
	Class        *EmailClass
	UpdatedSince *time.Time
	Sort         Sort // by reported_at; empty is ascending
}

// ClassificationLife is how long a classification is kept for users who report the same message later.
const ClassificationLife = 400 * 24 * time.Hour

// MessageKey returns a Message-ID in the form in which ids are compared: without white space around it, without a
// leading < and the > that closes it, and without white space inside of these.
func MessageKey(id string) string {
	id = strings.TrimSpace(id)
	if inner, ok := strings.CutPrefix(id, "<"); ok {
		id = strings.TrimSuffix(inner, ">")
	}
	return strings.TrimSpace(id)
}

// SimulatedMessage returns the result id before the @ of a message key, in upper or lower case; the zero id if the key
// has none. The caller checks that the result exists.
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

// Values lists the classes without ClassPending.
func (SentClass) Values() []string {
	return slices.DeleteFunc(ClassPending.Values(), func(c string) bool { return c == string(ClassPending) })
}
