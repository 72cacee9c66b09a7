package report

import (
	"math"
	"strconv"
	"strings"
)

// chartsSideBySide returns how many of the charts at the start of blocks share a row: 2, or
// 1 if there is only one chart or one of the two has bars with long labels.
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

// charts draws one or two charts in a row, each under its title, and "No data." for an empty chart.
func (l *layout) charts(blocks []Block) {
	const gap = 6.0
	width := (bodyWidth - gap*float64(len(blocks)-1)) / float64(len(blocks))
	var marks []mark
	for i, b := range blocks {
		c := b.(Chart)
		x := float64(i) * (width + gap)
		marks = append(marks, l.words(l.fit(c.Title, width, captionStyle), x, 4, captionStyle))
		if c.empty() {
			marks = append(marks, l.words("No data.", x, 10, bodyStyle))
			continue
		}
		marks = append(marks, func(y float64) { l.chart(&c, box{sideMargin + x, y + 6, width, chartHeight}) })
	}
	l.place(chartHeight+7, marks...)
	l.gap(2)
}

// empty reports whether a chart has no values, or a donut no values above 0.
func (c *Chart) empty() bool {
	for _, s := range c.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) && (c.Kind != Donut || v > 0) {
				return false
			}
		}
	}
	return true
}

// widest returns the width of the widest of a chart's labels, in millimetres.
func (l *layout) widest(labels []string) (widest float64) {
	for _, label := range labels {
		widest = max(widest, l.width(l.clean(label), labelStyle))
	}
	return widest
}

// scale returns round numbers for the ends of the value axis, and the number of steps
// between them. The axis includes 0, except for lines above half of their highest value.
func (c *Chart) scale() (lowest, highest float64, steps int) {
	lowest, highest = c.bounds()
	if c.Kind == Line && lowest > highest/2 {
		lowest = max(lowest-max(highest-lowest, highest/20)/2, 0)
	} else {
		lowest = min(lowest, 0)
	}
	highest = max(highest, lowest+1)

	step := c.step((highest - lowest) / 4)
	lowest, highest = math.Floor(lowest/step)*step, math.Ceil(highest/step)*step
	return lowest, highest, int(math.Round((highest - lowest) / step))
}

// step returns the least round number (1, 2, 2.5 or 5 times a power of 10) that is not
// below least. Only percentages have steps with fractions.
func (c *Chart) step(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, round := range []float64{1, 2, 2.5, 5} {
		step := round * power
		if step >= least && (c.Unit == "%" || step == math.Trunc(step)) {
			return step
		}
	}
	return max(10*power, 1)
}

// bounds returns the lowest and the highest value of the chart, which is not empty.
func (c *Chart) bounds() (lowest, highest float64) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				lowest, highest = min(lowest, v), max(highest, v)
			}
		}
	}
	return lowest, highest
}

// number returns a value with the unit: as an integer, or else with one decimal.
func (c *Chart) number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return countText(int(v)) + c.Unit
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + c.Unit
}
