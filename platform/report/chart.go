package report

import (
	"math"
	"strconv"
	"strings"
)

// chartsSideBySide returns how many of the charts that blocks begin with share a row:
// two, or one, as bars with long labels need the whole width.
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

// charts draws one or two charts in a row, each under its title.
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

// empty reports whether a chart has no values, or a donut none above 0.
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

// widest is how wide the widest of a chart's labels is.
func (l *layout) widest(labels []string) (widest float64) {
	for _, label := range labels {
		widest = max(widest, l.width(l.clean(label), labelStyle))
	}
	return widest
}

// scale returns round numbers for the ends of the value axis, and the number of steps
// between them. The axis begins at 0, except for lines far above it.
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

// step returns the least round number that is not below least. Only percentages have
// steps with fractions.
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

// bounds are the lowest and the highest value.
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

// number is a value as the chart writes it, without needless decimals.
func (c *Chart) number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return countText(int(v)) + c.Unit
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + c.Unit
}
