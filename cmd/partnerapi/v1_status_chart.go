package main

import (
	"fmt"
	"math"
	"strings"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// chartSize is where the curves of a chart are drawn, in the units of its view.
type chartSize struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64 // margins
	marks                    int     // days named at the bottom; 0 draws no axes
}

var (
	wide  = chartSize{Width: 720, Height: 260, Left: 64, Right: 4, Top: 12, Bottom: 28, marks: 6}
	small = chartSize{Width: 220, Height: 44, Left: 3, Right: 3, Top: 3, Bottom: 3}
)

// chart is two curves by day: the calls of v1, and those of its successors.
type chart struct {
	chartSize
	// Calls and Successors are points of lines; Area is the first with the space below.
	Calls, Successors, Area string
	// Rows are the lines across, Marks the days at the bottom.
	Rows, Marks []tick
	// Words say what the curves show.
	Words string
}

// tick is a line of a chart's axis with what stands at it.
type tick struct {
	At   float64
	Text string
	// Anchor is the part of the text that is there: its end or its middle.
	Anchor string
}

// Edge is where the lines across end, LabelAt where their numbers end, and FootAt
// the height at which days are named.
func (s chartSize) Edge() float64 { return s.Width - s.Right }

// LabelAt is said at Edge.
func (s chartSize) LabelAt() float64 { return s.Left - 8 }

// FootAt is said at Edge.
func (s chartSize) FootAt() float64 { return s.Height - 6 }

// newChart draws the days, of which there is at least one.
func newChart(days []usage.Day, size chartSize) chart {
	c := chart{chartSize: size}
	var most, calls, successors int64
	for _, d := range days {
		most = max(most, d.Calls, d.Successors)
		calls, successors = calls+d.Calls, successors+d.Successors
	}
	step := niceStep(most)
	top := max(1, int64(math.Ceil(float64(most)/float64(step)))) * step

	x := func(i int) float64 {
		if len(days) == 1 {
			return (size.Left + size.Width - size.Right) / 2
		}
		return size.Left + float64(i)/float64(len(days)-1)*(size.Width-size.Left-size.Right)
	}
	y := func(n int64) float64 {
		return size.Height - size.Bottom - float64(n)/float64(top)*(size.Height-size.Top-size.Bottom)
	}
	c.Calls = points(days, x, func(d usage.Day) float64 { return y(d.Calls) })
	c.Successors = points(days, x, func(d usage.Day) float64 { return y(d.Successors) })
	c.Area = fmt.Sprintf("%.1f,%.1f %s %.1f,%.1f", x(0), y(0), c.Calls, x(len(days)-1), y(0))
	c.Words = fmt.Sprintf("Calls by day from %s to %s: %s of v1, at the last day %s; %s of its successors in v2, at the last day %s.",
		days[0].Day, days[len(days)-1].Day, grouped(calls), grouped(days[len(days)-1].Calls), grouped(successors),
		grouped(days[len(days)-1].Successors))

	if size.marks == 0 {
		return c
	}
	for n := int64(0); n <= top; n += step {
		c.Rows = append(c.Rows, tick{y(n), grouped(n), "end"})
	}
	each := max(1, (len(days)+size.marks-2)/(size.marks-1))
	for i := len(days) - 1; i >= 0; i -= each { // today is always named
		anchor := "middle"
		if i == len(days)-1 && i > 0 {
			anchor = "end"
		}
		c.Marks = append(c.Marks, tick{x(i), shortDay(days[i].Day), anchor})
	}
	return c
}

// points are the points of a line, one per day; a single day is a short line.
func points(days []usage.Day, x func(int) float64, y func(usage.Day) float64) string {
	var text strings.Builder
	for i, d := range days {
		fmt.Fprintf(&text, "%.1f,%.1f ", x(i), y(d))
	}
	if len(days) == 1 {
		fmt.Fprintf(&text, "%.1f,%.1f", x(0)+4, y(days[0]))
	}
	return strings.TrimSpace(text.String())
}

// niceStep is a round number of which some four reach up to the most.
func niceStep(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{unit, 2 * unit, 5 * unit} {
			if step*4 >= most {
				return step
			}
		}
	}
}

// shortDay is a day without its year.
func shortDay(d domain.Date) string { return d.Time().Format("2 Jan") }
