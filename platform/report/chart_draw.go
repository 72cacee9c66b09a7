package report

import (
	"math"

	"partnerapi/domain"
)

// The measures of charts, in millimeters.
const (
	chartHeight = 54.0 // of a Bar chart, below the title
	// lowHeight is that of a Line and a Donut, which leaves room for a summary of one page.
	lowHeight = 40.0
	// gradeWidth is the width of the grades at the right of a chart of scores.
	gradeWidth = 5.0
	// keySquare is the size of the square before the name of a series or a share, and
	// keyWidth its width with the space after it.
	keySquare = 2.2
	keyWidth  = keySquare + 1
	// labelHeight is the height of a line of labels below an axis.
	labelHeight = 4.0
	// labelGap is the space between an axis and its labels, and labelDrop the distance of
	// a label's baseline below its middle.
	labelGap, labelDrop = 1.5, 0.9
)

// box is a rectangle on the page, by its upper left corner, in millimeters.
type box struct{ x, y, width, height float64 }

// drawChart draws a chart that is not empty, with a legend if it has several series.
func (l *layout) drawChart(c *Chart, b box) {
	if c.Kind == Donut {
		l.drawDonut(c, b)
		return
	}
	if len(c.Series) > 1 {
		l.drawLegend(c, b)
		b.y, b.height = b.y+5, b.height-5
	}
	p := l.newPlot(c, b)
	if c.Grades {
		p.drawGrades()
	}
	p.drawAxes()
	if c.Kind == Line {
		p.drawLines()
	} else {
		p.drawBars()
	}
}

// drawKey writes the name of a series or a share after a square of its color.
func (l *layout) drawKey(name string, x, y float64, c color) {
	l.fill(x, y-keySquare/2, keySquare, keySquare, c)
	l.write(name, x+keyWidth, y+labelDrop, labelStyle)
}

// drawLegend writes the names of the series in a line at the top.
func (l *layout) drawLegend(c *Chart, b box) {
	const gap = 4.0
	names := make([]string, len(c.Series))
	width := -gap
	for i, s := range c.Series {
		names[i] = l.fit(onPage(s.Name), 40, labelStyle)
		width += keyWidth + l.width(names[i], labelStyle) + gap
	}
	x := b.x + (b.width-width)/2
	for i, name := range names {
		l.drawKey(name, x, b.y+keySquare, l.accents.series(i))
		x += keyWidth + l.width(name, labelStyle) + gap
	}
}

// drawDonut draws the shares of a whole clockwise from the top, and writes their names beside the donut. Values that
// are not above 0 are omitted.
func (l *layout) drawDonut(c *Chart, b box) {
	const gap, nameHeight, hole = 8.0, 5.0, 0.58
	radius := min(20, b.width/4, b.height/2)
	maxWidth := b.width - 2*radius - gap - keyWidth // of a name

	values := c.Series[0].Values
	names := make([]string, len(values)) // empty for a value that is not above 0
	sum, widest, shares := 0.0, 0.0, 0
	for i, value := range values {
		if value > 0 {
			number := ": " + c.number(value)
			names[i] = l.fit(c.Labels[i], maxWidth-l.width(number, labelStyle), labelStyle) + number
			widest = max(widest, l.width(names[i], labelStyle))
			sum += value
			shares++
		}
	}

	x, y := b.x+(maxWidth-widest)/2+radius, b.y+b.height/2
	nameX, nameY := x+radius+gap, y-nameHeight*float64(shares-1)/2
	angle := 90.0 // degrees, counter-clockwise from the right
	for i, color := range c.colors(l.accents) {
		if names[i] == "" {
			continue
		}
		begin := angle
		angle -= 360 * values[i] / sum
		l.pdf.SetFillColor(color.rgb())
		l.pdf.MoveTo(x, y)
		l.pdf.ArcTo(x, y, radius, radius, 0 /* rotation */, angle, begin)
		l.pdf.DrawPath("F")
		l.drawKey(names[i], nameX, nameY, color)
		nameY += nameHeight
	}
	l.pdf.SetFillColor(white.rgb())
	l.pdf.Circle(x, y, hole*radius, "F")
}

