package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"partnerapi/platform/signal"
)

type ingestCmd struct {
	databaseFlags
	File string `arg:"" help:"A file of signals, one JSON object on each line; - for the standard input."`
}

// Help says what becomes of the lines.
func (ingestCmd) Help() string {
	return `Each signal is taken once, whichever order they come in and however often. Bad lines are reported with their numbers on the standard error stream and skipped; the rest are applied. The exit status is 0 if every line was taken, now or before, and 1 if any was refused or the command was cut short. It may be run again with the same lines.`
}

// linesBetween is how many lines of the standard input, whose length nobody
// knows, there are between two words on how far it is.
const linesBetween = 100_000

// Run takes the signals in and says what became of them.
func (c ingestCmd) Run(ctx context.Context, s streams) (err error) {
	in, watch, shutFile, err := c.input(ctx, s)
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
	report, err := signal.Ingest(ctx, d, in, signal.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(s.err, "line %d: %s\n", line, reason) }, Applied: watch,
	})
	fmt.Fprintf(s.out, "%d lines in %s: %d taken, %d repeated, %d refused\n",
		report.Lines, time.Since(start).Round(time.Millisecond), report.Taken, report.Repeated, report.Refused)
	if err != nil {
		return fmt.Errorf("%w\nrun it again with the same lines: what was taken is not taken twice", err)
	}
	if report.Refused > 0 {
		return fmt.Errorf("%d of %d lines were refused", report.Refused, report.Lines)
	}
	return nil
}

// input opens what is to be read, with what shows the progress of it.
func (c ingestCmd) input(ctx context.Context, s streams) (in io.Reader, watch func(lines int, bytes int64), shut func() error, err error) {
	if c.File == "-" {
		told := 0
		return until(ctx, s.in), func(lines int, _ int64) {
			if lines >= told+linesBetween {
				told = lines
				fmt.Fprintf(s.err, "%d lines\n", lines)
			}
		}, func() error { return nil }, nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", c.File)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, file.Close())
	}
	bar := newBar(s.err, "ingesting bytes")
	return file, func(_ int, bytes int64) { bar(int(bytes), int(info.Size())) }, file.Close, nil
}

// until is r up to the end of ctx, even while a read of r waits for input. The
// read is left waiting then, to end with the process.
func until(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	return out
}
