package mail

import (
	"time"

	"partnerapi/domain"
)

// What tests hold against each other.
const (
	SendWithin = sendWithin
	TryWithin  = tryWithin
	MarkWithin = markWithin
	LeaseFor   = leaseFor
)

// Backoff is the pauses after failed tries.
var Backoff = backoff

// PauseAfter is the pause after the given number of tries.
func PauseAfter(tries int) time.Duration { return backoff.After(tries) }

// UseClock has a sender take the time from a clock.
func UseClock(s Sender, c domain.Clock) { s.(*SMTP).clock = c }
