package v1cmd

import (
	"fmt"
	"math"
	"strings"
	"time"

	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// box is the area of a chart in which the curves are drawn, in the units of the viewBox that the page sets.
type box struct{ left, right, top, bottom float64 }

var (
	wide  = box{64, 716, 24, 244}
	small = box{3, 217, 3, 41}
)

const (
	// marks is the maximum number of days named below a chart.
	marks = 6
	// axisHeight is the height of the days below a chart, and laneHeight that of a phase or brownout.
	axisHeight, laneHeight = 28, 38
	// maxLanes is the maximum number of phases and brownouts below a chart.
	maxLanes = 8
	// minBar is the width with which a short window is visible.
	minBar = 3
)

// chart is two curves by day: the calls of v1, and the calls of its successors. Its last day is today, which is not
// over.
type chart struct {
	// Calls and Successors are the points of the curves up to yesterday, and CallsToday and SuccessorsToday those of the
	// step to today. Area is the outline of the space below Calls.
	Calls, Successors, CallsToday, SuccessorsToday, Area string
	// Rows are the horizontal grid lines with their numbers of calls; Marks are the days below the chart.
	Rows, Marks []tick
	// Words describe the curves for those who cannot see them.
	Words string

	// Height is the height of the viewBox, and Bottom the end of the curves' area.
	Height, Bottom float64
	// Events are the vertical lines of a chart with a future: today and the sunset. Forecast are the points of the
	// forecast.
	Events   []tick
	Forecast string
	Lanes    []lane

	axes
}

// tick is a position on a chart's axis, with its label.
type tick struct {
	At   float64
	Text string
	// Anchor is the part of Text that is placed at At: start, end or middle.
	Anchor string
}

// lane is a phase or a brownout below a chart.
type lane struct {
	// TextY and BarY are the positions of the label and the bars.
	TextY, BarY float64
	Text        string
	Class       string // bar, and lasting for a phase
	Bars        []bar
}

// bar is a time on a lane.
type bar struct{ X, Width float64 }

// axes convert days and calls to positions in a box.
type axes struct {
	box
	first domain.Date
	days  int   // of the axis, past and future
	most  int64 // the number of calls at the top
}

// x returns the position of a time in days after the beginning of the first day.
func (a axes) x(day float64) float64 {
	if a.days == 1 {
		return (a.left + a.right) / 2
	}
	return a.left + day/float64(a.days-1)*(a.right-a.left)
}

// at returns the position of a time, within the box.
func (a axes) at(t time.Time) float64 {
	return min(max(a.x(t.Sub(a.first.Time()).Hours()/24), a.left), a.right)
}

// y returns the position of a number of calls.
func (a axes) y(calls float64) float64 { return a.bottom - calls/float64(a.most)*(a.bottom-a.top) }

// line returns the points of values on consecutive days, of which the first one is day from.
func (a axes) line(from int, values []int64) string {
	points := make([]string, len(values))
	for i, v := range values {
		points[i] = fmt.Sprintf("%.1f,%.1f", a.x(float64(from+i)), a.y(float64(v)))
	}
	if len(points) == 1 { // a second point, for one alone is invisible
		points = append(points, fmt.Sprintf("%.1f,%.1f", a.x(float64(from))+4, a.y(float64(values[0]))))
	}
	return strings.Join(points, " ")
}

// newChart returns the chart of days, of which there must be at least one, with its curves within the box. future is
// the number of days after today on the axis.
func newChart(days []usage.Day, future int, b box) (c chart) {
	var most, callSum, successorSum int64
	calls, successors := make([]int64, len(days)), make([]int64, len(days))
	for i, d := range days {
		calls[i], successors[i] = d.Calls, d.Successors
		most = max(most, d.Calls, d.Successors)
		callSum, successorSum = callSum+d.Calls, successorSum+d.Successors
	}
	step := niceStep(most)
	a := axes{b, days[0].Day, len(days) + future, max(1, int64(math.Ceil(float64(most)/float64(step)))) * step}

	last := len(days) - 1
	if last == 0 { // today alone
		c.CallsToday, c.SuccessorsToday = a.line(0, calls), a.line(0, successors)
	} else {
		c.Calls, c.Successors = a.line(0, calls[:last]), a.line(0, successors[:last])
		c.CallsToday, c.SuccessorsToday = a.line(last-1, calls[last-1:]), a.line(last-1, successors[last-1:])
	}
	c.Area = fmt.Sprintf("%.1f,%.1f %s %.1f,%.1f", a.x(0), a.y(0), a.line(0, calls), a.x(float64(last)), a.y(0)) // closed along the bottom
	c.Words = fmt.Sprintf("Calls by day from %s to %s: %s of v1, %s today so far; "+
		"%s of its successors in v2, %s today so far.", days[0].Day, days[last].Day,
		output.Grouped(callSum), output.Grouped(days[last].Calls), output.Grouped(successorSum), output.Grouped(days[last].Successors))
	for n := int64(0); n <= a.most; n += step {
		c.Rows = append(c.Rows, tick{a.y(float64(n)), output.Grouped(n), "end"})
	}
	c.mark(a)
	c.axes = a
	c.Bottom, c.Height = b.bottom, b.bottom+axisHeight
	return c
}

// mark names at most marks days below the chart, the last one always.
func (c *chart) mark(a axes) {
	last := a.days - 1
	for i := last; i >= 0; i -= last/(marks-1) + 1 {
		anchor := "middle"
		if i == last && i > 0 {
			anchor = "end"
		}
		c.Marks = append(c.Marks, tick{a.x(float64(i)), a.first.AddDays(i).Time().Format("2 Jan"), anchor})
	}
}

// Chart returns the chart of all calls with what is to come: the sunset, the forecast, phases and brownouts. The axis
// ends with the last of these, at most as many days after today as it begins before.
func (st *Status) Chart() chart {
	future := st.future()
	c := newChart(st.ByDay, future, wide)
	end := c.first.AddDays(c.days - 1).Time()
	if future > 0 {
		c.addEvent(st.Now.Time, "now")
		if sunset := st.sunset(); !sunset.IsZero() && !sunset.After(end) {
			c.addEvent(sunset, "sunset")
		}
		c.addForecast(st.forecast, end)
	}
	for _, s := range st.Timeline {
		c.addLane(s, end)
	}
	return c
}

// sunset returns the sunset of v1 if it is to come, and otherwise zero.
func (st *Status) sunset() (t time.Time) {
	if st.Announcement != nil && st.EndedAt == nil && st.Announcement.DaysLeft >= 0 {
		t = st.Announcement.SunsetAt.Time
	}
	return t
}

// future returns how many days after today the axis of the chart has.
func (st *Status) future() int {
	today := domain.DateOf(st.Now.Time)
	ahead := 0
	add := func(t time.Time) { ahead = max(ahead, today.DaysUntil(domain.DateOf(t))+1) }
	if t := st.sunset(); !t.IsZero() {
		add(t)
	}
	if st.forecast.LastCall != nil {
		add(st.forecast.LastCall.Time())
	}
	for _, s := range st.Timeline {
		if s.To != nil {
			add(s.To.Time)
		}
	}
	return min(ahead, len(st.ByDay))
}

// addEvent adds a vertical line, with its label on the side if there is room.
func (c *chart) addEvent(t time.Time, text string) {
	anchor, x := "start", c.at(t)
	if x > (c.left+c.right)/2 {
		anchor = "end"
	}
	c.Events = append(c.Events, tick{x, text, anchor})
}

// addForecast adds the line of a forecast up to the end of the axis.
func (c *chart) addForecast(f forecast, end time.Time) {
	if f.LastCall == nil {
		return
	}
	from, to, level := f.From.Time(), f.LastCall.Time(), 0.0
	if to.After(end) {
		level, to = f.Level*float64(to.Sub(end))/float64(to.Sub(from)), end
	}
	c.Forecast = fmt.Sprintf("%.1f,%.1f %.1f,%.1f", c.at(from), c.y(min(f.Level, float64(c.most))), c.at(to), c.y(level))
}

// addLane adds a phase or brownout below the chart, unless it lies outside of the axis or there are maxLanes.
func (c *chart) addLane(s span, end time.Time) {
	begins := c.first.Time()
	if len(c.Lanes) == maxLanes || s.From.Time.After(end) || s.To != nil && s.To.Time.Before(begins) {
		return
	}
	l := lane{TextY: c.Height + 20, BarY: c.Height + 26, Text: s.Label(), Class: "bar"}
	if s.Windows == 0 {
		l.Class += " lasting"
	}
	for _, b := range s.bars(end) {
		if b[1].Before(begins) {
			continue
		}
		x := c.at(b[0])
		l.Bars = append(l.Bars, bar{min(x, c.right-minBar), max(c.at(b[1])-x, minBar)})
	}
	c.Lanes = append(c.Lanes, l)
	c.Height += laneHeight
}

// niceStep returns the least of 1, 2, 5, 10, 20, … that is at least a quarter of most.
func niceStep(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{unit, 2 * unit, 5 * unit} {
			if step*4 >= most {
				return step
			}
		}
	}
}
