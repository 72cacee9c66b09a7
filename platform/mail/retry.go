package mail

import (
	"time"

	"partnerapi/platform/lease"
)

// pauses are those after each failed try of a mail; the last one repeats until
// the mail is given up (domain.MailLife).
var pauses = lease.Pauses{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute,
	time.Hour,
}

// triedFor is how long a mail has been tried at the least that failed so often.
func triedFor(tries int) (total time.Duration) {
	for n := range tries {
		pause := pauses[min(n, len(pauses)-1)]
		total += pause - pause/10
	}
	return total
}
