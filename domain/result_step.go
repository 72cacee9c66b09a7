package domain

import "time"

// ResultStep is something that a simulated mail's reader, or a scanner, did
// with it: anything but the sending.
type ResultStep struct {
	Result ResultID
	Kind   ResultEventKind
	At     time.Time
	// Automated is how a scanner was told to have done it; empty for a person.
	Automated string
}

// How a mail scanner is told from a person (decisions 7.3): it asked for the
// head of a page only, sits in a listed network, or was too fast.
const (
	ByHeadRequest      = "head_request"
	FromScannerNetwork = "scanner_network"
	TooSoon            = "too_soon"
)

// soon is how soon after its delivery a mail is opened or clicked by scanners
// only (decisions 7.3).
const soon = 2 * time.Second

// WithinScan reports whether at is so soon after a delivery that only a scanner
// acts by then; false where the delivery is nil.
func WithinScan(sent *time.Time, at time.Time) bool { return sent != nil && at.Sub(*sent) < soon }

// Unsent reports whether the mail is not marked as sent: nobody can have done
// anything with it, but for a copy that goes out once more (see
// docs/operating.md).
func (r *Result) Unsent() bool { return r.SentAt == nil }

// Take returns the result after a step, and whether that changed it. Nothing is
// done with a mail that is not sent.
func (r Result) Take(s ResultStep) (Result, bool) {
	if r.Unsent() {
		return r, false
	}
	e := ResultEvent{Kind: s.Kind, At: s.At, Scanner: s.Automated}
	opens := s.Kind == MailOpened || s.Kind == MailClicked
	if opens && e.Scanner == "" && WithinScan(r.SentAt, s.At) {
		e.Scanner = TooSoon
	}
	return r.Advance(e)
}

// Counts are what the result adds to the counters of the day of its sending.
func (r *Result) Counts() (c PhishingCounts) {
	if r.SentAt == nil {
		return c
	}
	c.Sent, c.Reported = 1, one(r.Reported)
	if r.Automated {
		return c
	}
	c.Opened, c.AttachmentsOpened = one(r.OpenedAt != nil), one(r.AttachmentOpenedAt != nil)
	c.CredentialsSubmitted = one(r.CredentialsSubmittedAt != nil)
	c.Clicked = one(r.ClickedAt != nil || r.AttachmentOpenedAt != nil || r.CredentialsSubmittedAt != nil)
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
		CredentialsSubmitted: c.CredentialsSubmitted + o.CredentialsSubmitted, AttachmentsOpened: c.AttachmentsOpened + o.AttachmentsOpened,
	}
}

// Minus is what is left of c without o.
func (c PhishingCounts) Minus(o PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent - o.Sent, Opened: c.Opened - o.Opened, Clicked: c.Clicked - o.Clicked, Reported: c.Reported - o.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted - o.CredentialsSubmitted, AttachmentsOpened: c.AttachmentsOpened - o.AttachmentsOpened,
	}
}
