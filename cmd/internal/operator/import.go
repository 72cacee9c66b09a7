package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// Import is the command import, which imports the objects of a platform.
type Import struct {
	database.Flags
	config.MailDomainsFlag
	File   string `arg:"" help:"A file of objects, one JSON object on each line; - for the standard input."`
	CSV    string `name:"csv" env:"-" placeholder:"KIND" help:"Read a table of objects of this kind, such as user, instead: comma-separated values, with the names of the fields in the first row."`
	DryRun bool   `name:"dry-run" env:"-" help:"Check everything and print the same report, but change nothing. Rows that the lines would change stay locked meanwhile."`
	Errors string `env:"-" placeholder:"FILE" help:"Write all refused lines to this file: a JSON object of line and reason for each."`
}

func (Import) Help() string {
	return "A line with an id that is not there makes an object with that id; another one sets the fields that it names. " +
		"Nothing is deleted. The lines may come in any order: they are read first, into a table of the database, and " +
		"applied then. What is new sends no mail and writes no events; what changes writes its events. " +
		"Bad lines are skipped; the rest are applied. The first 20 are reported with their numbers on the standard error " +
		"stream, with a count by reason, and all of them in the file of --errors. The command may be cut short and run again with the same lines. The exit status is 0 if every line was " +
		"applied, now or before, and 1 if any was refused or the command was cut short. The guide under " +
		"/docs/operate/import describes the lines."
}

// Run imports the objects and prints the outcome.
func (c Import) Run(ctx context.Context, s cli.Env) (err error) {
	in, readProgress, shutFile, err := output.OpenInput(s, c.File, "reading bytes")
	if err != nil {
		return err
	}
	defer database.CloseInto(shutFile, &err)
	domains, err := c.Domains()
	if err != nil {
		return err
	}
	ctx = records.WithMailDomains(ctx, domains)
	input := transfer.Lines(in)
	if c.CSV != "" {
		if input, err = transfer.Table(in, c.CSV); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	return c.With(ctx, s, func(d *db.DB) error {
		refused, err := openRefusals(s, c.Errors)
		if err != nil {
			return err
		}

		applyProgress := output.NewProgress(s.Err, "applying lines", "lines applied")
		run := transfer.Try
		if !c.DryRun {
			run, ctx = transfer.Import, db.WithEntry(ctx, database.AsCommand(domain.AuditEntry{Operation: "import"}))
		}
		start := time.Now()
		report, err := run(ctx, d, input, transfer.Watcher{
			Refused: func(line int, reason string) {
				readProgress.EndLine()
				applyProgress.EndLine()
				refused.add(line, reason)
			},
			Read: readProgress.Update,
			Applied: func(done, total int) {
				applyProgress.Size = int64(total)
				applyProgress.Update(done, int64(done))
			},
		})
		readProgress.EndLine()
		applyProgress.EndLine()
		if errors.As(err, new(transfer.FormatError)) { // nothing was applied
			return errors.Join(err, refused.finish())
		}
		prefix, consequence := "", "run it again with the same lines, what is applied is not applied twice"
		if c.DryRun {
			prefix, consequence = "dry run, nothing was changed: ", "nothing was changed"
		}
		fmt.Fprintf(s.Out, "%s%d lines in %s: %d created, %d updated, %d unchanged, %d refused\n", prefix,
			report.Lines, time.Since(start).Round(time.Millisecond), report.Created, report.Updated, report.Unchanged,
			report.Refused)
		return errors.Join(refused.finish(), outcomeError(ctx, err, consequence, report.Refused, report.Lines))
	})
}

// Ingest is the command ingest, which records events of the platform.
type Ingest struct {
	database.Flags
	File string `arg:"" help:"A file of signals, one JSON object on each line; - for the standard input."`
}

func (Ingest) Help() string {
	return "Each signal is applied once, in whichever order they come and however often: the command is idempotent " +
		"and may be run again with the same lines. Bad lines are reported with their numbers on the standard error " +
		"stream and skipped; the rest are applied. The exit status is 0 if every line was applied, now or before, " +
		"and 1 if any was refused or the command was cut short."
}

// Run records the signals and prints the outcome.
func (c Ingest) Run(ctx context.Context, s cli.Env) (err error) {
	in, progress, shutFile, err := output.OpenInput(s, c.File, "ingesting bytes")
	if err != nil {
		return err
	}
	defer database.CloseInto(shutFile, &err)
	return c.With(ctx, s, func(d *db.DB) error {
		start := time.Now()
		entry := database.AsCommand(domain.AuditEntry{Operation: "ingest"})
		report, err := transfer.Ingest(db.WithEntry(ctx, entry), d, in, transfer.Watcher{
			Refused: func(line int, reason string) {
				progress.EndLine()
				showRefused(s, line, reason)
			},
			Read: progress.Update,
		})
		progress.EndLine()
		if errors.As(err, new(transfer.FormatError)) { // nothing was applied
			return err
		}
		fmt.Fprintf(s.Out, "%d lines in %s: %d taken, %d repeated, %d refused\n",
			report.Lines, time.Since(start).Round(time.Millisecond), report.Taken, report.Repeated, report.Refused)
		return outcomeError(ctx, err, "run it again with the same lines, no signal is applied twice", report.Refused, report.Lines)
	})
}

// showRefused prints a refused line.
func showRefused(s cli.Env, line int, reason string) {
	fmt.Fprintf(s.Err, "line %d: %s\n", line, domain.Visible(reason))
}

// outcomeError returns the error of a command that processes lines; nil if it processed all and refused none. If err ended
// it early, the error states the consequence, and err as well unless err only results from the end of ctx.
func outcomeError(ctx context.Context, err error, consequence string, refused, lines int) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted: " + consequence)
	case err != nil:
		return fmt.Errorf("%w\n%s", err, consequence)
	case refused > 0:
		return fmt.Errorf("%d of %d lines were refused", refused, lines)
	}
	return nil
}
