// Command bench measures the service's speed and memory on this machine. It fills its own PostgreSQL with 1,000
// clients and 100,000 users. It starts the service, as serve wires it, and a handwritten reference, each in its own
// process, and compares them under the same load. Compared servers and requests take turns within one run, so that
// other work on the machine slows both. Background work, imports and reports run in their own processes too. Each
// measure prints its row when it is done. If a measure fails, the program runs the others and then fails; a missed
// bound is no failure.
package main

import (
	"cmp"
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
	quick, large            bool
	dataDir, profiles, only string
	users                   int
}

// run measures and prints the table. A command line that starts with the name of a child is the program starting
// itself.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 2 && children[args[0]] != nil {
		return runChild(ctx, args[0], args[1], os.Stdin, out)
	}
	b := &bench{out: out, progress: progress}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.BoolVar(&b.quick, "quick", false, "measure a fifth as long, on a tenth of the data")
	flags.StringVar(&b.dataDir, "data-dir", "", "keep the data in this `folder`, and use them again (default: a temporary one)")
	flags.StringVar(&b.profiles, "profiles", "", "write a CPU profile of the service under each load into this `folder`")
	flags.StringVar(&b.only, "only", "", "measure only what has this `text` in its name, or one of several with | between them")
	flags.BoolVar(&b.large, "large", false, "measure 1,000,000 users of 10,000 clients, with PostgreSQL's settings for them")
	flags.IntVar(&b.users, "users", 0, "how many `users` the database has, of a hundredth as many clients")
	if err := flags.Parse(args); err != nil {
		return err
	}

	began := time.Now()
	err := try(func() {
		b.openFolders()
		b.open(ctx)
		b.perform(ctx, b.measures())
		fmt.Fprintf(progress, "the whole took %s\n", time.Since(began).Round(time.Second))
		if b.failed > 0 {
			fail("%d measures failed", b.failed)
		}
	})
	return errors.Join(err, ctx.Err(), b.close())
}

// bench is the state that the measures share.
type bench struct {
	options
	data               *data
	service, reference *child
	readKey, writeKey  string
	folder             string // of files that are removed at the end
	out, progress      io.Writer
	failed             int // measures
	ends               []func() error
}

// measures returns all measures: first those that only read, then those that write, and last the memory.
func (b *bench) measures() []measure {
	return slices.Concat(b.throughput(), b.imports(), b.pages(), b.training(), b.agents(),
		b.v1(), // v1-line
		b.writes(), b.work(), b.frameworks(), b.events(), b.audits(), b.whole(), []measure{
			{name: "peak resident memory of the service", bound: atMost(150),
				run: func(context.Context) figure { return memory(b.service.peakMB()) }},
		})
}

// openFolders creates the folders of the files that are written.
func (b *bench) openFolders() {
	b.folder = must(os.MkdirTemp("", "partnerapi-bench"))
	b.ends = append(b.ends, func() error { return os.RemoveAll(b.folder) })
	check(os.Chmod(b.folder, 0o755)) // the server may run as another user
	b.dataDir = cmp.Or(b.dataDir, filepath.Join(b.folder, "data"))
	if b.profiles != "" {
		check(os.MkdirAll(b.profiles, 0o755))
	}
}

// open fills the database and starts the servers.
func (b *bench) open(ctx context.Context) {
	size, settings := seed.Size{Clients: 1000, Users: b.tenth(100_000), Mails: true}, map[string]string{}
	if b.large { // docs/operating.md names the settings
		size.Clients, size.Users = 10_000, 1_000_000
		settings = map[string]string{"shared_buffers": "2GB", "max_wal_size": "8GB", "checkpoint_timeout": "15min"}
	}
	if b.users > 0 {
		size.Clients, size.Users = b.users/100, b.users
	}
	b.openData(ctx, size, settings)
	b.readKey, b.writeKey = b.data.key(ctx, domain.Read), b.data.key(ctx, domain.Write)
	b.service, b.reference = b.serve("service"), b.serve("reference")
}

// close calls the ends, last first.
func (b *bench) close() error {
	var errs []error
	for _, end := range slices.Backward(b.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// times returns a number of times that something is measured, or a fifth of it.
func (o options) times(n int) int { return o.part(n, 5) }

// tenth returns an amount of data, or a tenth of it.
func (o options) tenth(n int) int { return o.part(n, 10) }

func (o options) part(n, of int) int {
	if o.quick {
		return max(1, n/of)
	}
	return n
}
