package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// measure is a line of the table: its name, what it is held against, and the function
// that finds its figure.
type measure struct {
	name  string
	bound bound
	run   finder
	// needs makes the data that run needs beside the seed's; nil for none.
	needs func(context.Context)
	// then are the measures that go on from where this one ended, in their order.
	then []measure
}

// finder finds the figure of a measure, or fails (check).
type finder func(context.Context) figure

// figure is what was measured.
type figure struct {
	value float64 // what is held against the bound, in the unit
	unit  string
	// ours and reference are shown of a comparison, whose value is their ratio.
	ours, reference string
	of              string  // behind the measure's name; mostly empty
	peak            float64 // resident memory of the process that did it, in MB; 0 where it has no process
}

// ratio is how the first of two times is to the second.
func ratio(a, b time.Duration) figure {
	return figure{value: float64(a) / float64(b), ours: rounded(a), reference: rounded(b)}
}

// took is a time.
func took(d time.Duration) figure { return figure{value: d.Seconds(), unit: "s", ours: rounded(d)} }

// rate is how many things were done a second.
func rate(n int, took time.Duration) figure {
	f := figure{value: float64(n) / took.Seconds(), unit: "/s"}
	f.ours = fmt.Sprintf("%.0f/s", f.value)
	return f
}

// memory is resident memory in MB.
func memory(mb float64) figure {
	return figure{value: mb, unit: " MB", ours: fmt.Sprintf("%.0f MB", mb)}
}

// counted is a number of tokens.
func counted(tokens int) figure {
	return figure{value: float64(tokens), unit: " tokens", ours: strconv.Itoa(tokens)}
}

// about is the figure with what is shown behind the measure's name.
func (f figure) about(format string, args ...any) figure {
	f.of = fmt.Sprintf(format, args...)
	return f
}

// in is the figure with the peak of its process.
func (f figure) in(peak float64) figure {
	f.peak = peak
	return f
}

// rounded is a time with some three digits.
func rounded(d time.Duration) string {
	unit := 10 * time.Microsecond
	if d > time.Second {
		unit = 10 * time.Millisecond
	}
	return d.Round(unit).String()
}

// bound is what a figure is held against; zero numbers are no bounds.
type bound struct {
	least, most float64
	peak        float64 // MB
}

func atLeast(value float64) bound { return bound{least: value} }
func atMost(value float64) bound  { return bound{most: value} }

// workMB is the goal of the memory of a process that does background work.
const workMB = 200

// asWork bounds the memory too.
func (b bound) asWork() bound {
	b.peak = workMB
	return b
}

// verdict is the bound as it is shown, and whether it is met.
func (b bound) verdict(f figure) (text, verdict string) {
	met := true
	switch {
	case b.least > 0:
		text, met = fmt.Sprintf(">= %g%s", b.least, f.unit), f.value >= b.least
	case b.most > 0:
		text, met = fmt.Sprintf("<= %g%s", b.most, f.unit), f.value <= b.most
	default:
		return "-", ""
	}
	if met {
		return text, "ok"
	}
	return text, "MISSED"
}

// layout is that of the table, whose lines are printed one by one.
const layout = "%-90s %11s %11s %6s %12s  %s\n"

// perform runs those of the measures that are wanted.
func (b *bench) perform(ctx context.Context, measures []measure) {
	fmt.Fprintf(b.out, layout, "MEASURE", "OURS", "REFERENCE", "RATIO", "BOUND", "")
	for _, first := range measures {
		if !b.wanted(first) {
			continue
		}
		var err error
		for _, m := range append([]measure{first}, first.then...) {
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				err = errors.New("what it goes on from failed")
			} else {
				err = try(func() { b.row(m, b.find(ctx, m)) })
			}
			if err != nil {
				b.failed++
				fmt.Fprintf(b.out, "%-90s FAILED: %s\n", m.name, err)
			}
		}
	}
}

// find prepares a measure and runs it.
func (b *bench) find(ctx context.Context, m measure) (f figure) {
	if m.needs != nil {
		if err := try(func() { m.needs(ctx) }); err != nil {
			fail("prepare: %w", err)
		}
	}
	fmt.Fprintln(b.progress, "measuring", m.name)
	begin := time.Now()
	end := b.profiled(m.name)
	err := try(func() { f = m.run(ctx) })
	fmt.Fprintf(b.progress, "  measured in %s\n", rounded(time.Since(begin)))
	check(errors.Join(err, end()))
	return f
}

// row prints what came of a measure.
func (b *bench) row(m measure, f figure) {
	text, verdict := m.bound.verdict(f)
	ratio := "-"
	if f.reference != "" {
		ratio = fmt.Sprintf("%.2f", f.value)
	}
	fmt.Fprintf(b.out, layout, m.name+f.of, f.ours, f.reference, ratio, text, verdict)
	if f.peak > 0 {
		b.row(measure{name: "  peak resident memory of its process", bound: atMost(m.bound.peak)}, memory(f.peak))
	}
}
