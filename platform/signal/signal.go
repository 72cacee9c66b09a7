// Package signal takes what happens on the platform into the service: signals,
// one line of JSON each (decisions 7.9).
package signal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// MaxLine is how many bytes a line may have.
	MaxLine = 1 << 20
	// batchLines and batchBytes bound what is applied in one transaction, and
	// with it what is held in memory.
	batchLines = 1000
	batchBytes = 8 << 20
)

// Report counts the lines that were read, empty ones left out.
type Report struct {
	Lines    int
	Taken    int
	Repeated int // of an id that was taken before
	Refused  int
}

// Watcher is told how an ingestion goes. Its fields may be nil.
type Watcher struct {
	// Refused is told of each bad line, by its number from 1 on, in their order.
	Refused func(line int, reason string)
	// Applied is told, after each transaction, how many lines and bytes of the
	// input are done.
	Applied func(lines int, bytes int64)
}

// Ingest reads signals to the end of r and applies them in batches, each in a
// transaction. Bad lines are skipped. It holds a batch in memory, however long
// the input is. An error ends it; the report then tells of what is applied, and
// the same input may be given again from its beginning.
func Ingest(ctx context.Context, d *db.DB, r io.Reader, w Watcher) (Report, error) {
	in := &ingestion{db: d, watcher: w, lines: lineReader{in: bufio.NewReaderSize(r, 64<<10)}}
	for {
		more, err := in.read()
		if err != nil {
			return in.report, fmt.Errorf("read line %d: %w", in.lines.number+1, err)
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
	db      *db.DB
	watcher Watcher
	lines   lineReader
	report  Report
	done    int // the number of the last line that was applied

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

// read reads the next batch, and reports false at the end of the input.
func (in *ingestion) read() (more bool, err error) {
	in.entries, in.signals = in.entries[:0], in.signals[:0]
	latest := in.db.Now().Add(domain.SignalLead)
	began := in.lines.bytes
	for len(in.entries) < batchLines && in.lines.bytes-began < batchBytes {
		text, tooLong, err := in.lines.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if len(text) == 0 && !tooLong {
			continue
		}
		in.add(text, tooLong, latest)
	}
	return true, nil
}

func (in *ingestion) add(text []byte, tooLong bool, latest time.Time) {
	e := entry{line: in.lines.number}
	if tooLong {
		e.reason = fmt.Sprintf("is longer than %d bytes", MaxLine)
	} else if s, err := Parse(text, latest); err != nil {
		e.reason = err.Error()
	} else {
		in.signals = append(in.signals, s)
	}
	in.entries = append(in.entries, e)
}

// apply applies the batch, and counts and tells what became of its lines.
func (in *ingestion) apply(ctx context.Context) error {
	takings, err := in.db.TakeSignals(ctx, in.signals)
	if err != nil {
		return err
	}
	for _, e := range in.entries {
		repeated := false
		if e.reason == "" {
			if takings[0].Unknown != "" {
				e.reason = noSuch(takings[0].Unknown)
			}
			repeated, takings = takings[0].Repeated, takings[1:]
		}
		in.count(e, repeated)
	}
	in.done = in.lines.number
	if in.watcher.Applied != nil {
		in.watcher.Applied(in.lines.number, in.lines.bytes)
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
