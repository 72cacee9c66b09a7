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
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// Export is the command export, which writes the objects of the service.
type Export struct {
	database.Flags
	File    string `arg:"" optional:"" default:"-" help:"File to write; - for standard output."`
	Partner string `env:"-" help:"Only objects of the partner with this ID, UUID or name. Default: all partners."`
	Signals string `env:"-" placeholder:"FILE" help:"Output file for user activity, such as completed courses and signed policies, in the format that ingest reads."`
}

func (Export) Help() string {
	return "Writes all objects that import accepts, one JSON object per line. Importing the lines into " +
		"another database creates the same objects there. The export does not include the catalog's templates and " +
		"breaches; import them first, with templates import and breaches import. All data is from the same moment, because " +
		"the command reads it in one transaction. The transaction changes nothing, does not block others and lasts as long " +
		"as the export. Until the export is complete, the file has a temporary name. The guide at /docs/operate/import " +
		"describes the format."
}

// Run writes the objects of --partner or of all partners, from the standby if there is one, and prints their numbers.
func (c Export) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		var partner domain.PartnerID
		if c.Partner != "" {
			if partner, err = database.FindPartner(ctx, d, c.Partner); err != nil {
				return err
			}
		}

		var failure error // of reading the standby: FromReplica then calls the function again, for the primary
		return d.FromReplica(ctx, func(ctx context.Context) error {
			if failure != nil && c.File == "-" {
				return fmt.Errorf("%w; the lines written so far are incomplete, so export again to a file", failure)
			}
			failure = c.export(ctx, s, d, partner)
			return failure
		})
	})
}

// export writes the objects of a partner, or of all if it is zero. Its files get their names only if it succeeds.
func (c Export) export(ctx context.Context, s cli.Env, d *db.DB, partner domain.PartnerID) error {
	file := c.File
	if file == "-" { // the standard output
		file = ""
	}
	objects, err := output.NewFile(file, output.ForJSON(s.Out))
	if err != nil {
		return err
	}
	signals, err := output.NewFile(c.Signals, nil) // without --signals, none are written
	if err != nil {
		return errors.Join(err, objects.Discard())
	}

	start, lines := time.Now(), 0
	err = transfer.Export(ctx, d, partner, transfer.Output{Objects: objects.To, Signals: signals.To},
		func(object string, n int, done bool) {
			switch {
			case done:
				lines += n
				fmt.Fprintf(s.Err, "%s: %d lines\n", object, n)
			case n%output.ProgressEvery == 0:
				fmt.Fprintf(s.Err, "%s: %d lines so far\n", object, n)
			}
		})
	if err != nil {
		return errors.Join(err, objects.Discard(), signals.Discard())
	}
	if err := errors.Join(signals.Keep(), objects.Keep()); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "%d lines in %s\n", lines, time.Since(start).Round(time.Millisecond))
	return nil
}
