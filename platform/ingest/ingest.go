// Package ingest takes what happens on the platform into the service: signals,
// one line of JSON each (decisions 7.9).
package ingest

import (
	"context"
	"fmt"
	"io"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/ndjson"
)

const (
	// MaxLine is how many bytes a line may have.
	MaxLine = 1 << 20
	// batchLines and batchBytes bound what is applied in one transaction, and
	// with it what is held in memory.
	batchLines = 1000
	batchBytes = 8 << 20
	// patience is how long a line waits for more to be applied with.
	patience = time.Second
)

// Report counts the lines that were read, empty ones left out.
type Report struct {
	Lines    int
	Taken    int
	Repeated int // of an id that was applied before
	Refused  int
}

// Watcher is notified of how an ingestion goes. Its fields may be nil.
type Watcher struct {
	// Refused is called with each bad line, by its number from 1 on, in their order.
	Refused func(line int, reason string)
	// Applied is called after each transaction with how many lines and bytes of the
	// input are done.
	Applied func(lines int, bytes int64)
}

// Ingest reads signals to the end of r and applies them in batches, each in a
// transaction. A line waits a second at most for others to come, so that r may
// be a pipe that never ends. Bad lines are skipped. It holds a batch in memory,
// however long the input is. An error ends it; the report then counts what is
// applied, and the same input may be given again from its beginning. So does the
// end of ctx, which leaves a read of r waiting.
func Ingest(ctx context.Context, d *db.DB, r io.Reader, w Watcher) (Report, error) {
	return ingest(ctx, d, r, w, func() <-chan time.Time { return time.After(patience) })
}

// ingest is Ingest, where impatient is called when a batch gets its first line
// and says when it is to be applied even if no more come.
func ingest(ctx context.Context, d *db.DB, r io.Reader, w Watcher, impatient func() <-chan time.Time) (Report, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := &ingestion{db: d, watcher: w, lines: ndjson.Lines(ctx, r, MaxLine), impatient: impatient}
	for {
		more, err := in.gather(ctx)
		if err != nil {
			return in.report, fmt.Errorf("read line %d: %w", in.last.Number+1, err)
		}
		if err := in.apply(ctx); err != nil {
			return in.report, fmt.Errorf("apply the lines after %d: %w", in.done, err)
		}
		if !more {
			return in.report, nil
		}
	}
}

type ingestion struct {
	db        *db.DB
	watcher   Watcher
	lines     <-chan ndjson.Line
	impatient func() <-chan time.Time
	report    Report
	last      ndjson.Line // the last one that came
	done      int         // the number of the last line that was applied

	// The batch: the lines that are not empty, and the signals of those that
	// are not refused.
	entries []entry
	signals []domain.Signal
}

// entry is a line of a batch.
type entry struct {
	line   int
	reason string // why it is refused; empty for one that is not
}

// gather takes the next batch, and reports false at the end of the input.
func (in *ingestion) gather(ctx context.Context) (more bool, err error) {
	in.entries, in.signals = in.entries[:0], in.signals[:0]
	began := in.last.Bytes
	var late <-chan time.Time // never, as long as there is nothing to apply
	for len(in.entries) < batchLines && in.last.Bytes-began < batchBytes {
		select {
		case in.last = <-in.lines:
			if in.last.Err == io.EOF {
				return false, nil
			}
			if in.last.Err != nil {
				return false, in.last.Err
			}
			in.judge()
			if late == nil {
				late = in.impatient()
			}
		case <-late:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

// judge adds the last line to the batch, judged as of now.
func (in *ingestion) judge() {
	e := entry{line: in.last.Number}
	if in.last.TooLong {
		e.reason = fmt.Sprintf("is longer than %d bytes", MaxLine)
	} else if signal, err := Parse(in.last.Text, in.db.Now().Add(domain.SignalLead)); err != nil {
		e.reason = err.Error()
	} else {
		in.signals = append(in.signals, signal)
	}
	in.entries = append(in.entries, e)
}

// apply applies the batch, and counts and reports what became of its lines.
func (in *ingestion) apply(ctx context.Context) error {
	results, err := in.db.IngestSignals(ctx, in.signals)
	if err != nil {
		return err
	}
	for _, e := range in.entries {
		repeated := false
		if e.reason == "" {
			e.reason, repeated = results[0].Refusal, results[0].Repeated
			results = results[1:]
		}
		in.count(e, repeated)
	}
	in.done = in.last.Number
	if in.watcher.Applied != nil {
		in.watcher.Applied(in.last.Number, in.last.Bytes)
	}
	return nil
}

func (in *ingestion) count(e entry, repeated bool) {
	in.report.Lines++
	switch {
	case repeated:
		in.report.Repeated++
	case e.reason == "":
		in.report.Taken++
	default:
		in.report.Refused++
		if in.watcher.Refused != nil {
			in.watcher.Refused(e.line, e.reason)
		}
	}
}
