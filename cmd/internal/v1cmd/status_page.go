package v1cmd

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

//go:embed status.html
var statusPage string

//go:embed status.css
var statusStyle string

// pageTemplate makes the page of a status. Its functions write times and numbers as the command does.
var pageTemplate = template.Must(template.New("status").Funcs(template.FuncMap{
	"moment":  func(t domain.Time) string { return output.FormatTime(&t.Time) },
	"day":     func(t domain.Time) string { return FormatDay(t.Time) },
	"class":   func(v usage.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"grouped": grouped,
	"style":   func() template.CSS { return template.CSS(statusStyle) },
	"policy": func() string {
		digest := sha256.Sum256([]byte(statusStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; base-uri 'none'; form-action 'none'"
	},
	"verdicts": func() []usage.Verdict { return usage.Verdicts },
	"wide":     func(days []usage.Day) chart { return newChart(days, wide) },
	"small":    func(days []usage.Day) chart { return newChart(days, small) },
	"newest": func(days []usage.Day) []usage.Day {
		days = slices.Clone(days)
		slices.Reverse(days)
		return days
	},
}).Parse(statusPage))

// Remaining returns the number of days to or since the sunset, and their unit; nil if none is announced or v1 ended.
func (st *Status) Remaining() []string {
	if st.Announcement == nil || st.EndedAt != nil {
		return nil
	}
	left, unit := st.Announcement.DaysLeft, "days left"
	switch {
	case left == 1:
		unit = "day left"
	case left < 0:
		unit = "days past its sunset"
	}
	return []string{fmt.Sprint(max(left, -left)), unit}
}

// Count returns how many keys have a verdict.
func (st *Status) Count(v usage.Verdict) (n int) {
	for _, k := range st.Keys {
		if k.Verdict == v {
			n++
		}
	}
	return n
}

// WritePage writes the page to a file, which is replaced only when the page is complete.
func (st *Status) WritePage(name string) error {
	_, err := output.WriteFile(name, func(to *bufio.Writer) error { return pageTemplate.Execute(to, st) })
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// grouped formats a count with a comma between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// box is the area of a chart in which the curves are drawn, in the units of the viewBox that the page sets.
type box struct{ left, right, top, bottom float64 }

var (
	wide  = box{64, 716, 12, 232}
	small = box{3, 217, 3, 41}
)

// marks is the maximum number of days named below a chart.
const marks = 6

// chart is two curves by day: the calls of v1, and the calls of its successors.
type chart struct {
	// Calls and Successors are the points of the curves; Area is the outline of the space below Calls.
	Calls, Successors, Area string
	// Rows are the horizontal grid lines with their numbers of calls; Marks are the days below the chart.
	Rows, Marks []tick
	// Words describe the curves for those who cannot see them.
	Words string
}

// tick is a position on a chart's axis, with its label.
type tick struct {
	At   float64
	Text string
	// Anchor is the part of Text that is placed at At: end or middle.
	Anchor string
}

// newChart returns the chart of days, of which there must be at least one, with its curves within the box.
func newChart(days []usage.Day, b box) (c chart) {
	var most, calls, successors int64
	for _, d := range days {
		most = max(most, d.Calls, d.Successors)
		calls, successors = calls+d.Calls, successors+d.Successors
	}
	step := niceStep(most)
	top := max(1, int64(math.Ceil(float64(most)/float64(step)))) * step
	x := func(i int) float64 {
		if len(days) == 1 {
			return (b.left + b.right) / 2
		}
		return b.left + float64(i)/float64(len(days)-1)*(b.right-b.left)
	}
	y := func(n int64) float64 { return b.bottom - float64(n)/float64(top)*(b.bottom-b.top) }
	line := func(value func(usage.Day) int64) string {
		var points []string
		for i, d := range days {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(value(d))))
		}
		if len(days) == 1 { // a second point, for one alone is invisible
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(0)+4, y(value(days[0]))))
		}
		return strings.Join(points, " ")
	}

	last := len(days) - 1
	c.Calls = line(func(d usage.Day) int64 { return d.Calls })
	c.Successors = line(func(d usage.Day) int64 { return d.Successors })
	c.Area = fmt.Sprintf("%.1f,%.1f %s %.1f,%.1f", x(0), y(0), c.Calls, x(last), y(0)) // closed along the bottom
	c.Words = fmt.Sprintf("Calls by day from %s to %s: %s of v1, at the last day %s; "+
		"%s of its successors in v2, at the last day %s.", days[0].Day, days[last].Day,
		grouped(calls), grouped(days[last].Calls), grouped(successors), grouped(days[last].Successors))
	for n := int64(0); n <= top; n += step {
		c.Rows = append(c.Rows, tick{y(n), grouped(n), "end"})
	}
	for i := last; i >= 0; i -= last/(marks-1) + 1 { // at most marks days, the last day always
		anchor := "middle"
		if i == last && i > 0 {
			anchor = "end"
		}
		c.Marks = append(c.Marks, tick{x(i), days[i].Day.Time().Format("2 Jan"), anchor})
	}
	return c
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
