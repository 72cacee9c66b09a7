package mail

import (
	"time"

	"partnerapi/platform/lease"
)

// backoff is the pauses after each failed try of a mail; the last one repeats until
// the mail is given up (domain.MailLife).
var backoff = lease.Backoff{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute,
	time.Hour,
}

// triedFor is how long a mail has been tried at the least that failed so often.
func triedFor(tries int) (total time.Duration) {
	for n := range tries {
		pause := backoff[min(n, len(backoff)-1)]
		total += pause - pause/10
	}
	return total
}
