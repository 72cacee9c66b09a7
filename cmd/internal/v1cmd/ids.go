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
	Import importCmd `cmd:"" help:"Assign objects the numeric IDs that v1 callers use for them." example:"idmap import --dry-run numbers.csv\nidmap import numbers.csv"`
	Export exportCmd `cmd:"" help:"Write the numeric ID of every object in the format that idmap import reads." example:"idmap export numbers.csv\nidmap export --partner 'Northlight MSP' numbers.csv"`
	Lookup lookupCmd `cmd:"" help:"Show the registry entries for an object, by its numeric ID, ID or UUID." example:"idmap lookup client 17"`
}

type importCmd struct {
	database.Flags
	File   string `arg:"" type:"existingfile" help:"File with a line kind,number,id for each object; - for standard input."`
	DryRun bool   `name:"dry-run" env:"-" help:"Print what would change, without changing anything."`
}

// Run imports a file or the standard input, with an audit entry if that changes numbers. If rows are invalid, it prints
// them, and imports none. While a partner is moved to another cell, a change of numbers fails.
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
		_, err = fmt.Fprintf(s.Out, "%d rows: %s %d objects to their numeric IDs, %d already had them\n", report.Rows, verb,
			report.Moved, report.Unchanged)
		return err
	})
}

type exportCmd struct {
	database.Flags
	File    string   `arg:"" optional:"" default:"-" type:"path" help:"File to write; - for standard output."`
	Partner []string `env:"-" sep:"none" help:"Only the numeric IDs of objects of the partner with this ID, UUID or name, for an installation that imports these objects. Reports are omitted, because an export does not contain them; all templates are included. Repeat the flag for several partners. Default: the numeric IDs of all objects, for use in this installation."`
}

// Run writes the numbers. A file appears under its name when complete.
func (c exportCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		partners := make([]domain.PartnerID, len(c.Partner))
		for i, name := range c.Partner {
			if name == "" { // FindPartner would take the only partner
				return errors.New("--partner must not be empty")
			}
			if partners[i], err = database.FindPartner(ctx, d, name); err != nil {
				return err
			}
		}
		progress := output.NewBar(s.Err, "exporting numeric IDs")
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
		_, err = fmt.Fprintf(s.Out, "%s: %d numeric IDs\n", c.File, lines)
		return err
	})
}

type lookupCmd struct {
	database.Flags
	Kind string `arg:"" help:"Kind of object: client, collection, policy, template, group or report."`
	What string `arg:"" help:"The object's numeric ID in v1, ID in v2 or UUID."`
	JSON bool   `name:"json" env:"-" help:"Print the entries as a JSON array."`
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
			return fmt.Errorf("the registry has no entry for %s %s", kind, c.What)
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
