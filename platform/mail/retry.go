package mail

import (
	"math/rand/v2"
	"time"
)

// pauses are those after each failed try of a mail; the last one repeats until
// the mail is given up (domain.MailLife).
var pauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute,
	time.Hour,
}

// pauseAfter is the pause after so many tries, a tenth more or less, so that
// mails that failed together are not all tried together.
func pauseAfter(tries int) time.Duration {
	pause := pauses[min(max(tries, 1), len(pauses))-1]
	return pause - pause/10 + rand.N(pause/5)
}
