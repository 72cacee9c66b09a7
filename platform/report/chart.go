package report

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// chartsSideBySide returns how many charts at the start of blocks share a row: 2 if the first two blocks are charts and
// neither has bars with long labels, otherwise 1. The first block is a chart.
func (l *layout) chartsSideBySide(blocks []Block) int {
	const longLabel = 36
	for _, b := range blocks[:min(len(blocks), 2)] {
		c, ok := b.(Chart)
		if !ok || c.Kind == Bar && l.widest(c.Labels) > longLabel {
			return 1
		}
	}
	return min(len(blocks), 2)
}

// drawCharts draws one or two charts in a row, each under its title, and "No data." for an empty chart.
func (l *layout) drawCharts(blocks []Block) {
	const gap = 6.0
	width := (bodyWidth - gap*float64(len(blocks)-1)) / float64(len(blocks))
	height := lowHeight
	var marks []mark
	for _, b := range blocks {
		if c := b.(Chart); c.Kind == Bar {
			height = chartHeight
		}
	}
	for i, b := range blocks {
		c := b.(Chart)
		x := float64(i) * (width + gap)
		marks = append(marks, l.words(l.fit(onPage(c.Title), width, captionStyle), x, 4, captionStyle))
		if c.empty() {
			marks = append(marks, l.words("No data.", x, 10, bodyStyle))
			continue
		}
		marks = append(marks, func(y float64) { l.drawChart(&c, box{sideMargin + x, y + 6, width, height}) })
	}
	l.place(height+7, marks...)
	l.addGap(2)
}

// empty reports whether a chart has no values; for a Donut, whether it has no values above 0.
func (c *Chart) empty() bool {
	for v := range c.values() {
		if c.Kind != Donut || v > 0 {
			return false
		}
	}
	return true
}

// values returns the values of all series, without missing values (NaN).
func (c *Chart) values() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for _, s := range c.Series {
			for _, v := range s.Values {
				if !math.IsNaN(v) && !yield(v) {
					return
				}
			}
		}
	}
}

// widest returns the width of the widest label, in millimeters.
func (l *layout) widest(labels []string) (widest float64) {
	for _, label := range labels {
		widest = max(widest, l.width(l.clean(label), labelStyle))
	}
	return widest
}

// scale returns round numbers for the ends of the value axis of a chart that is not empty, and the number of steps
// between them. The axis includes 0, except for a chart of scores.
func (c *Chart) scale() (lowest, highest float64, steps int) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	for v := range c.values() {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	if c.Grades {
		return scoreScale(lowest, highest)
	}
	lowest = min(lowest, 0)
	highest = max(highest, lowest+1) // the range is not 0

	step := c.step((highest - lowest) / 4) // about four steps
	lowest, highest = math.Floor(lowest/step)*step, math.Ceil(highest/step)*step
	return lowest, highest, int(math.Round((highest - lowest) / step))
}

// mostScore is the maximum risk score.
const mostScore = 1000

// scoreScale returns the ends of the axis of scores, and the number of steps of 100 points between them. The axis shows
// at least 100 points below and above the scores, and 300 in all, so that a change of 2% looks small.
func scoreScale(lowest, highest float64) (from, to float64, steps int) {
	const step = 100.0
	from = max(math.Floor(lowest/step)*step-step, 0)
	to = min(math.Ceil(highest/step)*step+step, mostScore)
	from = max(min(from, to-3*step), 0)
	to = max(to, from+3*step)
	return from, to, int((to - from) / step)
}

// step returns the least round number (1, 2, 2.5 or 5 times a power of 10) that is not below least. It is an integer
// unless the values are percentages.
func (c *Chart) step(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, round := range []float64{1, 2, 2.5, 5} {
		step := round * power
		if step >= least && (c.Unit == "%" || step == math.Trunc(step)) {
			return step
		}
	}
	return max(10*power, 1) // the next power of 10, as an integer
}

// numberAt returns the text of the value at an index of a chart with one series.
func (c *Chart) numberAt(i int) string {
	if c.Numbers != nil {
		return c.Numbers[i]
	}
	return c.number(c.Series[0].Values[i])
}

// number returns a value with the unit as text: without decimals if it is an integer (or rounds to one), otherwise with
// one.
func (c *Chart) number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 { // an int holds it
		return countText(int(v)) + c.Unit
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + c.Unit
}