// plot is the layout of a chart with axes.
type plot struct {
	*layout
	chart *Chart
	// area is the area of the values, without the labels around it.
	area box
	// horizontal means that bars are horizontal, with their labels beside them.
	horizontal bool
	labels     []string
	// lowest and highest are the ends of the axis of values, and differ; steps is the number of steps between them.
	lowest, highest float64
	steps           int
}

// newPlot lays out a chart in b: area is b without the labels of both axes. Bars are horizontal if their labels are too
// wide to stand side by side. The value axis then has half as many steps, if their number is even.
func (l *layout) newPlot(c *Chart, b box) *plot {
	p := &plot{layout: l, chart: c}
	p.lowest, p.highest, p.steps = c.scale()
	maxWidth := 40.0 // of a label
	if c.Kind == Bar {
		maxWidth = max(min(maxWidth, (b.width-14)/float64(len(c.Labels))-4), 10) // 14: value axis, 4: gap
	}
	if p.horizontal = c.Kind == Bar && l.widest(c.Labels) > maxWidth; p.horizontal {
		maxWidth = b.width / 2.2
	}
	for _, label := range c.Labels {
		p.labels = append(p.labels, l.fit(label, maxWidth, labelStyle))
	}

	left, right := 0.0, 0.0
	if c.Grades {
		right = gradeWidth
	}
	if p.horizontal {
		left, right = l.widest(p.labels), 9 // for the number at a bar's end
		if p.steps%2 == 0 {
			p.steps /= 2 // the values at the steps are side by side, and need more width
		}
	} else {
		for step := range p.steps + 1 {
			left = max(left, l.width(c.number(p.value(step)), labelStyle))
		}
	}
	left += labelGap
	p.area = box{b.x + left, b.y + 3, b.width - left - right, b.height - 3 - labelHeight} // 3: space at the top
	return p
}

// value returns the value at a step of the value axis.
func (p *plot) value(step int) float64 {
	return p.lowest + (p.highest-p.lowest)*float64(step)/float64(p.steps)
}

// position returns the position of a value on the page: its x for horizontal bars, otherwise its y.
func (p *plot) position(value float64) float64 {
	part := (value - p.lowest) / (p.highest - p.lowest)
	if p.horizontal {
		return p.area.x + part*p.area.width
	}
	return p.area.y + (1-part)*p.area.height
}

// slot returns the begin and the size of a label's part of the label axis: along y for horizontal bars, otherwise along
// x. label is an index of labels; for len(labels), begin is the end of the axis.
func (p *plot) slot(label int) (begin, size float64) {
	begin, size = p.area.x, p.area.width
	if p.horizontal {
		begin, size = p.area.y, p.area.height
	}
	size /= float64(len(p.labels))
	return begin + float64(label)*size, size
}

// fillAlong fills a rectangle, from begin to end along the label axis and between two positions of the value axis. from
// may be before or after to.
func (p *plot) fillAlong(begin, end, from, to float64, c color) {
	if p.horizontal {
		p.fill(min(from, to), begin, math.Abs(to-from), end-begin, c)
	} else {
		p.fill(begin, min(from, to), end-begin, math.Abs(to-from), c)
	}
}

// writeAligned writes a text with its vertical middle at y. part is the fraction of its width that is left of x: 0 if
// the text begins at x, 0.5 if it is centered, 1 if it ends at x.
func (p *plot) writeAligned(text string, x, y, part float64) {
	p.write(text, x-part*p.width(text, labelStyle), y+labelDrop, labelStyle)
}

// writeBeside writes a text to the left of the area, with its vertical middle at y.
func (p *plot) writeBeside(text string, y float64) { p.writeAligned(text, p.area.x-labelGap, y, 1) }

// writeBelow writes a text below the area, centered at x.
func (p *plot) writeBelow(text string, x float64) {
	p.writeAligned(text, x, p.area.y+p.area.height+labelHeight-labelGap, 0.5)
}

