package domain

import (
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// ResultStatus says how far a simulated mail got. It only moves forward.
type ResultStatus string

// The states of a result, in their order.
const (
	ResultScheduled            ResultStatus = "scheduled"
	ResultSent                 ResultStatus = "sent"
	ResultOpened               ResultStatus = "opened"
	ResultAttachmentOpened     ResultStatus = "attachment_opened"
	ResultClicked              ResultStatus = "clicked"
	ResultCredentialsSubmitted ResultStatus = "credentials_submitted"
)

// Values lists the states in their order.
func (ResultStatus) Values() []string {
	return []string{
		string(ResultScheduled), string(ResultSent), string(ResultOpened), string(ResultAttachmentOpened),
		string(ResultClicked), string(ResultCredentialsSubmitted),
	}
}

// Beyond reports whether the state is a later one than other.
func (s ResultStatus) Beyond(other ResultStatus) bool {
	order := s.Values()
	return slices.Index(order, string(s)) > slices.Index(order, string(other))
}

// Result is a simulated mail to one user and what became of it.
type Result struct {
	ID       ResultID
	User     UserID
	Template TemplateID
	Status   ResultStatus
	Reported bool
	// Automated says that all that opened or clicked the mail so far was a mail
	// scanner; AutomatedReason how that was told. It counts in no rate and no
	// score (decisions 7.3).
	Automated       bool
	AutomatedReason string

	SendAt time.Time
	// The times are nil for what did not happen.
	SentAt, OpenedAt, AttachmentOpenedAt, ClickedAt, CredentialsSubmittedAt, ReportedAt *time.Time

	CreatedAt, UpdatedAt time.Time
}

// ResultEvent is something that happened to a simulated mail.
type ResultEvent struct {
	Kind ResultEventKind
	At   time.Time
	// Scanner is how the event was told to be a mail scanner's; empty for a
	// person's.
	Scanner string
}

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

// Advance returns the result after an event, and whether that changed it. The
// events of a mail may come in any order and repeatedly: the status never goes
// back, and what happened once is not taken a second time (decisions 7.2).
//
// An open or a click that was gone beyond before changes nothing. An attachment
// that was opened is another act than a click, and is kept beside it whichever
// is told of first.
//
// A person's acts outrank a scanner's: once a person opened or clicked, a
// scanner changes nothing, so that no scanner takes a person's act out of the
// counts. A person who gets as far as the scanner did, or falls for the mail in
// any way, takes the result over: the scanner's times are dropped, its status
// stays.
func (r Result) Advance(e ResultEvent) (Result, bool) {
	switch {
	case e.Kind == MailReported:
		if r.Reported {
			return r, false
		}
		r.Reported, r.ReportedAt = true, &e.At
		return r, true
	case e.Scanner != "":
		return r.scanned(e)
	case r.Automated:
		if e.Kind == MailOpened && r.Status.Beyond(ResultOpened) {
			return r, false
		}
		r.Automated, r.AutomatedReason, r.OpenedAt, r.ClickedAt = false, "", nil, nil
	case r.passed(e.Kind):
		return r, false
	}
	r.reach(e)
	return r, true
}

// scanned is Advance for what a scanner did.
func (r Result) scanned(e ResultEvent) (Result, bool) {
	person := r.Status.Beyond(ResultSent) && !r.Automated
	if person || e.Kind != MailOpened && e.Kind != MailClicked || !ResultStatus(e.Kind).Beyond(r.Status) {
		return r, false
	}
	r.Automated = true
	if r.AutomatedReason == "" {
		r.AutomatedReason = e.Scanner
	}
	r.reach(e)
	return r, true
}

// passed reports whether an event is late or repeated.
func (r *Result) passed(kind ResultEventKind) bool {
	if kind == MailAttachmentOpened {
		return r.AttachmentOpenedAt != nil
	}
	return !ResultStatus(kind).Beyond(r.Status)
}

// reach stores when the state of an event was reached.
func (r *Result) reach(e ResultEvent) {
	switch e.Kind {
	case MailOpened:
		r.OpenedAt = &e.At
	case MailAttachmentOpened:
		r.AttachmentOpenedAt = &e.At
	case MailClicked:
		r.ClickedAt = &e.At
	case MailCredentialsSubmitted:
		r.CredentialsSubmittedAt = &e.At
	}
	if status := ResultStatus(e.Kind); status.Beyond(r.Status) {
		r.Status = status
	}
}

// ResultFilter says which results are wanted.
type ResultFilter struct {
	User         *UserID
	Result       *ResultID
	Status       ResultStatus // empty for every state
	Period                    // of sending
	UpdatedSince *time.Time
	// Newest asks for the mails that were sent, newest first, in the place of
	// all in the order of their creation.
	Newest bool
}

// ResultOrder is what a list of results is sorted by: the name of a column.
type ResultOrder string

// The orders.
const (
	ByCreation ResultOrder = "created_at"
	BySending  ResultOrder = "sent_at"
	ByChange   ResultOrder = "updated_at"
)

// Order is the order of a filter's results: that of a bound, so that the index
// that finds them gives their order too.
func (f ResultFilter) Order() ResultOrder {
	switch {
	case f.Newest || f.Since != nil || f.Until != nil:
		return BySending
	case f.UpdatedSince != nil:
		return ByChange
	}
	return ByCreation
}

// PhishingCounts are the simulated mails that were sent in a span of days, and
// how many of them got how far since. What a scanner did does not count.
type PhishingCounts struct {
	Sent, Opened, Clicked, Reported, CredentialsSubmitted, AttachmentsOpened int
}

// PhishingSummary counts a client's simulated mails by when they were sent: in
// the last so many days, today included, and ever.
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

// Sender is whom the template's mails come from. Placeholders of the name are
// not filled yet; the address has none, for what they stand for can hold spaces.
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

// FromEmail is the sender's address without the name; what cannot be taken apart
// is returned as it is.
func (t *Template) FromEmail() string {
	a, err := t.Sender()
	if err != nil {
		return t.From
	}
	return a.Address
}
