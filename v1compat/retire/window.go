package retire

import (
	"slices"
	"time"

	"partnerapi/domain"
)

// Window is the schedule of a brownout: Count windows, each as long as For, the
// first from Start on, and each of the others Every after the one before. A window
// holds its first moment and not its last.
type Window struct {
	ID    int64
	Start time.Time
	For   time.Duration
	// Every is at least For; 0 where Count is 1.
	Every time.Duration
	Count int
	// Keys are those that the windows are for; none means all. Only keys that are
	// in the phase Brownout are refused.
	Keys []domain.KeyID
}

// Ends is the end of the last window.
func (w Window) Ends() time.Time {
	return w.Start.Add(time.Duration(w.Count-1)*w.Every + w.For)
}

// Next returns the window that holds now or else the next one; ok is false when all
// are over.
func (w Window) Next(now time.Time) (from, to time.Time, ok bool) {
	n := 0
	if past := now.Sub(w.Start); past >= w.For && w.Every > 0 {
		n = int((past-w.For)/w.Every) + 1
	}
	from = w.Start.Add(time.Duration(n) * w.Every)
	to = from.Add(w.For)
	return from, to, n < w.Count && now.Before(to)
}

// isFor reports whether the windows are for a key.
func (w Window) isFor(key domain.KeyID) bool { return len(w.Keys) == 0 || slices.Contains(w.Keys, key) }
