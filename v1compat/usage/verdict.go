package usage

import "time"

// Verdict says how far a key is on its way from an operation of version 1 to the
// one that follows it, or from version 1 as a whole.
type Verdict string

// The verdicts. A call of version 1 counts whatever it was answered, a call of the
// successor only if it did not fail.
const (
	// Moved: the successor was called after the last call of version 1, and that is
	// at least Quiet ago.
	Moved Verdict = "moved"
	// HalfWay: the successor was called, and it is not Moved or Stopped.
	HalfWay Verdict = "half-way"
	// NotBegun: the successor was never called, and it is not Stopped.
	NotBegun Verdict = "not begun"
	// Stopped: the last call of version 1 is at least Silent ago, and the successor
	// was not called since. Nothing shows that the caller moved, but nothing calls
	// version 1 either.
	Stopped Verdict = "stopped"
)

// Verdicts lists the verdicts, from the one that needs most attention.
var Verdicts = []Verdict{NotBegun, HalfWay, Stopped, Moved}

const (
	// Quiet is how long version 1 must not have been called by who moved.
	Quiet = 7 * 24 * time.Hour
	// Silent is how long version 1 was not called by who stopped.
	Silent = 30 * 24 * time.Hour
)

// verdictOf judges an operation by its last call, and by the last call of its
// successor that did not fail; zero for none.
func verdictOf(called, answered, now time.Time) Verdict {
	since := now.Sub(called)
	switch {
	case answered.After(called) && since >= Quiet:
		return Moved
	case !answered.After(called) && since >= Silent:
		return Stopped
	case answered.IsZero():
		return NotBegun
	}
	return HalfWay
}

// together judges a key by its operations, leaving out those that it stopped to
// call: it has moved when it moved from all others, and not begun when it has with
// none.
func together(operations []Operation) Verdict {
	counts := map[Verdict]int{}
	for _, o := range operations {
		counts[o.Verdict]++
	}
	switch len(operations) - counts[Stopped] {
	case 0:
		return Stopped
	case counts[Moved]:
		return Moved
	case counts[NotBegun]:
		return NotBegun
	}
	return HalfWay
}
