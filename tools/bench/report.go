package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"
)

// measure is a row of the table.
type measure struct {
	name  string
	bound bound
	run   finder
	// needs adds data that run needs besides the seed; nil for none.
	needs func(context.Context)
}

// finder returns the figure of a measure, or fails (check).
type finder func(context.Context) figure

// figure is the result of a measure.
type figure struct {
	value float64 // compared with the bound, in the unit
	unit  string
	// ours, reference and spread are shown. The last two belong to a comparison, whose value is a ratio.
	ours, reference, spread string
	of                      string // behind the name; mostly empty
	rows                    []row  // below it
}

// row is a printed row.
type row struct {
	name  string
	bound bound
	figure
}

// summary returns the median of a sample and its confidence interval.
func summary(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
}

// compare returns the median ratio of pairs of values, which were measured one right after the other.
func compare(ours, theirs []float64, show func(float64) string) figure {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / theirs[i]
	}
	s := summary(ratios)
	return figure{value: s.Center, spread: " ±" + s.PctRangeString(), ours: show(summary(ours).Center), reference: show(summary(theirs).Center)}
}

// typical returns the median of times in seconds.
func typical(times []float64) figure { return took(inSeconds(summary(times).Center)) }

func took(d time.Duration) figure { return figure{value: d.Seconds(), unit: "s", ours: rounded(d)} }

func rate(n int, took time.Duration) figure {
	perSec := float64(n) / took.Seconds()
	return figure{value: perSec, unit: "/s", ours: perSecond(perSec)}
}

func memory(mb float64) figure {
	return figure{value: mb, unit: " MB", ours: fmt.Sprintf("%.0f MB", mb)}
}
func tokens(n int) figure { return figure{value: float64(n), unit: " tokens", ours: strconv.Itoa(n)} }

// about adds text behind the name.
func (f figure) about(format string, args ...any) figure {
	f.of = fmt.Sprintf(format, args...)
	return f
}

// and adds a row, and the rows below that.
func (f figure) and(name string, bound bound, of figure) figure {
	f.rows = append(append(f.rows, row{"  " + name, bound, of}), of.rows...)
	return f
}

// in adds the peak memory of the process that did the work.
func (f figure) in(peak float64) figure {
	return f.and("peak resident memory of its process", atMost(200), memory(peak))
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
func seconds(s float64) string          { return rounded(inSeconds(s)) }
func perSecond(n float64) string        { return fmt.Sprintf("%.0f/s", n) }

// rounded returns a time with about three digits.
func rounded(d time.Duration) string {
	if d > time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// bound is a limit of a figure; zero numbers are none.
type bound struct{ least, most float64 }

func atLeast(value float64) bound { return bound{least: value} }
func atMost(value float64) bound  { return bound{most: value} }

// layout is that of the table, whose rows are printed one by one.
const layout = "%-90s %11s %11s %11s %14s  %s\n"

// perform runs those of the measures that -only names.
func (b *bench) perform(ctx context.Context, measures []measure) {
	fmt.Fprintf(b.out, layout, "MEASURE", "OURS", "REFERENCE", "RATIO", "BOUND", "")
	for _, m := range measures {
		named := func(text string) bool { return strings.Contains(m.name, text) }
		if ctx.Err() != nil || !slices.ContainsFunc(strings.Split(b.only, "|"), named) {
			continue
		}
		err := try(func() {
			f := b.find(ctx, m)
			for _, r := range append([]row{{m.name, m.bound, f}}, f.rows...) {
				b.print(r)
			}
		})
		if err != nil {
			b.failed++
			fmt.Fprintf(b.out, "%-90s FAILED: %s\n", m.name, err)
		}
	}
}

// find prepares a measure and runs it.
func (b *bench) find(ctx context.Context, m measure) (f figure) {
	if m.needs != nil {
		m.needs(ctx)
	}
	fmt.Fprintln(b.progress, "measuring", m.name)
	began, profiled := time.Now(), make(chan error, 1)
	go func() {
		profiled <- try(func() {
			if b.profiles != "" {
				b.profile(m.name)
			}
		})
	}()
	err := try(func() { f = m.run(ctx) })
	check(errors.Join(err, <-profiled))
	fmt.Fprintf(b.progress, "  measured in %s\n", rounded(time.Since(began)))
	return f
}

func (b *bench) print(r row) {
	ratio, limit, verdict := "-", "-", ""
	if r.reference != "" {
		ratio = fmt.Sprintf("%.2f%s", r.value, r.spread)
	}
	if r.bound.least > 0 {
		limit, verdict = fmt.Sprintf(">= %g%s", r.bound.least, r.unit), "ok"
	}
	if r.bound.most > 0 {
		limit, verdict = fmt.Sprintf("<= %g%s", r.bound.most, r.unit), "ok"
	}
	if r.value < r.bound.least || r.bound.most > 0 && r.value > r.bound.most {
		verdict = "MISSED"
	}
	fmt.Fprintf(b.out, layout, r.name+r.of, r.ours, r.reference, ratio, limit, verdict)
}
