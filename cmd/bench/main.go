// Command bench measures the service's speed and memory on this machine: it
// fills a PostgreSQL of its own with 1,000 clients and 100,000 users, starts
// the service, as serve wires it, and a hand-written reference, each as a
// process of its own, and compares them under the same load. What is compared
// is measured in turns, in one run, so that whatever else the machine does
// weighs on both alike. Then it measures how quickly the background work sends
// mails, ingests signals, gives the courses of frameworks, makes reports, syncs
// directories, delivers events, and exports and imports all of it, in processes of
// their own too. A bar that is missed does not fail
// the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	quick    bool
	dataDir  string
	profiles string
	only     string
}

// run measures and prints the table. A command line of one word is what the
// program starts itself with: the name of a child to be.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 1 && children[args[0]] != nil {
		return children[args[0]](ctx, os.Stdin, out)
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.BoolVar(&o.quick, "quick", false, "measure a tenth as long, on a tenth of the data")
	flags.StringVar(&o.dataDir, "data-dir", "", "keep the data in this `folder`, and use them again; a temporary one "+
		"unless told")
	flags.StringVar(&o.profiles, "profiles", "", "write a CPU profile of the service under each load into this `folder`")
	flags.StringVar(&o.only, "only", "", "measure only what has this `text` in its name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, err := prepare(ctx, o, progress)
	if err != nil {
		return err
	}
	results, err := b.measureAll(ctx)
	if err := errors.Join(err, b.close()); err != nil {
		return err
	}
	return writeTable(out, results)
}

// result is one line of the table.
type result struct {
	name string
	// ours and reference are what was measured, with their unit; the reference
	// is empty where a figure is held against a fixed bar.
	ours, reference string
	// value is what is held against the bar: a ratio, or a number of MB or seconds.
	value   float64
	bar     float64 // 0 for none
	atLeast bool    // the bar is a floor rather than a ceiling
}

// verdict is the bar and whether it is met.
func (r result) verdict() (bar, verdict string) {
	sign, met := "<=", r.value <= r.bar
	if r.atLeast {
		sign, met = ">=", r.value >= r.bar
	}
	switch {
	case r.bar == 0:
		return "-", ""
	case met:
		verdict = "ok"
	default:
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s %g", sign, r.bar), verdict
}

// writeTable writes the table.
func writeTable(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURE\tOURS\tREFERENCE\tRATIO\tBAR\t")
	for _, r := range results {
		bar, verdict := r.verdict()
		ratio := "-"
		if r.reference != "" {
			ratio = fmt.Sprintf("%.2f", r.value)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.ours, r.reference, ratio, bar, verdict)
	}
	return w.Flush()
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }

func took(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// seconds is a time that is held against a bar of seconds.
func seconds(name string, d time.Duration, bar float64) result {
	return result{name: name, ours: fmt.Sprintf("%.2f", d.Seconds()), value: d.Seconds(), bar: bar}
}

// memory is a peak that is held against the goal of a process that does
// background work, in MB.
func memory(name string, peak float64) result {
	return result{name: name, ours: fmt.Sprintf("%.0f", peak), value: peak, bar: serviceMB}
}
