package pg

import (
	"context"
	"errors"
	"time"

	"partnerapi/domain"
)

// LockTimeout is how long a migration waits for a lock on a table, in PostgreSQL's notation:
// other users of the table wait behind it for as long.
const LockTimeout = "500ms"

const (
	// lockTries bounds the tries of RetryLocked, which take about ten minutes.
	lockTries = 70
	// longestPause is its pause before the later ones.
	longestPause = 10 * time.Second
)

// RetryLocked runs do, and runs it again after a pause (backoff) while it fails with a lock
// timeout or a deadlock. Other users of what it locks proceed during the pause. do must leave
// nothing behind if it fails.
func RetryLocked(ctx context.Context, do func() error) error {
	pause := 250 * time.Millisecond
	for try := 1; ; try++ {
		err := do()
		busy := refusedAs(err, "55P03", "40P01") // lock_not_available, deadlock_detected
		if !busy || try == lockTries {
			return err
		}
		if domain.Pause(ctx, pause) != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		pause = min(2*pause, longestPause)
	}
}
