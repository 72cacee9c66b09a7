package mail

import "partnerapi/domain"

// SendWithin is what must be left of a job's time for a message to be begun.
const SendWithin = sendWithin

// UseClock has a sender take the time from a clock.
func UseClock(s Sender, c domain.Clock) { s.(*SMTP).clock = c }
