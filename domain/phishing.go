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

// ResultStatus is the status of a simulated email: the furthest step that its user took. It never goes back.
type ResultStatus string

// The states of a result, in their order.
const (
	ResultScheduled            ResultStatus = "scheduled"
	ResultSent                 ResultStatus = "sent"
	ResultOpened               ResultStatus = "opened"
	ResultAttachmentOpened     ResultStatus = "attachment_opened"
	ResultClicked              ResultStatus = "clicked"
	ResultCredentialsSubmitted ResultStatus = "credentials_submitted"
	// ResultFailed is the status of an email that will never be sent.
	ResultFailed ResultStatus = "failed"
)

// Values lists the states in their order.
func (ResultStatus) Values() []string {
	return texts(
		ResultScheduled, ResultSent, ResultOpened, ResultAttachmentOpened, ResultClicked,
		ResultCredentialsSubmitted, ResultFailed,
	)
}

// Beyond reports whether the state comes after other in the order of Values.
func (s ResultStatus) Beyond(other ResultStatus) bool {
	order := s.Values()
	return slices.Index(order, string(s)) > slices.Index(order, string(other))
}

// Result is a simulated email to a user, with its result. Its status and times record actions of people. Automated
// records actions of mail scanners (decisions 7.2, 7.3).
type Result struct {
	ID       ResultID   `bun:",pk"`
	User     UserID     `bun:"user_id"`
	Template TemplateID `bun:"template_id"`
	Status   ResultStatus
	Reported bool
	// Automated is true if a mail scanner opened or clicked the email. AutomatedReason is the rule that detected it
	// first.
	Automated       bool
	AutomatedReason AutomatedReason `bun:",nullzero"`

	SendAt time.Time
	// The times are nil for steps that did not happen.
	SentAt, OpenedAt, AttachmentOpenedAt, ClickedAt, CredentialsSubmittedAt, ReportedAt *time.Time
	// Label is the caller's name of what the email belongs to, empty for none, and LabelKey its SortKey. All emails of a
	// client whose labels have the same key have the same label, that of the first (decisions 4.2).
	Label    string `bun:",nullzero"`
	LabelKey string `bun:",nullzero"`

	// FailedAt is the time at which sending failed for good, and Failure is the reason.
	FailedAt *time.Time
	Failure  string `bun:",nullzero"`

	CreatedAt, UpdatedAt time.Time
}

// FailureCancelled is the Failure of an email that a caller cancelled before it was sent.
const FailureCancelled = "cancelled"

// FailureGivenUp and FailureRefused are the Failures of an email that was never accepted: within MailLife, or because
// the mail server refused it for good. In Failure, a colon and the cause follow, which may name the operator's network.
const (
	FailureGivenUp = "given up"
	FailureRefused = "permanently refused"
)

// refusedBefore is how a refusal began in Failures that version 1.0 stored.
const refusedBefore = "the mail server refuses "

// PublicFailure returns the reason for a failure without what only concerns the operator (decisions 7.2); empty for
// none.
func (r *Result) PublicFailure() string {
	switch {
	case strings.HasPrefix(r.Failure, FailureGivenUp+":"):
		return FailureGivenUp
	case strings.HasPrefix(r.Failure, FailureRefused+":"), strings.HasPrefix(r.Failure, refusedBefore):
		return FailureRefused
	}
	return r.Failure
}

// Cancelled reports whether the email was cancelled.
func (r *Result) Cancelled() bool { return r.Status == ResultFailed && r.Failure == FailureCancelled }

// ResultEventKind is the kind of a step of a sent email: the status that it reached, or a report.
type ResultEventKind string

// The kinds of steps.
const (
	MailOpened               = ResultEventKind(ResultOpened)
	MailAttachmentOpened     = ResultEventKind(ResultAttachmentOpened)
	MailClicked              = ResultEventKind(ResultClicked)
	MailCredentialsSubmitted = ResultEventKind(ResultCredentialsSubmitted)

	MailReported ResultEventKind = "reported"
)

// ResultFilter selects results. A zero field does not restrict them.
type ResultFilter struct {
	User         *UserID
	Result       *ResultID
	Statuses     []ResultStatus
	LabelKey     *string
	Period       // the period of sending
	UpdatedSince *time.Time
	Sort         Sort // by send_at; empty for the order that depends on the bounds
}

// ResultOrder is the order of a list of results: the name of the column by which it is sorted.
type ResultOrder string

// The orders.
const (
	ByCreation ResultOrder = "created_at"
	BySending  ResultOrder = "sent_at"
	ByChange   ResultOrder = "updated_at"
	BySchedule ResultOrder = "send_at"
)

// Order returns the order in which the results that match the filter are listed. Without a sort, if the filter bounds a
// time, they are ordered by that time, so that one index both finds and sorts them; otherwise in order of creation.
func (f ResultFilter) Order() ResultOrder {
	switch {
	case f.Sort != "":
		return BySchedule
	case f.Since != nil || f.Until != nil:
		return BySending
	case f.UpdatedSince != nil:
		return ByChange
	}
	return ByCreation
}

// PhishingCounts are the numbers of simulated emails sent in a span of days, by the steps that their users have taken.
// Opened includes all later states. Clicked includes opened attachments and submitted credentials. Actions of email
// scanners do not count.
type PhishingCounts struct {
	Sent, Opened, Clicked, Reported, CredentialsSubmitted, AttachmentsOpened int
}

// PhishingLabel is a label of simulated emails, with counts of the emails that have it.
type PhishingLabel struct {
	ID    LabelID
	Label string
	// Sends is the number of emails that are not cancelled. The dates are the first and last send_at of these or, if all
	// are cancelled, of all.
	Sends                   int
	FirstSendAt, LastSendAt time.Time
	PhishingCounts
}

// PhishingSummary counts a client's simulated emails: those sent in the last 30, 90 and 365 days, including today, and
// all.
type PhishingSummary struct {
	Days30, Days90, Days365, Total PhishingCounts
	// RepeatClickers is the number of users who fell for two or more emails of the last 365 days.
	RepeatClickers int
}

// Template is a simulated email of the catalogue, which all clients share.
type Template struct {
	ID        TemplateID
	Name      string
	Language  Language
	Category  string
	Subject   string
	From      string `bun:"from_address"` // an address, with or without a name before it
	CreatedAt time.Time
	UpdatedAt time.Time `bun:",scanonly"`
	TemplateContent
}

// Sender returns the sender of the template's emails. Placeholders in the name are not replaced yet. It returns an
// error if the address has a placeholder, because its value could contain spaces.
func (t *Template) Sender() (mail.Address, error) {
	a, err := mail.ParseAddress(t.From)
	if err != nil {
		return mail.Address{}, fmt.Errorf("the sender is not an address: %w", err)
	}
	if strings.Contains(a.Address, "{{") {
		return mail.Address{}, errors.New("the sender's address contains a placeholder; only the name before it may")
	}
	return *a, nil
}

// FromEmail returns the sender's address without the name. If Sender returns an error, it returns From.
func (t *Template) FromEmail() string {
	a, err := t.Sender()
	if err != nil {
		return t.From
	}
	return a.Address
}

// Percent returns part as a percentage of whole, rounded to one decimal, half away from zero (decisions 2.7). If whole
// is 0, it returns 0.
func Percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(float64(part)*1000/float64(whole)) / 10
}
