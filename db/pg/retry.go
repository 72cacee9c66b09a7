package pg

import (
	"context"
	"errors"
	"time"

	"partnerapi/domain"
)

// LockTimeout is the lock_timeout of a migration. It is short because other users of a table wait behind a waiting
// exclusive lock.
const LockTimeout = "500ms"

const (
	// lockTries bounds the tries of RetryLocked. All of them take about ten minutes.
	lockTries = 70
	// longestPause bounds the pause between tries.
	longestPause = 10 * time.Second
)

// RetryLocked runs do. If do fails with a lock timeout or a deadlock, it runs do again after a pause, with exponential
// backoff. During the pause other users of the locked tables proceed. do must have no effects if it fails.
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