// drawAxes draws a thin line at each step of the value axis, and writes the values and the labels. If the labels of a
// chart without horizontal bars do not fit side by side, it writes only every second, third or nth label.
func (p *plot) drawAxes() {
	const thin = 0.15
	value, label := p.writeBeside, p.writeBelow
	every := int(math.Ceil((p.widest(p.labels) + 2) * float64(len(p.labels)) / p.area.width))
	if p.horizontal {
		value, label = p.writeBelow, p.writeBeside
		every = 1
	}

	begin, _ := p.slot(0)
	end, _ := p.slot(len(p.labels))
	for step := range p.steps + 1 {
		position := p.position(p.value(step))
		p.fillAlong(begin, end, position, position+thin, faint)
		value(p.chart.number(p.value(step)), position)
	}
	for i := 0; i < len(p.labels); i += every {
		begin, size := p.slot(i)
		label(p.labels[i], begin+size/2)
	}
}

// drawGrades fills the band of each grade behind the chart, and writes the grade at its right end.
func (p *plot) drawGrades() {
	floor := 0.0
	for i, grade := range domain.GradesUpward {
		ceiling := float64(mostScore)
		if i < len(domain.GradeFloors) {
			ceiling = float64(domain.GradeFloors[i])
		}
		lower, upper := max(floor, p.lowest), min(ceiling, p.highest)
		if floor = ceiling; lower >= upper {
			continue
		}
		top, bottom := p.position(upper), p.position(lower)
		p.fill(p.area.x, top, p.area.width+gradeWidth, bottom-top, gradeColors[grade])
		p.writeAligned(string(grade), p.area.x+p.area.width+gradeWidth-labelGap, (top+bottom)/2, 1)
	}
}

// drawLines draws a line for each series, with a gap where a value is missing (NaN). If there are at most mostDots
// labels, it also draws a dot at each value, so that a value without neighbors is seen.
func (p *plot) drawLines() {
	const width, dot, mostDots = 0.5, 0.6, 31
	p.pdf.SetLineWidth(width)
	for i := range p.chart.Series {
		p.pdf.SetDrawColor(p.accents.series(i).rgb())
		p.pdf.SetFillColor(p.accents.series(i).rgb())
		previous := math.NaN()
		for n, value := range p.chart.Series[i].Values {
			begin, size := p.slot(n)
			x, y := begin+size/2, p.position(value)
			if !math.IsNaN(previous + value) { // neither is NaN
				p.pdf.Line(x-size, p.position(previous), x, y)
			}
			if !math.IsNaN(value) && len(p.labels) <= mostDots {
				p.pdf.Circle(x, y, dot, "F")
			}
			previous = value
		}
	}
}

// drawBars draws a bar for each value that is not missing (NaN), the bars of one label side by side. If there is only
// one series, and at most mostNumbers labels, it also writes the values at the ends of the bars.
func (p *plot) drawBars() {
	const mostNumbers = 16
	count := len(p.chart.Series)
	part := 0.8 // of the label's slot
	if count == 1 {
		part = min(0.6, 0.07*float64(len(p.labels)+1)) // narrow bars for few labels
	}
	for i := range p.chart.Series {
		for n, value := range p.chart.Series[i].Values {
			if math.IsNaN(value) {
				continue
			}
			begin, size := p.slot(n)
			width := size * part / float64(count)
			begin += size*(1-part)/2 + width*float64(i)
			p.fillAlong(begin, begin+width, p.position(0), p.position(value), p.accents.series(i))
			if count == 1 && len(p.labels) <= mostNumbers {
				p.writeBarNumber(begin+width/2, value, p.chart.numberAt(n))
			}
		}
	}
}

// writeBarNumber writes the text of a bar's value at the bar's end, or at 0 if the value is negative. middle is the
// middle of the bar along the label axis.
func (p *plot) writeBarNumber(middle, value float64, text string) {
	end := p.position(max(value, 0))
	if p.horizontal {
		p.writeAligned(text, end+0.7, middle, 0) // begins right of the bar
	} else {
		p.writeAligned(text, middle, end-1.6, 0.5) // centered above the bar
	}
}
