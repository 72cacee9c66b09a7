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
	File   string `arg:"" help:"File with one JSON object per line; - for standard input."`
	CSV    string `name:"csv" env:"-" placeholder:"KIND" help:"Kind of object in FILE, such as user. FILE is then read as CSV, with field names in the first row."`
	DryRun bool   `name:"dry-run" env:"-" help:"Check all lines and print the same report, without changing anything. During the check, the rows that the lines would change are locked."`
	Errors string `env:"-" placeholder:"FILE" help:"File for all rejected lines: one JSON object for each, with the line number and the reason."`
}

func (Import) Help() string {
	return "A line with an unknown ID creates an object with that ID; any other line sets the fields that it contains. " +
		"Nothing is deleted. The lines can be in any order: the command reads all of them into a database table before it " +
		"applies them. New objects publish no events and send no emails, except simulations that are still due. Changed objects publish their events. " +
		"Invalid lines are skipped; all others are applied. The command prints the first 20 invalid lines with their numbers on standard error, " +
		"with a count by reason; --errors writes all of them to a file. If the command is interrupted, run it again with the same lines. The exit status is 0 if all lines were " +
		"applied, now or earlier, and 1 if a line was rejected or the command was interrupted. The guide at " +
		"/docs/operate/import describes the format."
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
		prefix, consequence := "", "run the command again with the same lines; lines that were applied are not applied twice"
		if c.DryRun {
			prefix, consequence = "dry run, nothing changed: ", "nothing changed"
		}
		fmt.Fprintf(s.Out, "%s%d lines in %s: %d created, %d updated, %d unchanged, %d rejected\n", prefix,
			report.Lines, time.Since(start).Round(time.Millisecond), report.Created, report.Updated, report.Unchanged,
			report.Refused)
		return errors.Join(refused.finish(), outcomeError(ctx, err, consequence, report.Refused, report.Lines))
	})
}

// Ingest is the command ingest, which records events of the platform.
type Ingest struct {
	database.Flags
	File string `arg:"" help:"File with one signal per line, as a JSON object; - for standard input."`
}

func (Ingest) Help() string {
	return "The command is idempotent: it applies each signal once, in any order, however often you send it. " +
		"If the command is interrupted, run it again with the same lines. Invalid lines are skipped and printed with their numbers " +
		"on standard error; all others are applied. The exit status is 0 if all lines were applied, now or earlier, " +
		"and 1 if a line was rejected or the command was interrupted."
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
		fmt.Fprintf(s.Out, "%d lines in %s: %d applied, %d repeated, %d rejected\n",
			report.Lines, time.Since(start).Round(time.Millisecond), report.Taken, report.Repeated, report.Refused)
		return outcomeError(ctx, err, "run the command again with the same lines; no signal is applied twice", report.Refused, report.Lines)
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
		return fmt.Errorf("%d of %d lines were rejected", refused, lines)
	}
	return nil
}
