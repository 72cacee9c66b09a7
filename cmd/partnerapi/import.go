package main

import (
	"context"
	"fmt"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/platform/transfer"
)

type importObjectsCmd struct {
	databaseFlags
	File   string `arg:"" help:"A file of objects, one JSON object on each line; - for the standard input."`
	DryRun bool   `name:"dry-run" env:"-" help:"Check everything and report the same, and change nothing. Rows that the lines would change stay locked meanwhile."`
	Errors string `env:"-" placeholder:"FILE" help:"Write the refused lines to this file, a JSON object of line and reason for each, and not to the standard error stream."`
}

// Help says what becomes of the lines.
func (importObjectsCmd) Help() string {
	return "A line with an id that is not there makes an object with that id; another one sets the fields that it names. " +
		"Nothing is deleted. The lines may come in any order: they are read first, into a table of the database, and " +
		"applied then. What is new sends no mail and writes no events; what changes writes its events. " +
		"Bad lines are reported with their numbers on the standard error stream and skipped; the rest are applied. " +
		"The command may be cut short and run again with the same lines. The exit status is 0 if every line was " +
		"applied, now or before, and 1 if any was refused or the command was cut short. The guide under " +
		"/docs/import describes the lines."
}

// Run takes the objects in and says what became of them.
func (c importObjectsCmd) Run(ctx context.Context, s streams) (err error) {
	in, reading, shutFile, err := inputOf(s, c.File, "reading bytes")
	if err != nil {
		return err
	}
	defer closing(shutFile, &err)
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)

	applying := &lineProgress{progress{to: s.err}}
	if isTerminal(s.err) {
		applying.bar = bar.New(s.err, "applying lines")
	}
	start := time.Now()
	report, err := transfer.Import(ctx, d, in, transfer.Watcher{
		Refused: func(line int, reason string) {
			reading.makeRoom()
			applying.makeRoom()
			fmt.Fprintf(s.err, "line %d: %s\n", line, reason)
		},
		Read:    reading.applied,
		Applied: applying.applied,
	})
	reading.makeRoom()
	applying.makeRoom()
	fmt.Fprintf(s.out, "%d lines in %s: %d created, %d updated, %d unchanged, %d refused\n",
		report.Lines, time.Since(start).Round(time.Millisecond), report.Created, report.Updated, report.Unchanged,
		report.Refused)
	if err != nil {
		return fmt.Errorf("%w\nrun it again with the same lines: what is applied is not applied twice", err)
	}
	if report.Refused > 0 {
		return fmt.Errorf("%d of %d lines were refused", report.Refused, report.Lines)
	}
	return nil
}

// lineProgress shows how many lines of an import are applied.
type lineProgress struct{ progress }

func (p *lineProgress) applied(done, total int) {
	p.size = int64(total)
	if p.bar == nil && done >= p.told+linesBetween {
		p.told = done
		fmt.Fprintf(p.to, "%d of %d lines applied\n", done, total)
		return
	}
	if p.bar != nil {
		p.progress.applied(done, int64(done))
	}
}
