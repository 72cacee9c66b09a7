package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// Import is the command import, which brings the objects of a platform into the service.
type Import struct {
	database.Flags
	File   string `arg:"" help:"A file of objects, one JSON object on each line; - for the standard input."`
	DryRun bool   `name:"dry-run" env:"-" help:"Check everything and report the same, and change nothing. Rows that the lines would change stay locked meanwhile."`
	Errors string `env:"-" placeholder:"FILE" help:"Write the refused lines to this file, a JSON object of line and reason for each, and not to the standard error stream."`
}

// Help says what becomes of the lines.
func (Import) Help() string {
	return "A line with an id that is not there makes an object with that id; another one sets the fields that it names. " +
		"Nothing is deleted. The lines may come in any order: they are read first, into a table of the database, and " +
		"applied then. What is new sends no mail and writes no events; what changes writes its events. " +
		"Bad lines are reported with their numbers on the standard error stream and skipped; the rest are applied. " +
		"The command may be cut short and run again with the same lines. The exit status is 0 if every line was " +
		"applied, now or before, and 1 if any was refused or the command was cut short. The guide under " +
		"/docs/operate/import describes the lines."
}

// Run takes the objects in and says what became of them.
func (c Import) Run(ctx context.Context, s cli.Env) (err error) {
	in, reading, shutFile, err := output.InputOf(s, c.File, "reading bytes")
	if err != nil {
		return err
	}
	defer database.Closing(shutFile, &err)
	return c.With(ctx, s, func(d *db.DB) error {
		tell, told, err := c.refusals(s)
		if err != nil {
			return err
		}

		applying := &lineProgress{output.Progress{To: s.Err}}
		if output.IsTerminal(s.Err) {
			applying.Bar = bar.New(output.Raw(s.Err), "applying lines")
		}
		run := transfer.Try
		if !c.DryRun {
			run, ctx = transfer.Import, db.WithEntry(ctx, database.ByCommand(domain.AuditEntry{Operation: "import"}))
		}
		start := time.Now()
		report, err := run(ctx, d, in, transfer.Watcher{
			Refused: func(line int, reason string) {
				reading.MakeRoom()
				applying.MakeRoom()
				tell(line, reason)
			},
			Read:    reading.Applied,
			Applied: applying.applied,
		})
		reading.MakeRoom()
		applying.MakeRoom()
		would, follows := "", "run it again with the same lines, what is applied is not applied twice"
		if c.DryRun {
			would, follows = "dry run, nothing was changed: ", "nothing was changed"
		}
		fmt.Fprintf(s.Out, "%s%d lines in %s: %d created, %d updated, %d unchanged, %d refused\n", would,
			report.Lines, time.Since(start).Round(time.Millisecond), report.Created, report.Updated, report.Unchanged,
			report.Refused)
		return errors.Join(ended(ctx, err, follows, report.Refused, report.Lines), told())
	})
}

// refusedLine is a line that was refused, as --errors writes it.
type refusedLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// refusals returns what tells of refused lines, where that is asked for, and what ends
// it.
func (c Import) refusals(s cli.Env) (tell func(line int, reason string), end func() error, err error) {
	if c.Errors == "" {
		return func(line int, reason string) { showRefused(s, line, reason) }, func() error { return nil }, nil
	}
	file, err := output.NewFile(c.Errors, nil)
	if err != nil {
		return nil, nil, err
	}
	buffer := bufio.NewWriter(file.To)
	lines := json.NewEncoder(buffer)
	lines.SetEscapeHTML(false)
	return func(line int, reason string) {
			_ = lines.Encode(refusedLine{line, reason}) // the buffer keeps the error
		}, func() error {
			if err := buffer.Flush(); err != nil {
				return errors.Join(err, file.Drop())
			}
			return file.Keep()
		}, nil
}

// lineProgress shows how many lines of an import are applied.
type lineProgress struct{ output.Progress }

func (p *lineProgress) applied(done, total int) {
	p.Size = int64(total)
	if p.Bar == nil && done >= p.Told+output.LinesBetween {
		p.Told = done
		fmt.Fprintf(p.To, "%d of %d lines applied\n", done, total)
		return
	}
	if p.Bar != nil {
		p.Progress.Applied(done, int64(done))
	}
}
