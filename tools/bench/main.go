// Command bench measures the service's speed and memory on this machine: it
// fills a PostgreSQL of its own with 1,000 clients and 100,000 users, starts
// the service, as serve wires it, and a hand-written reference, each as a
// process of its own, and compares them under the same load. What is compared
// is measured in turns, in one run, so that whatever else the machine does
// weighs on both alike. Then it measures how quickly the background work sends
// mails, ingests signals, gives the courses of frameworks, makes reports, syncs
// directories, delivers events, and exports and imports all of it, in processes of
// their own too. Each measure is a line that is printed when it is measured. A
// bound that is missed does not fail the program; a measure that fails does, after
// the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"partnerapi/db/seed"
	"partnerapi/domain"
)

func main() {
	addV1() // v1-line
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
	large    bool
	users    int
	soak     time.Duration
}

// run measures and prints the table. A command line that begins with a child's name
// is what the program starts itself with.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 2 && children[args[0]] != nil {
		return beChild(ctx, args[0], args[1], os.Stdin, out)
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.BoolVar(&o.quick, "quick", false, "measure a tenth as long, on a tenth of the data")
	flags.StringVar(&o.dataDir, "data-dir", "",
		"keep the data in this `folder`, and use them again (default: a temporary one)")
	flags.StringVar(&o.profiles, "profiles", "", "write a CPU profile of the service under each load into this `folder`")
	flags.StringVar(&o.only, "only", "", "measure only what has this `text` in its name, or one of several with | between them")
	flags.BoolVar(&o.large, "large", false, "measure -users users beside a tenth of them, each in a database of its own")
	flags.IntVar(&o.users, "users", 1_000_000, "how many `users` the larger database of -large has")
	flags.DurationVar(&o.soak, "soak", 0, "with -large: let its larger database work for this `time` instead, and show what grows")
	if err := flags.Parse(args); err != nil {
		return err
	}

	begin := time.Now()
	b := &bench{options: o, out: out, progress: progress}
	err := try(func() {
		b.openFolders()
		if o.large {
			b.measureLarge(ctx)
		} else {
			b.open(ctx)
			b.perform(ctx, b.measures())
		}
		fmt.Fprintf(progress, "the whole took %s\n", time.Since(begin).Round(time.Second))
		if b.failed > 0 {
			fail("%d measures failed", b.failed)
		}
	})
	return errors.Join(err, ctx.Err(), b.close())
}

// bench is what the measures share.
type bench struct {
	options
	data               *data
	service, reference *child
	// keys are several that may read, for walks by offset are each key's own.
	keys          [3]string
	writeKey      string
	folder        string            // of files that are removed at the end
	settings      map[string]string // of PostgreSQL, over its defaults
	out, progress io.Writer
	failed        int                  // measures
	cursors       map[string][3]string // of the first, middle and last page of lists, by their paths
	ends          []func() error       // of what runs to the end
}

// openFolders makes the folders of what is written.
func (b *bench) openFolders() {
	b.folder = must(os.MkdirTemp("", "partnerapi-bench"))
	b.ends = append(b.ends, func() error { return os.RemoveAll(b.folder) })
	if b.profiles != "" {
		check(os.MkdirAll(b.profiles, 0o755))
	}
	if b.dataDir == "" {
		b.dataDir = filepath.Join(b.folder, "data")
		check(os.Chmod(b.folder, 0o755)) // the server may run as another user
	}
}

// open fills the database and starts both servers.
func (b *bench) open(ctx context.Context) {
	b.openService(ctx, seed.Size{Clients: 1000, Users: b.tenth(100_000)})
	b.reference = b.serve("reference")
	b.ends = append(b.ends, b.reference.stop)
}

// openService fills the database and starts the service.
func (b *bench) openService(ctx context.Context, size seed.Size) {
	b.openData(ctx, size)
	for i := range b.keys {
		b.keys[i] = b.data.key(ctx, domain.Read)
	}
	b.writeKey = b.data.key(ctx, domain.Write)
	b.service = b.serve("service")
	b.ends = append(b.ends, b.service.stop)
}

// close ends what runs to the end, the last first.
func (b *bench) close() error {
	var errs []error
	for _, end := range slices.Backward(b.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// times is how often something is timed.
func (o options) times(n int) int {
	if o.quick {
		return n / 5
	}
	return n
}

// tenth is a number of things, or a tenth of it.
func (o options) tenth(n int) int {
	if o.quick {
		return n / 10
	}
	return n
}
