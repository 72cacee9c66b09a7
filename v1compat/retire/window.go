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

// span is the time from a moment, which it holds, to another, which it does not.
type span struct{ from, to time.Time }

// spans are in the order of time, and neither overlap nor touch.
type spans []span

// union is the time in any of the windows.
func union(windows []Window) spans {
	var each spans
	for _, w := range windows {
		for n := range w.Count {
			from := w.Start.Add(time.Duration(n) * w.Every)
			each = append(each, span{from, from.Add(w.For)})
		}
	}
	slices.SortFunc(each, func(a, b span) int { return a.from.Compare(b.from) })

	var joined spans
	for _, s := range each {
		last := len(joined) - 1
		switch {
		case last < 0 || joined[last].to.Before(s.from):
			joined = append(joined, s)
		case joined[last].to.Before(s.to):
			joined[last].to = s.to
		}
	}
	return joined
}

// end is the end of the span that holds t; ok is false where none does.
func (s spans) end(t time.Time) (end time.Time, ok bool) {
	i, _ := slices.BinarySearchFunc(s, t, func(s span, t time.Time) int {
		if t.Before(s.to) {
			return 1
		}
		return -1
	})
	if i == len(s) || t.Before(s[i].from) {
		return time.Time{}, false
	}
	return s[i].to, true
}
