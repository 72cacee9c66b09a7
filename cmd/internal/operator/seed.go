package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// Seed is the command seed, which adds large, made-up data.
type Seed struct {
	database.Flags
	Clients int  `required:"" env:"-" help:"Number of clients to add. A few are large, and most are small."`
	Users   int  `required:"" env:"-" help:"Total number of users to add, across all clients."`
	Mails   bool `env:"-" help:"Also add about 18 emails per user."`
}

// Validate rejects invalid sizes.
func (c Seed) Validate() error {
	if c.Clients < 1 || c.Users < 0 {
		return errors.New("--clients must be at least 1, and --users at least 0")
	}
	return nil
}

// Run adds made-up data and shows the progress.
func (c Seed) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		start := time.Now()
		show := output.NewBar(s.Err, "seeding clients and users")
		show(0, c.Clients+c.Users)
		if !output.IsTerminal(s.Err) { // where show prints nothing
			fmt.Fprintf(s.Err, "seeding %d clients and %d users\n", c.Clients, c.Users)
		}
		err = seed.Large(ctx, d, seed.Size{Clients: c.Clients, Users: c.Users, Mails: c.Mails}, show)
		if ctx.Err() != nil && err != nil {
			if output.IsTerminal(s.Err) {
				fmt.Fprintln(s.Err) // ends the line of the bar
			}
			return errors.New("canceled; nothing was added")
		}
		if err != nil {
			return err
		}
		if err := d.Audit(ctx, database.AsCommand(domain.AuditEntry{Operation: "seed"})); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "added %d clients with %d users in %s\n", c.Clients, c.Users,
			time.Since(start).Round(100*time.Millisecond))
		return err
	})
}
