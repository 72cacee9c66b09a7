package transfer

import (
	"context"
	"fmt"
	"io"
	"time"

	"partnerapi/db"
	"partnerapi/db/ingest"
	"partnerapi/domain"
)

// patience is how long a signal waits for more signals of its batch.
const patience = time.Second

// Ingested counts the lines of signals that were read, without empty lines.
type Ingested struct {
	Lines    int
	Taken    int
	Repeated int // with the id of a signal that was applied before
	Refused  int
}

// Ingest reads signals, the events of the platform (decisions 7.9), to the end of r, and applies them in batches, each
// in a transaction. A line waits at most a second for more lines, so that r may be a pipe that never ends. Bad lines
// are skipped. Ingest holds one batch in memory. It stops at an error or the end of ctx, which does not interrupt a
// read of r; the report then counts the lines applied so far, and the same input may be ingested again from its
// beginning.
//
// The watcher's Refused is called in the order of the lines, and its Read after each transaction, with the lines and
// bytes applied so far. Its Applied is not called.
func Ingest(ctx context.Context, d *db.DB, r io.Reader, w Watcher) (Ingested, error) {
	return ingestBatches(ctx, d, r, w, func() <-chan time.Time { return time.After(patience) })
}

// ingestBatches is Ingest with another timer, which ends a batch. startTimer starts the timer at a batch's first line.
func ingestBatches(
	ctx context.Context, d *db.DB, r io.Reader, w Watcher, startTimer func() <-chan time.Time,
) (Ingested, error) {
	in := &ingestion{db: d, watcher: w}
	lines := batches{
		take:       in.checkLine,
		apply:      func(last *inputLine) error { return in.apply(ctx, last) },
		startTimer: startTimer,
	}
	err := lines.each(ctx, newLineReader(r))
	return in.report, err
}

// ingestion is the state of one call of Ingest.
type ingestion struct {
	db      *db.DB
	watcher Watcher
	report  Ingested
	done    int // the number of the last line of the batches that were applied

	// The batch: its lines, and the signals of the lines without a reason.
	entries []entry
	signals []domain.Signal
}

// entry is a line of a batch.
type entry struct {
	line   int
	reason string // why the line is invalid; empty for a valid line
}

// checkLine adds a line to the batch, and the line's signal if the line is valid.
func (in *ingestion) checkLine(l *inputLine) {
	e := entry{line: l.number}
	if l.tooLong {
		e.reason = errTooLong.Error()
	} else if signal, err := readSignal(l.text, in.db.Now()); err != nil {
		e.reason = err.Error()
	} else {
		in.signals = append(in.signals, signal)
	}
	in.entries = append(in.entries, e)
}

// apply applies the signals of the batch, counts and reports the result of each line, and empties the batch. last is
// the last line of the batch, or the end of the input.
func (in *ingestion) apply(ctx context.Context, last *inputLine) error {
	results, err := ingest.Apply(ctx, in.db, in.signals)
	if err != nil {
		return fmt.Errorf("apply the lines after line %d: %w", in.done, err)
	}
	for _, e := range in.entries {
		repeated := false
		if e.reason == "" { // the line has a signal
			e.reason, repeated = results[0].Refusal, results[0].Repeated
			results = results[1:]
		}
		in.count(e, repeated)
	}
	in.entries, in.signals = in.entries[:0], in.signals[:0]
	in.done = last.number
	if in.watcher.Read != nil {
		in.watcher.Read(last.number, last.bytes)
	}
	return nil
}

// count adds a line to the report. It notifies the watcher of a refusal.
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
