package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"partnerapi/db/seed"
)

type seedCmd struct {
	databaseFlags
	Clients int `required:"" help:"How many clients to add; a few are large and most are small."`
	Users   int `required:"" help:"How many users they have together."`
}

// Validate refuses sizes that make no sense.
func (c seedCmd) Validate() error {
	if c.Clients < 1 || c.Users < 0 {
		return errors.New("--clients must be at least 1, and --users at least 0")
	}
	return nil
}

// Run adds made-up data and shows how far it is.
func (c seedCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	start := time.Now()
	bar := newBar(s.err, "seeding clients and users")
	if err := seed.Large(ctx, d, seed.Size{Clients: c.Clients, Users: c.Users}, bar); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "added %d clients with %d users in %s\n", c.Clients, c.Users, time.Since(start).Round(100*time.Millisecond))
	return err
}

// newBar returns what shows the progress of long work as a bar.
func newBar(to io.Writer, what string) func(done, total int) {
	var bar *progressbar.ProgressBar
	return func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(what),
				progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionOnCompletion(func() { fmt.Fprintln(to) }))
		}
		_ = bar.Set(done)
	}
}
