package domain

import (
	"errors"
	"fmt"
	"math"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// ResultStatus says how far people got with a simulated mail. It only moves
// forward.
type ResultStatus string

// The states of a result, in their order.
const (
	ResultScheduled            ResultStatus = "scheduled"
	ResultSent                 ResultStatus = "sent"
	ResultOpened               ResultStatus = "opened"
	ResultAttachmentOpened     ResultStatus = "attachment_opened"
	ResultClicked              ResultStatus = "clicked"
	ResultCredentialsSubmitted ResultStatus = "credentials_submitted"
	// ResultFailed is that of a mail that will never be sent.
	ResultFailed ResultStatus = "failed"
)

// Values lists the states in their order.
func (ResultStatus) Values() []string {
	return texts(
		ResultScheduled, ResultSent, ResultOpened, ResultAttachmentOpened, ResultClicked,
		ResultCredentialsSubmitted, ResultFailed,
	)
}

// Beyond reports whether the state is a later one than other.
func (s ResultStatus) Beyond(other ResultStatus) bool {
	order := s.Values()
	return slices.Index(order, string(s)) > slices.Index(order, string(other))
}

// Result is a simulated mail to one user and what became of it. Its status and
// times record what people did; Automated records what mail scanners did (decisions
// 7.2, 7.3).
type Result struct {
	ID       ResultID
	User     UserID
	Template TemplateID
	Status   ResultStatus
	Reported bool
	// Automated says that a mail scanner opened or clicked the mail, and
	// AutomatedReason the rule that detected it first.
	Automated       bool
	AutomatedReason AutomatedReason

	SendAt time.Time
	// The times are nil for what did not happen.
	SentAt, OpenedAt, AttachmentOpenedAt, ClickedAt, CredentialsSubmittedAt, ReportedAt *time.Time
	// FailedAt is when it became certain that the mail will never be sent, and
	// Failure says why.
	FailedAt *time.Time
	Failure  string

	CreatedAt, UpdatedAt time.Time
}

// FailureCancelled is the failure of a mail that a caller cancelled before it was sent.
const FailureCancelled = "cancelled"

// Cancelled reports whether the mail was cancelled.
func (r *Result) Cancelled() bool { return r.Status == ResultFailed && r.Failure == FailureCancelled }

// ResultEventKind says what happened: a mail that was sent reached a further
// state, or was reported.
type ResultEventKind string

// What can happen to a simulated mail that was sent.
const (
	MailOpened               = ResultEventKind(ResultOpened)
	MailAttachmentOpened     = ResultEventKind(ResultAttachmentOpened)
	MailClicked              = ResultEventKind(ResultClicked)
	MailCredentialsSubmitted = ResultEventKind(ResultCredentialsSubmitted)

	MailReported ResultEventKind = "reported"
)

// ResultFilter says which results are wanted.
type ResultFilter struct {
	User         *UserID
	Result       *ResultID
	Statuses     []ResultStatus // none for every state
	Period                      // of sending
	UpdatedSince *time.Time
}

// ResultOrder is what a list of results is sorted by: the name of a column.
type ResultOrder string

// The orders.
const (
	ByCreation ResultOrder = "created_at"
	BySending  ResultOrder = "sent_at"
	ByChange   ResultOrder = "updated_at"
)

// Order returns the order in which results that match the filter are listed: by the
// time that the filter bounds, so that one index both finds and sorts them, else by
// creation.
func (f ResultFilter) Order() ResultOrder {
	switch {
	case f.Since != nil || f.Until != nil:
		return BySending
	case f.UpdatedSince != nil:
		return ByChange
	}
	return ByCreation
}

// PhishingCounts counts the simulated mails sent in a span of days, and what their
// readers did since. Opened includes all further states, Clicked also opened
// attachments and submitted credentials. What a scanner did does not count.
type PhishingCounts struct {
	Sent, Opened, Clicked, Reported, CredentialsSubmitted, AttachmentsOpened int
}

// PhishingSummary counts a client's simulated mails by when they were sent: in
// the last 30, 90 and 365 days, today included, and ever.
type PhishingSummary struct {
	Days30, Days90, Days365, Total PhishingCounts
	// RepeatClickers are the users who fell for two or more mails of the last
	// 365 days.
	RepeatClickers int
}

// Template is a simulated mail of the catalogue, which all clients share.
type Template struct {
	ID        TemplateID
	Name      string
	Language  Language
	Category  string
	Subject   string
	From      string // an address, which may have a name before it
	CreatedAt time.Time
	TemplateContent
}

// Sender returns the sender of the template's mails. Placeholders in the name are not
// filled yet. It fails if the address has one, whose value could hold spaces.
func (t *Template) Sender() (mail.Address, error) {
	a, err := mail.ParseAddress(t.From)
	if err != nil {
		return mail.Address{}, fmt.Errorf("the sender is not an address: %w", err)
	}
	if strings.Contains(a.Address, "{{") {
		return mail.Address{}, errors.New("the sender's address holds a placeholder; only the name before it may")
	}
	return *a, nil
}

// FromEmail returns the sender's address without the name, or all of From if Sender
// fails.
func (t *Template) FromEmail() string {
	a, err := t.Sender()
	if err != nil {
		return t.From
	}
	return a.Address
}

// Percent is part of whole as a percentage with one decimal, half away from
// zero (decisions 2.7); 0 of nothing.
func Percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(float64(part)*1000/float64(whole)) / 10
}
