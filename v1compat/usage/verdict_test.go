package usage

import (
	"slices"
	"testing"
	"time"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// TestVerdicts: by how long ago v1 was called last, and its successor; 0 is never.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		called, answered time.Duration
		want             Verdict
	}{
		{hour, 0, NotBegun},
		{29 * day, 0, NotBegun},
		{30*day - 1, 0, NotBegun},
		{30 * day, 0, Stopped},
		{300 * day, 0, Stopped},
		{hour, 2 * hour, HalfWay},
		{2 * hour, hour, HalfWay},
		{7*day - 1, hour, HalfWay},
		{7 * day, hour, Moved},
		{300 * day, hour, Moved},
		{300 * day, 299 * day, Moved},
		{8 * day, 9 * day, HalfWay}, // it went back
		{8 * day, 8 * day, HalfWay},
		{29 * day, 90 * day, HalfWay},
		{30 * day, 90 * day, Stopped}, // it tried, and then stopped both
		{-hour, -2 * hour, HalfWay},   // the clock of this process is behind
	} {
		var answered *time.Time
		if c.answered != 0 {
			answered = new(noon.Add(-c.answered))
		}
		if got := verdictOf(noon.Add(-c.called), answered, noon); got != c.want {
			t.Errorf("v1 %v ago, its successor %v ago: %s, not %s", c.called, c.answered, got, c.want)
		}
	}
}

func TestVerdictOfAKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   []Verdict
		want Verdict
	}{
		{[]Verdict{Moved}, Moved},
		{[]Verdict{Moved, Moved}, Moved},
		{[]Verdict{Moved, Stopped}, Moved},
		{[]Verdict{NotBegun, Stopped}, NotBegun},
		{[]Verdict{NotBegun, NotBegun}, NotBegun},
		{[]Verdict{NotBegun, Moved}, HalfWay},
		{[]Verdict{HalfWay, Moved, Stopped}, HalfWay},
		{[]Verdict{HalfWay}, HalfWay},
		{[]Verdict{HalfWay, NotBegun}, HalfWay},
		{[]Verdict{Stopped, Stopped}, Stopped},
	} {
		var operations []Operation
		for _, v := range c.of {
			operations = append(operations, Operation{Verdict: v})
		}
		if got := overallVerdict(operations); got != c.want {
			t.Errorf("%v is %s, not %s", c.of, got, c.want)
		}
		slices.Reverse(operations)
		if got := overallVerdict(operations); got != c.want {
			t.Errorf("%v in the other order is %s, not %s", c.of, got, c.want)
		}
	}
}
