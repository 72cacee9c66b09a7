package mail

import "partnerapi/domain"

// What tests hold against each other.
const (
	SendWithin = sendWithin
	TryWithin  = tryWithin
	MarkWithin = markWithin
	LeaseFor   = leaseFor
)

// UseClock has a sender take the time from a clock.
func UseClock(s Sender, c domain.Clock) { s.(*SMTP).clock = c }
