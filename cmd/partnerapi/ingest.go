package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/ingest"
)

type ingestCmd struct {
	databaseFlags
	File string `arg:"" help:"A file of signals, one JSON object on each line; - for the standard input."`
}

// Help says what becomes of the lines.
func (ingestCmd) Help() string {
	return "Each signal is applied once, in whichever order they come and however often: the command is idempotent " +
		"and may be run again with the same lines. Bad lines are reported with their numbers on the standard error " +
		"stream and skipped; the rest are applied. The exit status is 0 if every line was applied, now or before, " +
		"and 1 if any was refused or the command was cut short."
}

// Run takes the signals in and says what became of them.
func (c ingestCmd) Run(ctx context.Context, s streams) (err error) {
	in, shown, shutFile, err := inputOf(s, c.File, "ingesting bytes")
	if err != nil {
		return err
	}
	defer closing(shutFile, &err)
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	start := time.Now()
	entry := byCommand(domain.AuditEntry{Operation: "ingest"})
	report, err := ingest.Ingest(db.WithEntry(ctx, entry), d, in, ingest.Watcher{
		Refused: func(line int, reason string) {
			shown.makeRoom()
			fmt.Fprintf(s.err, "line %d: %s\n", line, domain.Visible(reason))
		},
		Applied: shown.applied,
	})
	shown.makeRoom()
	fmt.Fprintf(s.out, "%d lines in %s: %d taken, %d repeated, %d refused\n",
		report.Lines, time.Since(start).Round(time.Millisecond), report.Taken, report.Repeated, report.Refused)
	if err != nil {
		return cutShort(ctx, err, "run it again with the same lines, no signal is applied twice")
	}
	if report.Refused > 0 {
		return fmt.Errorf("%d of %d lines were refused", report.Refused, report.Lines)
	}
	return nil
}

// cutShort is the error of a command that takes lines and did not come to their end,
// with what follows from that. An interruption is its own reason: what it broke is not
// shown.
func cutShort(ctx context.Context, err error, follows string) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: " + follows)
	}
	return fmt.Errorf("%w\n%s", err, follows)
}

// inputOf opens what is to be read, the standard input or a file, with what shows the
// progress of it.
func inputOf(s streams, name, label string) (in io.Reader, shown *progress, shut func() error, err error) {
	if name == "-" {
		return s.in, &progress{to: s.err}, func() error { return nil }, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", name)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, file.Close())
	}
	shown = &progress{to: s.err, size: info.Size()}
	if isTerminal(s.err) {
		shown.bar = bar.New(raw(s.err), label)
	}
	return file, shown, file.Close, nil
}

// isTerminal reports whether somebody may be looking at what is written.
func isTerminal(to io.Writer) bool {
	file, ok := raw(to).(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// linesBetween is how many lines there are between two words on how far it is,
// where no bar can show that.
const linesBetween = 100_000

// progress shows how far an ingestion is.
type progress struct {
	to   io.Writer
	size int64                 // of the input in bytes; 0 where nobody knows
	bar  func(done, total int) // of bytes; nil where none is to be drawn
	open bool                  // the bar's line has not ended
	told int                   // the number of lines that was written last
}

func (p *progress) applied(lines int, bytes int64) {
	switch {
	case p.bar != nil:
		p.bar(int(bytes), int(p.size))
		p.open = bytes < p.size
	case lines >= p.told+linesBetween:
		p.told = lines
		fmt.Fprintf(p.to, "%d lines\n", lines)
	}
}

// makeRoom ends the line of a bar before something else is written.
func (p *progress) makeRoom() {
	if p.open {
		p.open = false
		fmt.Fprintln(p.to)
	}
}
