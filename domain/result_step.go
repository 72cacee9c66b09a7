package domain

import (
	"fmt"
	"time"
)

// ResultStep is something that a simulated mail's reader, or a scanner, did
// with it: anything but the sending.
type ResultStep struct {
	Result ResultID
	Kind   ResultEventKind
	At     time.Time
	// Automated is the rule that detected a scanner; empty for a person.
	Automated AutomatedReason
}

// AutomatedReason is the rule that detected a mail scanner (decisions 7.3).
type AutomatedReason string

// The reasons: a scanner asked for the head of a page only, sits in a listed
// network, or was too fast.
const (
	ByHead    AutomatedReason = "head"
	ByNetwork AutomatedReason = "network"
	ByHaste   AutomatedReason = "fast"
)

// Values lists the reasons.
func (AutomatedReason) Values() []string { return texts(ByHead, ByNetwork, ByHaste) }

// scannersWithin is the time after its delivery within which only scanners open or
// click a mail (decisions 7.3).
const scannersWithin = 2 * time.Second

// TooSoon reports whether at is less than scannersWithin after the delivery at sent.
func TooSoon(sent, at time.Time) bool { return at.Sub(sent) < scannersWithin }

// scanner returns the rule that detects a mail scanner in the step; empty for a person.
func (s ResultStep) scanner(sent time.Time) AutomatedReason {
	if s.Automated == "" && s.opens() && TooSoon(sent, s.At) {
		return ByHaste
	}
	return s.Automated
}

// opens reports whether the step is one that scanners take.
func (s ResultStep) opens() bool { return s.Kind == MailOpened || s.Kind == MailClicked }

// Unsent reports whether the mail is not marked as sent: no user can have acted on it,
// except on a copy that will be sent again (see docs/operating.md).
func (r Result) Unsent() bool { return r.SentAt == nil }

// Refuses says why a step is impossible: the mail was not sent, or was sent after
// the step. It is empty for a possible step (decisions 7.2).
func (r Result) Refuses(s ResultStep) string {
	switch {
	case r.Unsent():
		return "the mail of this result was not sent yet"
	case s.At.Before(*r.SentAt):
		return fmt.Sprintf("at: %s is before the mail was sent, at %s",
			s.At.Format(time.RFC3339Nano), r.SentAt.Format(time.RFC3339Nano))
	}
	return ""
}

// Advance returns the result after a step, and whether that changed it. A step that
// the result refuses changes nothing.
//
// The steps of a mail may come in any order and repeatedly: the status never goes
// back, and a repeated step changes nothing. Nor does an open or a click of a result
// that is already beyond it. The opening of an attachment is not a click, and is
// recorded beside it whichever is known first.
//
// That a scanner opened or clicked the mail is noted once. It moves no status and
// no time, and no person's step erases it. A scanner takes no other steps.
func (r Result) Advance(s ResultStep) (Result, bool) {
	if r.Refuses(s) != "" {
		return r, false
	}
	if reason := s.scanner(*r.SentAt); reason != "" {
		if r.Automated || !s.opens() {
			return r, false
		}
		r.Automated, r.AutomatedReason = true, reason
		return r, true
	}

	at := s.At
	switch s.Kind {
	case MailReported:
		if r.Reported {
			return r, false
		}
		r.Reported, r.ReportedAt = true, &at
		return r, true
	case MailAttachmentOpened:
		if r.AttachmentOpenedAt != nil {
			return r, false
		}
		r.AttachmentOpenedAt = &at
	default:
		if !ResultStatus(s.Kind).Beyond(r.Status) {
			return r, false
		}
		*r.timeOf(s.Kind) = &at
	}

	if status := ResultStatus(s.Kind); status.Beyond(r.Status) {
		r.Status = status
	}
	return r, true
}

// timeOf returns the field that holds the time of a step of the kind.
func (r *Result) timeOf(kind ResultEventKind) **time.Time {
	switch kind {
	case MailOpened:
		return &r.OpenedAt
	case MailClicked:
		return &r.ClickedAt
	}
	return &r.CredentialsSubmittedAt
}

// FellAt is when a person first fell for the mail: followed its link, opened its
// attachment or submitted credentials. Nil where no person did.
func (r *Result) FellAt() *time.Time {
	var first *time.Time
	for _, at := range []*time.Time{r.ClickedAt, r.AttachmentOpenedAt, r.CredentialsSubmittedAt} {
		if at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}

// Counts returns what the result adds to the counters of the day on which it was sent.
func (r *Result) Counts() (c PhishingCounts) {
	if r.SentAt == nil {
		return c
	}
	c.Sent, c.Reported = 1, one(r.Reported)
	c.Opened, c.Clicked = one(r.Status.Beyond(ResultSent)), one(r.Status.Beyond(ResultOpened))
	c.AttachmentsOpened = one(r.AttachmentOpenedAt != nil)
	c.CredentialsSubmitted = one(r.CredentialsSubmittedAt != nil)
	return c
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Plus is the sum of both.
func (c PhishingCounts) Plus(o PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent + o.Sent, Opened: c.Opened + o.Opened, Clicked: c.Clicked + o.Clicked, Reported: c.Reported + o.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted + o.CredentialsSubmitted,
		AttachmentsOpened:    c.AttachmentsOpened + o.AttachmentsOpened,
	}
}

// Minus returns c less o.
func (c PhishingCounts) Minus(o PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent - o.Sent, Opened: c.Opened - o.Opened, Clicked: c.Clicked - o.Clicked, Reported: c.Reported - o.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted - o.CredentialsSubmitted,
		AttachmentsOpened:    c.AttachmentsOpened - o.AttachmentsOpened,
	}
}
