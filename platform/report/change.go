package report

import (
	"math"
	"strconv"
	"strings"
)

// betterSign and worseSign are the signs of a change or a comparison, which do not rest on color.
const betterSign, worseSign = "▲ ", "▼ "

// text returns the change as a page shows it, with its sign.
func (c Change) text() string {
	switch c.Verdict {
	case Good:
		return betterSign + c.Text
	case Bad:
		return worseSign + c.Text
	}
	return c.Text
}

// direction says which of two values of a figure is better.
type direction int

// The directions.
const (
	neither direction = iota
	higherIsBetter
	lowerIsBetter
)

// verdict returns Good if a value is better than an earlier or another one, Bad if it is worse, otherwise Neutral.
func (d direction) verdict(value, other float64) Tone {
	switch {
	case d == neither || value == other:
		return Neutral
	case value > other == (d == higherIsBetter):
		return Good
	}
	return Bad
}

// amount returns the value of a figure as it is shown, and the number of its decimals; ok is false if it has none.
func amount(value any) (v float64, decimals int, ok bool) {
	switch v := value.(type) {
	case int:
		return float64(v), 0, true
	case WholePercent:
		return math.Round(float64(v)), 0, true
	case Percent:
		return math.Round(float64(v)*10) / 10, 1, true
	}
	return 0, 0, false
}

// difference returns by how much a value differs from an earlier one, both as shown, and the number of its decimals:
// those of the value that has fewer. ok is false if either has no amount.
func difference(value, earlier any) (by float64, decimals int, ok bool) {
	now, decimals, ok := amount(value)
	before, earlierDecimals, had := amount(earlier)
	return now - before, min(decimals, earlierDecimals), ok && had
}

// against returns the figure with its change from earlier, the value that it had in the period before. If either has no
// value, it returns the figure as it is.
func (f Figure) against(earlier any, d direction) Figure {
	change, decimals, ok := difference(f.Value, earlier)
	if !ok {
		return f
	}
	by := strings.TrimSuffix(strconv.FormatFloat(math.Abs(change), 'f', decimals, 64), ".0")
	if n, err := strconv.Atoi(by); err == nil {
		by = countText(n)
	}
	if _, count := f.Value.(int); !count {
		by = by + " " + map[bool]string{true: "point", false: "points"}[by == "1"]
	}

	verdict := d.verdict(change, 0)
	switch {
	case strings.HasPrefix(by, "0") && !strings.ContainsAny(by, "123456789"):
		f.Change = Change{Text: "Same as before"}
	case verdict == Good:
		f.Change = Change{Text: "Better by " + by, Verdict: Good}
	case verdict == Bad:
		f.Change = Change{Text: "Worse by " + by, Verdict: Bad}
	case change > 0:
		f.Change = Change{Text: by + " more than before"}
	default:
		f.Change = Change{Text: by + " fewer than before"}
	}
	return f
}

// countOr returns a count of the period before as an earlier value (see against), or nil if that period has no data.
func countOr(n int, data bool) any {
	if !data {
		return nil
	}
	return n
}

// The words of a comparison.
const (
	betterWord Word = "Better"
	worseWord  Word = "Worse"
)

// verdictCell returns the cell of a comparison's verdict; nil for Neutral.
func verdictCell(verdict Tone) any {
	switch verdict {
	case Good:
		return betterWord
	case Bad:
		return worseWord
	}
	return nil
}
