package operator

import (
	"context"
	"fmt"
	"os"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/move"
	"partnerapi/domain"
)

// Catalogue is the command catalogue, which copies catalogues to another cell.
type Catalogue struct {
	Export exportCatalogueCmd `cmd:"" help:"Export courses, templates, breaches and frameworks with their IDs, one object per line, for another cell." example:"catalogue export > catalogue.ndjson"`
	Import importCatalogueCmd `cmd:"" help:"Import another cell's exported catalog into this cell. You can safely repeat the import." example:"catalogue import catalogue.ndjson"`
}

type exportCatalogueCmd struct{ database.Flags }

// Run writes the lines to the standard output, and their number to the error stream.
func (c exportCatalogueCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		n, err := move.ExportCatalogue(ctx, d, s.Out)
		if err == nil {
			fmt.Fprintf(s.Err, "%d lines\n", n)
		}
		return err
	})
}

type importCatalogueCmd struct {
	database.Flags
	File string `arg:"" type:"existingfile" help:"File with the output of catalogue export."`
}

// catalogueProgressEvery is the number of lines between two progress messages.
const catalogueProgressEvery = 10_000

// Run imports the valid lines, and reports the others. It fails at its end if there are others.
func (c importCatalogueCmd) Run(ctx context.Context, s cli.Env) (err error) {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer database.CloseInto(file.Close, &err)
	return c.With(ctx, s, func(d *db.DB) error {
		if err := d.Audit(ctx, database.AsCommand(domain.AuditEntry{Operation: "catalogue import"})); err != nil {
			return err
		}
		shown := 0
		sum, err := move.ImportCatalogue(ctx, d, file, func(soFar move.Imported) {
			if soFar.Lines >= shown+catalogueProgressEvery {
				shown = soFar.Lines
				fmt.Fprintf(s.Err, "%d lines\n", soFar.Lines)
			}
		})
		for _, fault := range sum.Faults {
			fmt.Fprintf(s.Err, "partnerapi: %s: %v\n", c.File, fault)
		}
		fmt.Fprintf(s.Out, "%d lines: %d added, %d changed, %d invalid\n", sum.Lines, sum.Added, sum.Changed, len(sum.Faults))
		if err == nil && len(sum.Faults) > 0 {
			err = fmt.Errorf("%d lines of %s were not imported", len(sum.Faults), c.File)
		}
		return err
	})
}
