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

// Ingest is the command ingest, which takes in what happened on the platform.
type Ingest struct {
	database.Flags
	File string `arg:"" help:"A file of signals, one JSON object on each line; - for the standard input."`
}

// Help says what becomes of the lines.
func (Ingest) Help() string {
	return "Each signal is applied once, in whichever order they come and however often: the command is idempotent " +
		"and may be run again with the same lines. Bad lines are reported with their numbers on the standard error " +
		"stream and skipped; the rest are applied. The exit status is 0 if every line was applied, now or before, " +
		"and 1 if any was refused or the command was cut short."
}

// Run takes the signals in and says what became of them.
func (c Ingest) Run(ctx context.Context, s cli.Env) (err error) {
	in, shown, shutFile, err := output.InputOf(s, c.File, "ingesting bytes")
	if err != nil {
		return err
	}
	defer database.Closing(shutFile, &err)
	return c.With(ctx, s, func(d *db.DB) error {
		start := time.Now()
		entry := database.ByCommand(domain.AuditEntry{Operation: "ingest"})
		report, err := transfer.Ingest(db.WithEntry(ctx, entry), d, in, transfer.Watcher{
			Refused: func(line int, reason string) {
				shown.MakeRoom()
				showRefused(s, line, reason)
			},
			Read: shown.Applied,
		})
		shown.MakeRoom()
		fmt.Fprintf(s.Out, "%d lines in %s: %d taken, %d repeated, %d refused\n",
			report.Lines, time.Since(start).Round(time.Millisecond), report.Taken, report.Repeated, report.Refused)
		return ended(ctx, err, "run it again with the same lines, no signal is applied twice", report.Refused, report.Lines)
	})
}

// showRefused shows a line that was refused.
func showRefused(s cli.Env, line int, reason string) {
	fmt.Fprintf(s.Err, "line %d: %s\n", line, domain.Visible(reason))
}

// ended is how a command that takes lines ended. Where err kept it from coming to their
// end, it says what follows from that. An interruption is its own reason: what it broke
// is not shown.
func ended(ctx context.Context, err error, follows string, refused, lines int) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted: " + follows)
	case err != nil:
		return fmt.Errorf("%w\n%s", err, follows)
	case refused > 0:
		return fmt.Errorf("%d of %d lines were refused", refused, lines)
	}
	return nil
}
