package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

type seedCmd struct {
	databaseFlags
	Clients int `required:"" env:"-" help:"How many clients to add; a few are large and most are small."`
	Users   int `required:"" env:"-" help:"How many users they have together."`
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
	show := bar.New(raw(s.err), "seeding clients and users")
	show(0, c.Clients+c.Users)
	err = seed.Large(ctx, d, seed.Size{Clients: c.Clients, Users: c.Users}, show)
	if ctx.Err() != nil && err != nil {
		fmt.Fprintln(s.err) // ends the line of the bar
		return errors.New("cancelled: nothing was added")
	}
	if err != nil {
		return err
	}
	if err := d.Audit(ctx, byCommand(domain.AuditEntry{Operation: "seed"})); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "added %d clients with %d users in %s\n", c.Clients, c.Users,
		time.Since(start).Round(100*time.Millisecond))
	return err
}
