package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/migrate"
)

// Migrate is the command migrate, which upgrades the tables to this version.
type Migrate struct {
	database.Flags
	database.CellFlags
	Status bool `env:"-" help:"List all migrations with their locks and approximate durations, without changing anything."`
	DryRun bool `name:"dry-run" env:"-" help:"List the missing migrations with their locks and approximate durations, without changing anything."`
	JSON   bool `env:"-" help:"With --status or --dry-run, print one JSON object."`
}

func (Migrate) Help() string {
	return `You can migrate while the previous version is running. If a lock is not available within half a second, the command pauses and retries for about ten minutes. Migrations that are complete by then remain in place.`
}

// Validate rejects contradictory flags.
func (m Migrate) Validate() error {
	if m.JSON && !m.Status && !m.DryRun {
		return errors.New("--json requires --status or --dry-run")
	}
	_, err := m.ParseCell()
	return err
}

// Run applies the missing migrations, makes the database belong to the cell of the flags, and corrects stored counts if
// a migration scheduled that. With --status or --dry-run it only lists migrations.
func (m Migrate) Run(ctx context.Context, s cli.Env) error {
	if m.Status || m.DryRun {
		return m.list(ctx, s)
	}
	return m.WithAny(ctx, s, func(d *db.DB) error {
		applied, err := database.MigrateAll(ctx, d, s.Tables)
		for _, name := range applied {
			fmt.Fprintln(s.Out, "applied", name)
		}
		if err == nil {
			err = m.FixCell(ctx, d)
		}
		if err != nil {
			return err
		}
		if len(applied) == 0 {
			fmt.Fprintln(s.Out, "nothing to do: the tables are up to date")
		}
		miscounts, err := doctor.RecountDue(ctx, d)
		database.PrintRecounts(s.Out, miscounts)
		return err
	})
}

// list prints the migrations: all with --status, otherwise those that are missing.
func (m Migrate) list(ctx context.Context, s cli.Env) error {
	if err := m.CheckExists(); err != nil {
		return err
	}
	return m.WithAny(ctx, s, func(d *db.DB) error {
		all, err := allSteps(ctx, d, s.Tables)
		if err != nil {
			return err
		}
		steps, missing := []migrate.Step{}, 0
		for _, step := range all {
			if m.Status || !step.Applied {
				steps = append(steps, step)
			}
			if !step.Applied {
				missing++
			}
		}
		if m.JSON {
			return json.NewEncoder(output.ForJSON(s.Out)).Encode(struct {
				Migrations []migrate.Step `json:"migrations"`
			}{steps})
		}
		for _, step := range steps {
			printStep(s.Out, step)
		}
		if missing == 0 {
			fmt.Fprintln(s.Out, "nothing to do: the tables are up to date")
		}
		return nil
	})
}

// allSteps returns the migrations of the service and those of the others, in this order.
func allSteps(ctx context.Context, d *db.DB, others []doctor.Tables) ([]migrate.Step, error) {
	all, err := migrate.Steps(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, t := range others {
		steps, err := t.Steps(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
	}
	return all, nil
}

// printStep prints a migration, the tables that it locks, and what it removes that earlier releases use.
func printStep(to io.Writer, step migrate.Step) {
	state := "missing"
	if step.Applied {
		state = "applied"
	}
	fmt.Fprintln(to, state, step.Name)
	for _, l := range step.Locks {
		fmt.Fprintln(to, "        locks", l)
	}
	if step.Contracts != "" {
		fmt.Fprintf(to, "        removes: %s; stop older processes first\n", step.Contracts)
	}
}
