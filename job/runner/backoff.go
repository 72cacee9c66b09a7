package runner

import (
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// pauses are those after each failure of a job; the last one repeats.
var pauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// backoff says when a job is tried again.
type backoff struct{}

// NextRetry is the time of the next try. A job of a process that died is tried
// at once: it did not fail.
func (backoff) NextRetry(row *rivertype.JobRow) time.Time {
	now := time.Now()
	if row.AttemptedAt != nil && now.Sub(*row.AttemptedAt) >= rescueAfter {
		return now
	}
	return now.Add(pauseAfter(row.Attempt))
}

// pauseAfter is the pause after so many tries, a tenth more or less, so that
// jobs that failed together are not all tried together.
func pauseAfter(tries int) time.Duration {
	pause := pauses[min(max(tries, 1), len(pauses))-1]
	return pause - pause/10 + rand.N(pause/5)
}
