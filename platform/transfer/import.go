package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
)

// Report counts the lines that were read, without empty lines.
type Report struct {
	Lines     int
	Created   int
	Updated   int
	Unchanged int
	Refused   int
}

// Watcher is notified of the progress of an import or an ingestion. Its functions may be nil; they are not called
// concurrently.
type Watcher struct {
	// Refused is called with the number, from 1, of each bad line: first those that are
	// invalid by themselves, and then those that cannot be applied.
	Refused func(line int, reason string)
	// Read is called after each batch of the input with the number of lines and bytes read.
	Read func(lines int, bytes int64)
	// Applied is called after each transaction with the number of lines done, and the number of lines to be applied.
	Applied func(done, total int)
}

// ErrImporting says that another process is importing into the database.
var ErrImporting = errors.New("another import into this database is running; wait until it ends")

// Import reads lines to the end of in, and then applies them: kind by kind, each kind after the kinds to which it
// refers, in batches, each in a transaction. The lines of one object are applied in their order, lines of different
// objects in any order; users and their history are applied client by client and user by user. Bad lines are skipped.
// Import stages the lines in a table of the database, and holds a few batches in memory.
//
// It stops at an error or the end of ctx, which does not interrupt a read; the report then counts the lines
// applied so far. The same input may be imported again from its beginning: lines that were applied change nothing. The
// error is ErrImporting if another import is running, and a FormatError if the input is not what it should be.
func Import(ctx context.Context, d *db.DB, in Input, w Watcher) (Report, error) {
	return importAs(ctx, d, in, &run{watcher: w, batchLines: batchLines})
}

// Try is Import as a dry run: it applies the lines in one transaction, which is rolled back, and reports the same. It
// locks the rows that the lines would change, until it returns.
func Try(ctx context.Context, d *db.DB, in Input, w Watcher) (Report, error) {
	return importAs(ctx, d, in, &run{watcher: w, batchLines: batchLines, dry: true})
}

// clearWithin is the maximum time in which a run deletes its staged lines at its end. The next run deletes the rest.
const clearWithin = time.Minute

// importAs applies the lines of an input as a run, unless another import is running. At its end it deletes the staged lines,
// even if ctx has ended.
func importAs(ctx context.Context, d *db.DB, in Input, as *run) (Report, error) {
	locked, err := records.WithLock(ctx, d, func(ctx context.Context) error {
		as.db, as.outerCtx = d, ctx
		runErr := as.execute(ctx, in)
		clearCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), clearWithin)
		defer stop()
		return errors.Join(runErr, records.ClearStage(clearCtx, d))
	})
	switch {
	case err != nil:
		return as.report, err
	case !locked:
		return Report{}, ErrImporting
	}
	return as.report, nil
}

// run is an import in progress.
type run struct {
	db *db.DB
	// outerCtx is the context outside the transaction of a dry run. Staged lines are written and read with it.
	outerCtx   context.Context
	watcher    Watcher
	batchLines int
	dry        bool // the transaction is rolled back

	// mu guards the fields below it while lines are applied.
	mu     sync.Mutex
	report Report
	total  int // lines to be applied; those that are bad by themselves are not
	done   int // lines applied or refused
}

// execute stages the lines of the input, and applies them: in a second round those whose object has an earlier line.
func (r *run) execute(ctx context.Context, in Input) error {
	if err := records.ClearStage(ctx, r.db); err != nil { // lines left by a run that was killed
		return err
	}
	if err := r.read(ctx, in); err != nil {
		return err
	}
	if err := records.StageRepeated(ctx, r.db); err != nil {
		return err
	}
	if r.dry {
		return r.db.TryAll(ctx, r.apply) // in one transaction, which is rolled back
	}
	began := r.db.Now()
	if err := r.apply(ctx); err != nil {
		return err
	}
	return records.StaleSummaries(ctx, r.db, began) // of the clients whose users were changed
}

// apply applies the staged lines, kind by kind.
func (r *run) apply(ctx context.Context) error {
	for _, k := range kinds {
		if err := k.apply(ctx, r); err != nil {
			return fmt.Errorf("apply lines of %ss: %w", k.Object(), err)
		}
	}
	return nil
}

// read reads the input to its end, and stages the lines.
func (r *run) read(ctx context.Context, in Input) error {
	var staged []records.StagedLine
	lines := batches{
		take: func(l *inputLine) {
			if s, ok := r.checkLine(l); ok {
				staged = append(staged, s)
			}
		},
		apply: func(last *inputLine) error {
			if r.watcher.Read != nil {
				r.watcher.Read(last.number, last.bytes)
			}
			err := records.StageLines(ctx, r.db, staged)
			staged = staged[:0]
			return err
		},
	}
	return lines.each(ctx, in.open())
}

// checkLine reads a line of the input, and returns it for staging. It counts and reports a bad line as refused, and
// returns false.
func (r *run) checkLine(in *inputLine) (l records.StagedLine, ok bool) {
	r.report.Lines++
	k, err := kindOf(in)
	if err == nil {
		l, err = k.toStagedLine(in.text, r.db.Now())
	}
	if err != nil {
		r.count(in.number, domain.ImportResult{Refusal: err.Error()})
		return l, false
	}
	l.Kind, l.Line = k.index(), in.number
	r.total++
	return l, true
}

// count adds the outcome of a line to the report. It notifies the watcher of a refusal, which is the zero outcome.
func (r *run) count(number int, result domain.ImportResult) {
	switch result.Outcome {
	case domain.ImportCreated:
		r.report.Created++
	case domain.ImportUpdated:
		r.report.Updated++
	case domain.ImportUnchanged:
		r.report.Unchanged++
	default:
		r.report.Refused++
		if r.watcher.Refused != nil {
			r.watcher.Refused(number, result.Refusal)
		}
	}
}
