package v1cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/idmap"
)

// This file has the commands of the id registry. It is deleted with version 1.

type idmapCmd struct {
	Import importCmd `cmd:"" help:"Give objects the numbers that callers of v1 know them by." example:"idmap import --dry-run numbers.csv\nidmap import numbers.csv"`
	Export exportCmd `cmd:"" help:"Write the number of every object, as import reads it." example:"idmap export numbers.csv\nidmap export --partner 'Northlight MSP' numbers.csv"`
	Lookup lookupCmd `cmd:"" help:"Show what the registry knows of a number or an id." example:"idmap lookup client 17"`
}

type importCmd struct {
	database.Flags
	File   string `arg:"" type:"existingfile" help:"Lines of kind,number,id; - for the standard input."`
	DryRun bool   `name:"dry-run" env:"-" help:"Print what would change, and change nothing."`
}

// Run imports a file or the standard input, with an audit entry if that changes numbers. If rows are invalid, it prints
// them, and imports none. While a partner is handed over to another cell, a change of numbers fails.
func (c importCmd) Run(ctx context.Context, s cli.Env) (err error) {
	in, _, shutFile, err := output.OpenInput(s, c.File, "") // the progress of reading is not shown
	if err != nil {
		return err
	}
	defer database.CloseInto(shutFile, &err)
	return c.With(ctx, s, func(d *db.DB) error {
		report, err := idmap.Import(ctx, d.DB, in, c.DryRun, func(ctx context.Context) error {
			return d.AuditOfAny(ctx, database.AsCommand(domain.AuditEntry{Operation: "idmap import"}))
		})
		for _, refusal := range report.Refused {
			fmt.Fprintln(s.Err, refusal)
		}
		if err != nil {
			return err
		}
		verb := "moved"
		if c.DryRun {
			verb = "would move"
		}
		_, err = fmt.Fprintf(s.Out, "%d rows: %s %d objects to their numbers, %d had them already\n", report.Rows, verb,
			report.Moved, report.Unchanged)
		return err
	})
}

type exportCmd struct {
	database.Flags
	File    string   `arg:"" optional:"" default:"-" type:"path" help:"Where to write it; - for the standard output."`
	Partner []string `env:"-" sep:"none" help:"Write the numbers of one partner, its id, UUID or name, for an installation to which the objects have been exported: without reports, which an export does not have, and with all templates. Repeat it for several partners. Default: the numbers of all objects, for this installation."`
}

// Run writes the numbers. A file appears under its name when complete.
func (c exportCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		partners := make([]domain.PartnerID, len(c.Partner))
		for i, name := range c.Partner {
			if name == "" { // FindPartner would take the only partner
				return errors.New("--partner: it is empty")
			}
			if partners[i], err = database.FindPartner(ctx, d, name); err != nil {
				return err
			}
		}
		progress := output.NewBar(s.Err, "exporting numbers")
		if c.File == "-" {
			_, err = idmap.Export(ctx, d.DB, partners, s.Out, progress)
			return err
		}

		lines := 0
		_, err = output.WriteFile(c.File, func(to *bufio.Writer) (err error) {
			lines, err = idmap.Export(ctx, d.DB, partners, to, progress)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "%s: %d numbers\n", c.File, lines)
		return err
	})
}

type lookupCmd struct {
	database.Flags
	Kind string `arg:"" help:"client, collection, policy, template, group or report."`
	What string `arg:"" help:"A number, or an id as v2 shows it or as a UUID."`
	JSON bool   `name:"json" env:"-" help:"Print JSON, an array of entries."`
}

// numberLine is an entry of the registry as the command prints it in JSON.
type numberLine struct {
	Kind      string       `json:"kind"`
	Number    int64        `json:"number"`
	ID        string       `json:"id"`
	UUID      string       `json:"uuid"`
	RetiredAt *domain.Time `json:"retired_at"` // null while the number is held
}

// Run shows the registry's entries for a number or an id. It fails if there are none.
func (c lookupCmd) Run(ctx context.Context, s cli.Env) error {
	kind, err := idmap.ParseKind(c.Kind)
	if err != nil {
		return err
	}
	return c.With(ctx, s, func(d *db.DB) error {
		entries, err := idmap.New(d.DB, 0).Describe(ctx, kind, strings.TrimSpace(c.What)) // 0: no cache
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return fmt.Errorf("the registry knows no %s %s", kind, c.What)
		}
		if c.JSON {
			return output.JSON(s.Out, pg.MapRows(entries, func(e *idmap.Entry) numberLine {
				return numberLine{e.Kind.String(), e.Number, e.Shown(), e.UUID(), domain.MaybeAt(domain.OrNil(e.RetiredAt))}
			}))
		}
		for _, entry := range entries {
			fmt.Fprintln(s.Out, entry)
		}
		return nil
	})
}
