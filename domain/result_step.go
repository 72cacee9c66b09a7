package domain

import (
	"fmt"
	"time"
)

// ResultStep is an event of a simulated email after its sending, caused by its reader or by a scanner.
type ResultStep struct {
	Result ResultID
	Kind   ResultEventKind
	At     time.Time
	// Automated is the rule by which the sender of the step detected a scanner; empty for a person.
	Automated AutomatedReason
}

// AutomatedReason is the rule that detected a mail scanner (decisions 7.3).
type AutomatedReason string

// The reasons: the scanner sent a HEAD request, announced a prefetch, has an IP address in a listed network, or was too
// fast.
const (
	ByHead     AutomatedReason = "head"
	ByPrefetch AutomatedReason = "prefetch"
	ByNetwork  AutomatedReason = "network"
	ByHaste    AutomatedReason = "fast"
)

// Values lists the reasons.
func (AutomatedReason) Values() []string { return texts(ByHead, ByPrefetch, ByNetwork, ByHaste) }

// scannersWithin is the time after the sending of an email in which every open and click counts as a scanner's
// (decisions
// 7.3).
const scannersWithin = 2 * time.Second

// TooSoon reports whether at is before sent, or less than scannersWithin after it.
func TooSoon(sent, at time.Time) bool { return at.Sub(sent) < scannersWithin }

// scannerRule returns the rule by which the step is a scanner's: s.Automated, or ByHaste for an open or click that is
// TooSoon after the sending; empty for a person.
func (s ResultStep) scannerRule(sent time.Time) AutomatedReason {
	if s.Automated == "" && s.opens() && TooSoon(sent, s.At) {
		return ByHaste
	}
	return s.Automated
}

// opens reports whether the step is an open or a click, the only steps of scanners.
func (s ResultStep) opens() bool { return s.Kind == MailOpened || s.Kind == MailClicked }

// Unsent reports whether the email is not marked as sent. No user can have acted on such an email, unless the process
// stopped after it sent the email and before it marked it. Such an email is sent again (docs/operate/emails.md).
func (r Result) Unsent() bool { return r.SentAt == nil }

// Refuses returns the reason why a step is impossible: the email was not sent, or was sent after the step. It returns
// "" for a possible step (decisions 7.2).
func (r Result) Refuses(s ResultStep) string {
	switch {
	case r.Unsent():
		return "the email of this result has not been sent yet"
	case s.At.Before(*r.SentAt):
		return fmt.Sprintf("at: %s is before the email was sent, at %s",
			s.At.Format(time.RFC3339Nano), r.SentAt.Format(time.RFC3339Nano))
	}
	return ""
}

// Advance returns the result after a step, and whether the step changed it. A step that the result Refuses changes
// nothing.
//
// The steps of an email may arrive in any order and repeatedly. A person's first report is recorded without a change of
// the status. The first opening of an attachment sets its time, and raises the status unless the result is already
// beyond it. Any other step sets its time and raises the status, but only if the result is not already beyond it.
//
// The first open or click of a scanner is recorded as Automated, without a change of status or times; no later step
// erases it. Other steps of a scanner change nothing.
func (r Result) Advance(s ResultStep) (Result, bool) {
	if r.Refuses(s) != "" {
		return r, false
	}
	if reason := s.scannerRule(*r.SentAt); reason != "" {
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

// timeOf returns a pointer to the field with the time of an open, a click or a submission of credentials.
func (r *Result) timeOf(kind ResultEventKind) **time.Time {
	switch kind {
	case MailOpened:
		return &r.OpenedAt
	case MailClicked:
		return &r.ClickedAt
	}
	return &r.CredentialsSubmittedAt
}

// FellAt returns the time at which a person first fell for the email: clicked its link, opened its attachment or
// submitted credentials; nil if no person did.
func (r *Result) FellAt() *time.Time {
	var first *time.Time
	for _, at := range []*time.Time{r.ClickedAt, r.AttachmentOpenedAt, r.CredentialsSubmittedAt} {
		if at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}

// Counts returns the counts, each 0 or 1, that the result adds to the counters of the day on which it was sent; all are
// 0 if it was not sent. An opened attachment counts as a click.
func (r *Result) Counts() (c PhishingCounts) {
	if r.SentAt == nil { // also of every failed email
		return c
	}
	c.Sent, c.Reported = 1, oneIf(r.Reported)
	c.Opened, c.Clicked = oneIf(r.Status.Beyond(ResultSent)), oneIf(r.Status.Beyond(ResultOpened))
	c.AttachmentsOpened = oneIf(r.AttachmentOpenedAt != nil)
	c.CredentialsSubmitted = oneIf(r.CredentialsSubmittedAt != nil)
	return c
}

// oneIf returns 1 if b is true, and 0 otherwise.
func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Plus returns c plus o, field by field.
func (c PhishingCounts) Plus(o PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent + o.Sent, Opened: c.Opened + o.Opened, Clicked: c.Clicked + o.Clicked, Reported: c.Reported + o.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted + o.CredentialsSubmitted,
		AttachmentsOpened:    c.AttachmentsOpened + o.AttachmentsOpened,
	}
}

// Minus returns c minus o, field by field.
func (c PhishingCounts) Minus(o PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent - o.Sent, Opened: c.Opened - o.Opened, Clicked: c.Clicked - o.Clicked, Reported: c.Reported - o.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted - o.CredentialsSubmitted,
		AttachmentsOpened:    c.AttachmentsOpened - o.AttachmentsOpened,
	}
}
