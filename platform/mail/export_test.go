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

// PauseAfter is the pause after the given number of tries.
func PauseAfter(tries int) time.Duration { return pauses.After(tries) }

// UseClock has a sender take the time from a clock.
func UseClock(s Sender, c domain.Clock) { s.(*SMTP).clock = c }
