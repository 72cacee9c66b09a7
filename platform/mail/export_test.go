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

// Pauses are those after failed tries.
var Pauses = pauses

// PauseAfter is the pause after so many tries.
func PauseAfter(tries int) time.Duration { return pauseAfter(tries) }

// UseClock has a sender take the time from a clock.
func UseClock(s Sender, c domain.Clock) { s.(*SMTP).clock = c }
